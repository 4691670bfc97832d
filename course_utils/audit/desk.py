"""What the parts of a watch, and its checks, know of the recorder that they stand in."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from course_utils.audit.book import Book
from course_utils.audit.cuts import Cuts
from course_utils.audit.events import Clock, Pass


class Desk(Protocol):
    """The recorder, as its parts see it: they are below it, and it is made of them."""

    book: Book
    clock: Clock
    cuts: Cuts
    lines: Any
    running: Pass | None
    stepping: bool
    full_steps: int
    broken: dict[Any, str]
    checks: list[Any]
    operations: Any  # None once the full tier has ended
    scaling: Any

    @property
    def quiet(self) -> bool: ...
    def tell(self, name: str, *event: Any) -> None: ...
    def aside(self) -> AbstractContextManager[None]: ...
    def elsewhere(self) -> bool: ...
    def idle(self) -> bool: ...
    def end_full(self) -> None: ...
    def begin_again(self) -> None: ...
