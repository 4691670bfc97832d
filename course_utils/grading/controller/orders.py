"""What the controller and the processes that judge say to each other. Both are trusted; what was observed is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from course_utils.grading.controller.posing import Posed, Question

UNSEEN = "The look at the cells failed ({}). Read them."
MAX_ORDER = 64_000_000  # bytes, of which a child's observations are 4 million at most


class Begin(msgspec.Struct, frozen=True, tag=True):
    """To the judging parent: fork a child for the line that comes along, with the judges of this lesson loaded."""

    lesson: str


class Begun(msgspec.Struct, frozen=True):
    """From the judging parent: the process id of the new child."""

    process: int


class End(msgspec.Struct, frozen=True, tag=True):
    """To the judging parent: end a child, whatever it does."""

    process: int


class Ended(msgspec.Struct, frozen=True):
    """From the judging parent: the exit code of a child, or the negative number of the signal that ended it."""

    code: int


class Pose(msgspec.Struct, frozen=True, tag=True):
    """To a judging child: make the cases of a lesson. Who does not know the key cannot make the same."""

    lesson: str
    key: bytes


class Made(msgspec.Struct, frozen=True):
    """From a judging child: the exercises of the lesson, with their cases."""

    posed: tuple[Posed, ...]


class Judge(msgspec.Struct, frozen=True, tag=True):
    """To a judging child: decode and judge what was observed of an exercise, in so many seconds of computing.

    In place of an observation that was too large stands None. `seen` is as the sandbox sent it, and may be anything.
    """

    item: Posed
    seen: tuple[bytes | None, ...]
    warnings: tuple[str, ...]
    seconds: float
    told: tuple[Mapping[str, int], ...] = ()


class Reach(msgspec.Struct, frozen=True, tag=True):
    """To a judging child: look at what cells, given by number and source, reach for besides these exercises.

    It has so many seconds of computing.
    """

    cells: tuple[tuple[int, str], ...]
    exercises: tuple[Question, ...]
    seconds: float


class Flags(msgspec.Struct, frozen=True):
    """From a judging child: sentences about cells that a person should read, by exercise."""

    flags: dict[str, tuple[str, ...]]


class Verdict(msgspec.Struct, frozen=True, tag=True):
    """From a judging child: the verdict on an exercise, why a person should look, and what it rests on."""

    outcome: str
    score: float
    misconceptions: tuple[str, ...]
    messages: tuple[str, ...]
    withheld: tuple[str, ...]
    flags: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()


class Failed(msgspec.Struct, frozen=True, tag=True):
    """From a judging child: there is no verdict, and the sentence that says why, without a capital letter."""

    how: Literal["timeout", "memory", "crashed"]
    why: str


class Judged(msgspec.Struct, frozen=True):
    """From a judging child: what it found, after so many seconds of computing.

    One that is `spent` took so much memory that another should be begun in its place.
    """

    found: Verdict | Failed
    cpu: float
    spent: bool
