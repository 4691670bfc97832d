"""A wrong idea of many exercises: that a tensor of `.grad` keeps its numbers while a pass goes by."""

from __future__ import annotations

from course_utils.checks.exercise import Misconception


def put_back(instead: str) -> Misconception:
    """Return the idea, told by what `Accumulated` saw. `instead` is what adds to no `.grad`."""
    return Misconception(
        "the same tensors put back",
        "Afterwards .grad holds the very tensors that it held, with other numbers: backward adds to them in place, so "
        f"what you kept to put it back was changed, too. Keep clones, or use {instead}.",
        lambda case, seen: seen["accumulated"],
    )


PUT_BACK = put_back("torch.autograd.grad, which leaves .grad alone")
