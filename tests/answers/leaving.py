"""Right answers that change something else, when they are done or on the way."""

import torch


def leaving(answer, change):
    """The right answer, and a change that stays when it is done."""

    def with_a_trace(*given):
        returned = answer(*given)
        change(*given)
        return returned

    return with_a_trace


def clipping(answer, longest=10.0):
    """The right answer, with an optimizer that shortens long gradients before each step: nobody asked for that."""

    def with_short_gradients(*given):
        (optimizer,) = (it for it in given if isinstance(it, torch.optim.Optimizer))
        whole = optimizer.step

        def step(*arguments, **options):
            torch.nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], longest)
            return whole(*arguments, **options)

        optimizer.step = step
        try:
            return answer(*given)
        finally:
            optimizer.step = whole

    return with_short_gradients


def zeroing(answer):
    """The right answer, with an optimizer that clears with zeros: what takes no part keeps one for its old gradient."""

    def with_zeros(*given):
        (optimizer,) = (it for it in given if isinstance(it, torch.optim.Optimizer))
        clear = optimizer.zero_grad
        optimizer.zero_grad = lambda: clear(set_to_none=False)
        try:
            return answer(*given)
        finally:
            optimizer.zero_grad = clear

    return with_zeros


def gradients_off(*given):
    torch.set_grad_enabled(False)
