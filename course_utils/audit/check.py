"""What a check is: it hears of events, keeps little, and says at the end what it found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar

from course_utils.audit.beside import beside
from course_utils.audit.desk import Desk
from course_utils.audit.events import Call, Clip, Load, Op, Pass, Step
from course_utils.audit.finding import Finding, Level
from course_utils.audit.lines import Spot
from course_utils.audit.rules import RULES


@dataclass(frozen=True)
class Found:
    """A finding, and what it is about: causes hide what follows from them about the same things."""

    finding: Finding
    about: frozenset[int] = field(default=frozenset())


class Check:
    """Watches for one kind of mistake, or for a few that are related."""

    codes: ClassVar[tuple[str, ...]]
    functions: ClassVar[frozenset[str]] = frozenset()  # names of the functions that `function` is told of

    def __init__(self, recorder: Desk) -> None:
        self.book = recorder.book
        self.clock = recorder.clock
        self.recorder = recorder

    def pass_begins(self, event: Pass) -> None: ...
    def pass_ended(self, event: Pass) -> None: ...
    def step_begins(self, event: Step) -> None: ...
    def step_ended(self, event: Step) -> None: ...
    def evaluated(self, event: Step) -> None: ...
    def called(self, event: Call) -> None: ...
    def clipped(self, event: Clip) -> None: ...
    def clipped_within(self, spot: Spot | None) -> None: ...
    def scheduled(self, scheduler: Any, spot: Spot | None) -> None: ...
    def measured(self, scheduler: Any, metric: Any) -> None: ...
    def hooked(self, hooks: Any, spot: Spot | None) -> None: ...
    def mode_set(self, module: Any, training: bool, spot: Spot | None) -> None: ...
    def state_made(self, module: Any, state: Any, spot: Spot | None) -> None: ...
    def loads(self, module: Any, state: Any, spot: Spot | None) -> None: ...
    def loaded(self, event: Load) -> None: ...
    def seeded(self, kind: str, seed: str) -> None: ...
    def function(self, event: Op) -> None: ...

    def found(self) -> Iterator[Found]:
        """Yield what was found. Called once, when the watch ends."""
        raise NotImplementedError

    def say(
        self,
        code: str,
        spot: Spot | None,
        headline: str,
        why: str,
        fix: str,
        *,
        level: Level | None = None,
        certain: bool = True,
        times: int = 1,
        about: Set[int] = frozenset(),
        names: Iterable[str] = (),
        also: Sequence[tuple[str, Spot]] = (),
    ) -> Found:
        """Make a finding with the level and the section that its rule has.

        `also` names other lines of the learner's by the part that each plays.
        """
        rule = RULES[code]
        file, line = spot or ("", 0)
        finding = Finding(
            code,
            level or rule.level,
            file,
            line,
            headline,
            why,
            fix,
            certain,
            rule.section,
            times,
            tuple(names),
            beside(spot, also) if spot else (),
        )
        return Found(finding, frozenset(about))
