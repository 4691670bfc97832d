"""What several answers of lesson 06 share."""


def hook_left(x):
    if x.requires_grad:
        x.register_hook(lambda gradient: gradient)


def keeps_gradient(x):
    if x.requires_grad and not x.is_leaf:
        x.retain_grad()


def hook_on_module(model):
    model.register_forward_hook(lambda module, given, result: None)
