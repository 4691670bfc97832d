"""Judging stage 3, `save_and_free`: keep what the rules need, and let go of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course_utils.checks.data import Observation
from course_utils.checks.exercise import Finding, Misconception
from course_utils.checks.judges.lesson_11_build_your_own import backward
from course_utils.checks.judges.lesson_11_build_your_own.freeing import (
    SLACK,
    ended,
    kept,
    passes,
    right_gradients,
    too_many,
)
from course_utils.checks.judges.lesson_11_build_your_own.stages import Stage, exercise, nothing, raised
from course_utils.checks.scenes.lesson_11_build_your_own.passes import WITHOUT

_MOMENTS = {
    "forward": "After `result = {}` and with only the result held",
    "after": "After a pass from `{}`, with the result still held",
    "dropped": "When the result of `{}` is deleted without a pass",
}
_TWICE, _PART = "the same result twice", "two results that share a part"
_APART, _ANEW = "two results that share only the leaf", "three results, each made anew"
_FINE = {_APART: ["ok", "ok"], _ANEW: ["ok", "ok", "ok"]}
_RIGHT = {**_FINE, _TWICE: ["ok", "RuntimeError"], _PART: ["ok", "RuntimeError"]}


def _judge(given: dict[str, Any], seen: Observation) -> Iterator[Finding]:
    yield from passes(seen["passes"], WITHOUT)
    yield from kept(seen["kept"], _MOMENTS)
    for when, count in zip(("without a pass", "after a pass"), seen["gone"], strict=True):
        text = f"With x and `(x.exp() * x).sum()` deleted {when}, the engine itself still holds what leads to x."
        yield Finding("gone", raised(count) or count <= SLACK, text)
    text = "After a pass an intermediate result that is still held has other numbers than before."
    yield Finding("value", raised(seen["value"]) or seen["value"] == [1.5, 2.5], text)


def _ended(seen: Observation, **others: list[str]) -> bool:
    """Return whether the passes ended rightly, but for the scenes that are named by a word."""
    wanted = {
        **_RIGHT,
        **{{"twice": _TWICE, "part": _PART, "apart": _APART}[word]: how for word, how in others.items()},
    }
    return all(ended(seen["passes"], name) == how for name, how in wanted.items())


def _moments(seen: Observation, *wrong: str) -> bool:
    """Return whether too much is alive at these moments, and at no other."""
    kept = seen["kept"]
    if any(raised(one) for one in kept.values()):
        return False
    return all(too_many(kept, moment) == (moment in wrong) for moment in _MOMENTS)


def _other_kind(case: Any, seen: Observation) -> bool:
    how = ended(seen["passes"], _TWICE)
    return how[0] == "ok" and how[1:] not in (["RuntimeError"], ["ok"]) and how != ["scene"]


STAGE = Stage("save_and_free", nothing, _judge, (backward.STAGE,))

EXERCISE = exercise(
    STAGE,
    1,
    title="Save and free",
    difficulty=4,
    minutes=40,
    points=4,
    hints=(
        "Ask of each rule which arrays it reads. Those the node keeps, and nothing else. Then ask who else refers to "
        "an intermediate result: a node needs its inputs' nodes, not its inputs.",
        "Let the node have a list of what it kept, which the rule gets as an argument, so that you can empty it after "
        "the rule has run and tell later that it is empty. exp keeps the array of its result: a node that holds its "
        "own result's tensor, or a closure over it, is a circle.",
        "Node(name, inputs, kept, rule), where rule(gradient, *kept) uses no other arrays. mul keeps a only if b "
        "requires a gradient, and the other way round; add keeps nothing but shapes. In the pass: if node.kept is "
        "None, raise RuntimeError('... a second time ... freed'); run the rule; node.kept = None.",
    ),
    misconceptions=(
        Misconception(
            "more than the rules need",
            "Your gradients are right, and a pass frees what was kept. Until then more is kept than the rules read: an "
            "operand of a sum, for example, a factor that no gradient asks for, or a copy.",
            lambda case, seen: _moments(seen, "forward") and _ended(seen) and right_gradients(seen["passes"], WITHOUT),
        ),
        Misconception(
            "never freed",
            "After a pass arrays that were kept are still there, and a second pass ends without an error. A loop that "
            "keeps its losses then keeps all graphs.",
            lambda case, seen: too_many(seen["kept"], "after") and _ended(seen, twice=["ok", "ok"], part=["ok", "ok"]),
        ),
        Misconception(
            "freed, and silent about it",
            "A pass frees what was kept. A second one runs over the rest without an error, whatever it gives. Somebody "
            "who forgot that the graph is used up has to be told.",
            lambda case, seen: _moments(seen) and _ended(seen, twice=["ok", "ok"], part=["ok", "ok"]),
        ),
        Misconception(
            "an error of another kind",
            "A second pass ends in an error that is no RuntimeError, as Python gives one when something is missing. "
            "Look first whether the node was freed, and raise a RuntimeError that says so.",
            _other_kind,
        ),
        Misconception(
            "one pass frees every graph",
            "After a pass over one graph, a pass over another that shares no operation with it ends in an error. What "
            "is freed belongs to the nodes that ran.",
            lambda case, seen: (
                ended(seen["passes"], _APART)[:1] == ["ok"] and ended(seen["passes"], _APART) != ["ok", "ok"]
            ),
        ),
        Misconception(
            "a circle of references",
            "When the result is deleted without a pass, its arrays stay: somewhere the graph refers to itself, as a "
            "node does that holds its own result, or a closure over it; or a list of the engine's holds its nodes.",
            lambda case, seen: _moments(seen, "dropped") and _ended(seen),
        ),
        Misconception(
            "kept in a list of the engine's",
            "When a result is deleted without a pass, or after it, its graph stays: the engine itself holds it, or the "
            "graph refers to itself. Then every validation without a pass grows the memory, for good or until the "
            "garbage collector comes by.",
            lambda case, seen: _moments(seen, "forward", "after", "dropped") and _ended(seen),
        ),
        Misconception(
            "freed too early",
            "After a pass an intermediate result that you still hold has its numbers no more. A pass frees what the "
            "nodes kept for it, and a tensor's own array is not among that.",
            lambda case, seen: not raised(seen["value"]) and seen["value"] != [1.5, 2.5],
        ),
        Misconception(
            "gradients stay on the nodes",
            "A second pass raises, and still, after the first, arrays are alive beside the leaves' gradients: what the "
            "nodes had kept, or the gradients that came by. A pass lets go of both.",
            lambda case, seen: _moments(seen, "after") and _ended(seen),
        ),
        Misconception(
            "only the last node is freed",
            "A second pass from the same result raises. But one from another result, which shares a part with the "
            "first, goes through. A pass frees every node that it runs, and each of them raises when "
            "a later pass meets it.",
            lambda case, seen: _ended(seen, part=["ok", "ok"]),
        ),
    ),
)
