"""What is asked of everybody: the exercises of a lesson, with cases that are new and secret in each run.

Here it is plain data. The process that judges makes it (`making`), as cases and judges need PyTorch.
"""

from __future__ import annotations

import msgspec


class Question(msgspec.Struct, frozen=True):
    """What the controller knows of an exercise: how a child is asked for it, and what it is worth.

    `reaches` are the names of machinery that its answers may use; `counted` says whether operations or bytes are.
    """

    id: str
    name: str
    lesson: str
    call: str | None
    points: int
    reaches: tuple[str, ...] = ()
    counted: bool = False


class Posed(msgspec.Struct, frozen=True):
    """An exercise with the cases of this run, encoded: made once, and the same for everybody."""

    exercise: Question
    cases: tuple[tuple[str, bytes], ...]
