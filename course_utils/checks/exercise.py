"""What an exercise is: plain descriptions joined to three functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

from course_utils.checks.data import Case, Observation, Raised, TimedOut, type_name

Outcome: TypeAlias = Literal["not attempted", "incorrect", "error", "correct"]
Seen: TypeAlias = Observation | Raised | TimedOut


@dataclass(frozen=True)
class Finding:
    """Whether one property of an answer holds, and the sentence for a learner where it does not.

    `withheld` is what would give an answer away: a learner reads it after three different answers, a teacher always.
    `share` is how much holds, from 0 to 1, where the property has parts, such as the entries of a table.
    """

    prop: str
    ok: bool
    message: str = ""
    withheld: str = ""
    share: float = 0.0


@dataclass(frozen=True)
class Misconception:
    """A known wrong idea: how its answers are told apart, and the sentence for the learner who holds it.

    `seen` gets a case that failed and what was observed there; it returns None where what was seen fits this idea, and
    others as well. `ended` names exceptions ("RecursionError") or "TimedOut" by which such an answer may end instead,
    `ended_in` the cases where it may (all where it is empty), `ended_saying` a part of the exception's message.
    Where answers of other ideas end so as well, `ended_alone` is False: such an end fits, and explains nothing.
    Where `among` names properties, it explains only a case where one of their findings failed: elsewhere what it gives
    is right, and something else is wrong.
    A misconception is reported when it fits every case that failed, and explains one that fits no other. `hint` is what
    `hint()` says first to who holds it, where the exercise's own hints do not lead from there. Its sample wrong answer
    stands in tests/answers, out of the learner's way.
    """

    name: str
    message: str
    seen: Callable[[Case, Observation], bool | None] = lambda case, seen: False
    ended: tuple[str, ...] = ()
    ended_in: tuple[str, ...] = ()
    ended_saying: str = ""
    ended_alone: bool = True
    hint: str = ""
    among: frozenset[str] = frozenset()

    def explains(self, case: Case, seen: Seen, failed: Set[str]) -> bool | None:
        """Say whether an answer of this idea does what was seen, in a case where findings of some properties failed."""
        if isinstance(seen, TimedOut | Raised):
            kind = "TimedOut" if isinstance(seen, TimedOut) else seen.kind
            said = isinstance(seen, TimedOut) or self.ended_saying in seen.message
            fits = kind in self.ended and said and (not self.ended_in or case.name in self.ended_in)
            return fits if self.ended_alone or not fits else None
        fitting = self.seen(case, seen)
        return None if fitting and self.among and not self.among & failed else fitting


@dataclass(frozen=True)
class Exercise:
    """One exercise. Its text stands in the master notebook, under the same id.

    `call` is how a function answer is called ("walk(tensor)"); None for an answer that is a value; the bare name
    ("engine") for an object, of which the observer uses what it needs. `answer` is the name that the learner defines,
    where that is not the id: the stages of one piece of work share a name.
    `cases` makes the situations from a seed and `judge` gives a finding for each property of what was seen
    in one; both are trusted and pure. The function that runs the learner's code stands
    in `observers`, because in a grader it runs in another process. `debrief` gives the sentences for a right answer:
    what the check saw it do in the cases, and what another way would have cost. `reaches` names what the lesson teaches
    of PyTorch's own parts, so that a grader does not point at answers for it (grading/controller/reaching.py). Where
    operations or their bytes are `counted`, it points at what takes numbers out of PyTorch, too.
    """

    id: str
    title: str
    lesson: str
    difficulty: int
    minutes: int
    points: int
    call: str | None
    cases: Callable[[int], Iterable[Case]]
    judge: Callable[[Case, Observation], Iterable[Finding]]
    hints: tuple[str, str, str]
    misconceptions: tuple[Misconception, ...] = ()
    debrief: Callable[[Sequence[tuple[Case, Observation]]], Iterable[str]] = lambda seen: ()
    answer: str = ""
    reaches: tuple[str, ...] = ()
    counted: bool = False

    @property
    def name(self) -> str:
        """The name that the learner defines."""
        return self.answer or self.id


@dataclass(frozen=True)
class Verdict:
    """What a learner is told. `messages` are sentences, the most telling first; `debrief` follows a right answer.

    `withheld` is what only a third different answer brings to light.
    """

    exercise: str
    outcome: Outcome
    points: int
    messages: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    misconceptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    debrief: tuple[str, ...] = ()

    @property
    def score(self) -> int:
        return self.points if self.outcome == "correct" else 0

    @property
    def share(self) -> float:
        """How much of the answer is right, from 0 to 1: between them only for tables."""
        return 1.0 if self.outcome == "correct" else max((it.share for it in self.findings if not it.ok), default=0.0)


def unusable(name: str, call: str | None, answer: object) -> str | None:
    """Say why an answer of the name `name`, called as `call`, cannot be tried at all; None when it can."""
    if call is None:
        if callable(answer):
            return f"`{name}` is of type {type_name(answer)}, but this exercise asks for a value."
        return None
    if call == name:
        return None
    asked = f"but this exercise asks for a function, called as {call}."
    if isinstance(answer, type) and any(base.__module__.startswith("torch.autograd") for base in answer.__mro__):
        return f"`{name}` is a Function, {asked} What is called is its `apply`."
    if not callable(answer):
        return f"`{name}` is of type {type_name(answer)}, {asked} Give the function itself, without calling it."
    try:
        signature = inspect.signature(answer)
    except (TypeError, ValueError):  # a builtin, say, has none: calling it will tell
        return None
    try:
        signature.bind(*parameters_of(call))
    except TypeError:
        own = ", ".join(str(it.replace(annotation=it.empty)) for it in signature.parameters.values())
        own = "(*, " + own + ")" if signature.parameters and _keywords_only(signature) else f"({own})"
        return f"`{name}` cannot be called as {call}: its own parameters are {own}."
    if inspect.isgeneratorfunction(answer) or inspect.iscoroutinefunction(answer):
        word = "yield" if inspect.isgeneratorfunction(answer) else "async"
        return f"`{name}` uses `{word}`, so calling it returns no result yet. Return the result instead."
    return None


def parameters_of(call: str) -> list[str]:
    """Return the parameters that a call names: ["a", "b"] for "f(a, b)"."""
    inside = call.partition("(")[2].rstrip(")")
    return [name.strip() for name in inside.split(",") if name.strip()]


def _keywords_only(signature: inspect.Signature) -> bool:
    return all(parameter.kind is parameter.KEYWORD_ONLY for parameter in signature.parameters.values())
