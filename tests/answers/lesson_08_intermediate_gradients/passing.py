"""What several answers of lesson 08 share."""


def hooked(change):
    """Return a function that gives x's numbers and changes the gradient by a hook on a new tensor."""

    def function(x, amount):
        y = x.view_as(x)
        if y.requires_grad:
            y.register_hook(lambda gradient: change(gradient, amount))
        return y

    return function


def hooked_on_x(change):
    def function(x, amount):
        if x.requires_grad:
            x.register_hook(lambda gradient: change(gradient, amount))
        return x

    return function


def for_one_dtype(function):
    return lambda x, amount: function(x.float(), amount)


def retain(x, amount):
    if x.requires_grad:
        x.retain_grad()
