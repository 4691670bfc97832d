"""What several answers of lesson 10 share."""

import torch


def gradients_off_after(answer):
    """An answer that leaves gradient mode off."""

    def run(*args):
        result = answer(*args)
        torch.set_grad_enabled(False)
        return result

    return run


def hooked(answer):
    """An answer that leaves a hook on its input."""

    def run(x, *args):
        if x.requires_grad:
            x.register_hook(lambda g: g)
        return answer(x, *args)

    return run


def recording_after(answer):
    """An answer that leaves gradient mode on, also where it was off."""

    def run(*args):
        result = answer(*args)
        torch.set_grad_enabled(True)
        return result

    return run
