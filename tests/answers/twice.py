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
