"""Batches that can be gone through only once, in a loop that asks for them again in each round of another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Step
from course_utils.audit.lines import Spot, frames, names_in
from course_utils.audit.loops import length_of, loops_at, value_of
from course_utils.audit.mentions import own
from course_utils.audit.source import around, assigned, function_around, statement

_FRAMES = 4
_LOOKS = 2  # looks at steps from one place that found no such loop, after which nobody looks there any more


@dataclass
class _Spent:
    """A loop over something that ends once and for all, within another that goes round more often."""

    spot: Spot  # of the inner loop
    name: str
    made: Spot | None  # the line that makes the iterator
    outer: ast.For
    rounds: int
    seen: set[Any] = field(default_factory=set)  # rounds of the outer loop that made a step
    steps: int = 0


class Spent(Check):
    """What the loops around a step go through, and in which rounds of the outer one it was there."""

    codes: ClassVar = ("iterator-spent",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._loops: dict[Spot, _Spent] = {}
        self._without: dict[tuple[Spot, ...], int] = {}

    def step_begins(self, event: Step) -> None:
        running = []
        for frame in frames():
            running.append(frame)
            if len(running) == _FRAMES:
                break
        place = tuple(Spot(it.f_code.co_filename, it.f_lineno) for it in running)
        if self._without.get(place, 0) >= _LOOKS:
            return
        found = self._look(running)
        if found is None or len(found.seen) > 1:
            self._without[place] = self._without.get(place, 0) + 1

    def _look(self, running: list[FrameType]) -> _Spent | None:
        """Note a step from these frames; return the loop over an iterator around it, which stands in another."""
        inner: tuple[Spot, str, Any] | None = None
        plain = True  # nothing decides between the outer loop and the inner one
        for frame in running:
            known: dict[str, Any] | None = None
            spot = Spot(frame.f_code.co_filename, frame.f_lineno)
            inside = loops_at(spot)
            for node in reversed(inside):
                if not isinstance(node, ast.For):
                    return None
                known = names_in(frame) if known is None else known
                if inner is None:
                    found = _once(node.iter, known)
                    if found is None:
                        continue
                    if _may_stop(node):
                        return None
                    inner = Spot(spot.file, node.lineno), *found
                    plain = not _is_decided(inner[0], node)
                    spot = inner[0]
                    continue
                rounds, now = length_of(node.iter, known), _round(node.target, known)
                if not plain or rounds is None or now is None or _may_stop(node) or _is_decided(spot, node):
                    return None
                return self._note(inner, spot, known, node, now)
            if inner is not None:
                plain = plain and not _is_decided(spot, None)
        return None

    def _note(
        self, inner: tuple[Spot, str, Any], place: Spot, known: dict[str, Any], outer: ast.For, now: Any
    ) -> _Spent:
        spot, name, iterator = inner
        if spot not in self._loops:
            outside = next((it for it, value in known.items() if value is iterator), name)
            rounds = length_of(outer.iter, known) or 0
            self._loops[spot] = _Spent(spot, name, _made(spot, name) or _made(place, outside), outer, rounds)
        spent = self._loops[spot]
        spent.seen.add(now)
        spent.steps += 1
        return spent

    def found(self) -> Iterator[Found]:
        if self.clock.interrupted:
            return
        for spent in self._loops.values():
            running = [it.f_lineno for it in frames() if it.f_code.co_filename == spent.spot.file]
            under_way = any(spent.outer.lineno <= line <= (spent.outer.end_lineno or 0) for line in running)
            if len(spent.seen) == 1 and spent.rounds > 1 and spent.steps > 1 and not under_way:
                yield self.say(
                    "iterator-spent",
                    spent.made or spent.spot,
                    f"{spent.name} is an iterator: it had batches in the first of {spent.rounds} rounds, and none "
                    "in the others",
                    f"An iterator, as iter(loader), a generator, zip or map, can be gone through once. The loop of "
                    f"line {spent.spot.line} asks for it again in each round of line {spent.outer.lineno}, and "
                    "makes no step there; nothing raises.",
                    "for batch in loader:  # the loader itself, or a new iterator in each round: iter(loader)",
                    times=spent.rounds - 1,
                )


def _once(iterated: ast.expr, known: dict[str, Any]) -> tuple[str, Any] | None:
    """Return an iterator that a loop goes through, itself or through enumerate, zip and the like, after its name."""
    for node in ast.walk(iterated):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            value = value_of(node, known)
            if isinstance(value, Iterator):
                return ast.unparse(node), value
    return None


def _made(spot: Spot, name: str) -> Spot | None:
    """Return the line before one, in its function, that makes what a name stands for; None where it is handed on."""
    made = assigned(spot, name)
    line = statement(made) if made is not None and function_around(made) is function_around(spot) else None
    return made if isinstance(line, ast.Assign) and isinstance(line.value, ast.Call | ast.GeneratorExp) else None


def _round(target: ast.expr, known: dict[str, Any]) -> Any:
    """Return what tells one round of a loop from another; None where that is no number and no text."""
    names = sorted(node.id for node in ast.walk(target) if isinstance(node, ast.Name))
    values = [known.get(name) for name in names]
    return tuple(value for value in values if isinstance(value, int | float | str)) or None


def _may_stop(loop: ast.For) -> bool:
    """Say whether a loop may be left before its end, or a round of it before its end."""
    kinds = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Try)
    return any(isinstance(node, kinds) for node in own(loop))


def _is_decided(spot: Spot, loop: ast.For | None) -> bool:
    """Say whether a condition stands around a line: between it and a loop around that, or in its function."""
    nodes: list[ast.AST] = around(spot)
    if loop is not None and loop in nodes:
        nodes = nodes[nodes.index(loop) + 1 :]
    scopes = [at for at, node in enumerate(nodes) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    nodes = nodes[scopes[-1] + 1 if scopes else 0 :]
    return any(isinstance(node, ast.If | ast.Try | ast.Match) and not _is_main(node) for node in nodes)


def _is_main(node: ast.AST) -> bool:
    """Say whether this is `if __name__ == "__main__"`."""
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
