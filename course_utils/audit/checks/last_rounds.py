"""A loss that each round of a loop binds anew, and a pass after the loop: it runs through the last one alone."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Pass
from course_utils.audit.lines import Spot, frames, names_in
from course_utils.audit.loops import loops_at, value_of
from course_utils.audit.mentions import own
from course_utils.audit.source import around, blocks_of, function_around, statement, taken_apart, tree_of
from course_utils.explain.source import called, names_of

_TIMES, _MOST = 3, 200
_LOGS = frozenset({"item", "detach", "tolist", "float", "isfinite", "isnan"})
_GOES = frozenset({"items", "values", "keys", "enumerate", "list", "tqdm"})
_FILLS = frozenset({"append", "extend", "add", "update", "insert", "copy_", "add_"})
_STOPS = (ast.Break, ast.Return, ast.Yield, ast.Raise, ast.Continue)


class LastRounds(Check):
    """Looks, where a pass begins, at the loop before it that bound its loss."""

    codes: ClassVar = ("last-of-loop",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._times: Counter[Spot] = Counter()
        self._names: dict[Spot, str] = {}
        self._calls: list[tuple[int, tuple[Spot, ...]]] = []  # of models since the last pass: the nodes they gave

    def called(self, event: Call) -> None:
        if event.recorded is not None and len(self._calls) < _MOST:
            self._calls.append((event.recorded, event.spots))

    def pass_begins(self, event: Pass) -> None:
        calls, self._calls = self._calls, []
        if not event.accumulate or event.spot is None or not event.direct:
            return
        made = _made_in_loop(event.spot)
        if made is not None and _rounds(made[1]) != 1 and not _holds_several(event, made[1], calls):
            line = Spot(event.spot.file, made[0].lineno)
            self._names[line] = ast.unparse(made[0].targets[0])
            self._times[line] += 1

    def found(self) -> Iterator[Found]:
        for spot, times in self._times.items():
            name = self._names[spot]
            if times >= _TIMES:
                yield self.say(
                    "last-of-loop",
                    spot,
                    f"{name} is bound anew in each round, and the backward pass begins after the loop",
                    f"After the loop {name} stands for what the last round computed. No pass runs through those of "
                    "the rounds before: what only they depend on never learns, and the rest learns from one of them.",
                    f"total = total + {name}  # in each round, and total.backward() after the loop",
                    certain=False,
                    times=times,
                )


def _holds_several(event: Pass, loop: ast.For, calls: list[tuple[int, tuple[Spot, ...]]]) -> bool:
    """Say whether a pass runs through what a model computed in several rounds: it keeps a state in itself."""
    file, lines = event.spot.file if event.spot is not None else "", range(loop.lineno, (loop.end_lineno or 0) + 1)
    ends = sorted({number for number, spots in calls if any(it.file == file and it.line in lines for it in spots)})
    rounds = {bisect_left(ends, number) for number in event.graph.numbers} if len(ends) > 1 else set()
    return len(rounds & set(range(1, len(ends)))) > 1  # when the first round began is not known


@lru_cache(maxsize=512)
def _made_in_loop(spot: Spot) -> tuple[ast.Assign, ast.For] | None:
    """Return the assignment that makes the loss of the pass at a line, and the loop before the line it stands in."""
    line, scope = statement(spot), function_around(spot)
    call = line.value if isinstance(line, ast.Expr) else None
    if called(call) != "backward" or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    name, within = _loss_of(call.func.value), loops_at(spot)
    bound = [it for it in own(scope) if it.lineno < spot.line and _binds(it, name)] if scope is not None else []
    if not bound or not isinstance(bound[-1], ast.Assign) or bound[-1].targets[1:]:
        return None
    loops = [it for it in loops_at(Spot(spot.file, bound[-1].lineno)) if it not in within]
    if len(loops) != 1 or not isinstance(loops[0], ast.For) or loops[0].orelse or not _follows(spot, loops[0]):
        return None
    made, loop = bound[-1], loops[0]
    return (made, loop) if _is_own(name, made, loop) else None


def _loss_of(node: ast.expr) -> str:
    """Return the name that a pass begins at, also of `(loss / 4).backward()` and `scaler.scale(loss).backward()`."""
    if isinstance(node, ast.BinOp):
        node = node.left
    if isinstance(node, ast.Call) and called(node) == "scale" and node.args:
        node = node.args[0]
    return ast.unparse(node)


def _follows(spot: Spot, loop: ast.For) -> bool:
    """Say whether a line stands in the block that holds a loop: it runs as often as the whole loop does."""
    nodes = around(spot)
    outer = nodes[-2] if len(nodes) > 1 else tree_of(spot.file)
    return outer is not None and loop in blocks_of(outer)


def _is_own(name: str, made: ast.Assign, loop: ast.For) -> bool:
    """Say whether each round makes a loss of its own, and nothing in the loop takes it, but for a log.

    Nothing may be carried from round to round: the last loss of a recurrence holds those before.
    """
    inside = list(own(loop))
    if made not in loop.body or any(isinstance(it, _STOPS) for line in loop.body for it in ast.walk(line)):
        return False
    for line in inside:
        read = {ast.unparse(it) for it in ast.walk(line.value)} if isinstance(line, ast.Assign) else set()
        if (line is not made and not _only_logs(line, name)) or read & set(_bound(line)):
            return False
    given = names_of(loop.target)
    changing = {name for line in inside if line is not made for name in _bound(line)}
    differs = names_of(made.value) & given or any(names_of(it) & given for it in _callees(loop))
    return bool(differs) and not _carries(inside, changing) and not _grown(inside) & names_of(made.value)


def _bound(line: ast.stmt) -> Iterator[str]:
    for to in line.targets if isinstance(line, ast.Assign) else ():
        yield from (ast.unparse(part) for part in taken_apart(to))


def _callees(loop: ast.For) -> list[ast.expr]:
    calls = [it.func for line in loop.body for it in ast.walk(line) if isinstance(it, ast.Call)]
    return [it for it in calls if isinstance(it, ast.Name | ast.Subscript)]


def _grown(lines: list[ast.stmt]) -> set[str]:
    """Return the names of what the statements of a loop put something into: it holds what earlier rounds made."""
    calls = [it.func for line in lines for it in ast.walk(line) if isinstance(it, ast.Call)]
    fills = [it for it in calls if isinstance(it, ast.Attribute) and it.attr in _FILLS]
    written = [it for line in lines for it in ast.walk(line) if isinstance(it, ast.Subscript)]
    return names_of(*fills, *(it for it in written if isinstance(it.ctx, ast.Store)))


def _carries(lines: list[ast.stmt], changing: set[str]) -> bool:
    """Say whether a name that a loop binds is read in it before it is bound: it comes from the round before."""
    bound: set[str] = set()
    for line in lines:
        if blocks_of(line):
            continue
        read = {it.id for it in ast.walk(line) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Load)}
        if read & (changing - bound):
            return True
        bound |= {it.id for it in ast.walk(line) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)}
    return False


def _only_logs(line: ast.stmt, name: str) -> bool:
    """Say whether a statement takes a loss for its number only: `log += loss.item()`, `print(loss)`."""
    if blocks_of(line):
        return True  # its statements are looked at by themselves
    parents = {child: node for node in ast.walk(line) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(line):
        if not isinstance(node, ast.expr) or ast.unparse(node) != name:
            continue
        around_it: list[ast.AST] = [parents[node]]
        while around_it[-1] in parents:
            around_it.append(parents[around_it[-1]])
        logged = any(
            (isinstance(it, ast.Attribute) and it.attr in _LOGS) or called(it) in (*_LOGS, "print") for it in around_it
        )
        if not logged:
            return False
    return True


def _binds(line: ast.stmt, name: str) -> bool:
    targets = line.targets if isinstance(line, ast.Assign) else []
    if isinstance(line, ast.AugAssign | ast.AnnAssign):
        targets = [line.target]
    return any(ast.unparse(part) == name for to in targets for part in taken_apart(to))


def _rounds(loop: ast.For) -> int | None:
    """Return how many rounds a loop of the running function makes, where what it goes through has a length."""
    node: ast.expr = loop.iter
    while isinstance(node, ast.Call) and called(node) in _GOES:
        inner = node.func.value if isinstance(node.func, ast.Attribute) else next(iter(node.args), None)
        if inner is None:
            return None
        node = inner
    frame = next(frames(), None)
    if isinstance(node, ast.Tuple | ast.List):
        return len(node.elts)
    value = value_of(node, names_in(frame)) if frame is not None else None
    return len(value) if isinstance(value, dict | list | tuple | range) else None
