"""What several answers of lesson 10 share."""

from torch.autograd import Function


def function(forward, backward):
    """Return the apply of a Function with this forward and backward."""
    kinds = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Made", (Function,), kinds).apply
