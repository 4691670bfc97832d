"""What several answers of lesson 05 share."""


def leaf_at(x):
    return x.detach().requires_grad_()


def hook_on(tensor):
    if tensor.requires_grad:
        tensor.register_hook(lambda gradient: None)
