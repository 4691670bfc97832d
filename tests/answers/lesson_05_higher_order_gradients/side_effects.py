"""What several answers of lesson 05 share."""


def hook_on(tensor):
    if tensor.requires_grad:
        tensor.register_hook(lambda gradient: None)
