"""What a custom Function must leave alone."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.data import Answer, Array
from course_utils.checks.observers.traces import changes, which_hooks


def _all_of(tensor: torch.Tensor, may_write: bool) -> list[Any]:
    marks = [
        None if may_write else tensor._version,
        tensor.requires_grad,
        tensor.retains_grad,
        tensor.is_leaf and tensor.grad is not None,
    ]
    return [Array.of(tensor), *marks, which_hooks(tensor)]


class Surroundings:
    """What an answer has to leave as it was: modes, PyTorch's random numbers, and the tensors that are not its own.

    Who `may_write` to these has to put their numbers back.
    """

    def __init__(self, tensors: dict[str, torch.Tensor], may_draw: bool = False, may_write: bool = False) -> None:
        self._tensors, self._may_draw, self._may_write = tensors, may_draw, may_write
        self._before = self._state()

    def changed(self) -> list[str]:
        """Name what is not as it was."""
        return changes(self._before, self._state())

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {name: _all_of(tensor, self._may_write) for name, tensor in self._tensors.items()}
        state["the grad mode"] = torch.is_grad_enabled()
        if not self._may_draw:
            state["PyTorch's random generator"] = Array.of(torch.get_rng_state())
        return state


def unrecorded(answer: Answer, *given: Any) -> list[str]:
    """Call an answer with copies of what is given, where nothing is recorded. Name what is not as it was."""
    with torch.no_grad():
        copies = [it.detach().clone() if isinstance(it, torch.Tensor) else it for it in given]
        around = Surroundings({"x": copies[0]}, may_draw=True)
        answer(*copies)
        return around.changed()


INCOMING = "the incoming gradient"
