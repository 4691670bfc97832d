"""Whether what `.grad` held has been put back with something added to it."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from course_utils.checks.observers.passes import Pass


class Accumulated:
    """The tensors in `.grad`, with their numbers. Made before an answer runs, and asked afterwards."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._before = [(it, it.grad, None if it.grad is None else it.grad.detach().clone()) for it in tensors]

    def there_again(self, passes: Iterable[Pass]) -> bool:
        """Return whether passes added to `.grad`, and each is the very tensor that it was, one with other numbers.

        Where it was None, it is None.
        """
        other = [now is not None and not torch.equal(now, was) for _, now, was in self._before if was is not None]
        added = any(it.accumulated for it in passes)
        return added and any(other) and all(tensor.grad is held for tensor, held, _ in self._before)
