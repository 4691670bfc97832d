"""Answers that alter the largest and the smallest of their numbers, or their axes, as nobody asked them to."""

import torch


def clipping_results(answer, most=1e3):
    """Clips what it returns, to be safe."""
    return _with_each(answer, lambda tensor: tensor.clamp(-most, most))


def dropping_small(answer, least=1e-6):
    """Takes what is small for zero."""
    return _with_each(answer, lambda tensor: torch.where(tensor.abs() < least, 0, tensor).to(tensor.dtype))


def squeezed(answer):
    """Drops axes of size one."""
    return _with_each(answer, torch.squeeze)


def _with_each(answer, change):
    """The answer with each tensor that it returns changed."""

    def changed(returned):
        if isinstance(returned, torch.Tensor):
            return change(returned)
        if isinstance(returned, dict):
            return {name: changed(item) for name, item in returned.items()}
        return [changed(item) for item in returned] if isinstance(returned, list | tuple) else returned

    return lambda *given: changed(answer(*given))
