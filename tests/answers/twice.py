"""What code meets that walks a model by hand: a parameter that two layers share, or a part in two places, twice.

It switches something off as it goes, so that at the second meeting it notes what it has done itself.
"""


def frozen_on_a_walk(model):
    """Freeze the parameters of each part, and return what puts them back: one met twice stays frozen."""
    noted = []
    for part in model.modules():
        for parameter in part.parameters(recurse=False):
            noted.append((parameter, parameter.requires_grad))
            parameter.requires_grad_(False)
    return lambda: [parameter.requires_grad_(flag) for parameter, flag in noted]


def modes_on_a_walk(model, training):
    """Switch each part within the model, and return what puts the modes back: one met twice stays switched."""
    noted = []

    def walk(part):
        noted.append((part, part.training))
        part.training = training
        for child in part.children():
            walk(child)

    walk(model)

    def put_back():
        for part, mode in noted:
            part.training = mode

    return put_back


def gradients_on_a_walk(model):
    """Clear .grad of the parameters of each part, and return what puts it back: one met twice stays cleared."""
    noted = []
    for part in model.modules():
        for parameter in part.parameters(recurse=False):
            noted.append((parameter, parameter.grad))
            parameter.grad = None

    def put_back():
        for parameter, gradient in noted:
            parameter.grad = gradient

    return put_back


def gradients_where_live(model):
    """Clear .grad of all parameters, and return what puts back that of those that require one."""
    noted = [(parameter, parameter.grad) for parameter in model.parameters() if parameter.requires_grad]
    model.zero_grad()

    def put_back():
        for parameter, gradient in noted:
            parameter.grad = gradient

    return put_back


def around(answer, change, number=0):
    """The right answer, between a change to what one of its arguments is and what undoes it."""

    def run(*given):
        put_back = change(given[number])
        try:
            return answer(*given)
        finally:
            put_back()

    return run
