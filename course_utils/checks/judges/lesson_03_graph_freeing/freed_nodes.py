"""Judging `freed_nodes`: find what a pass has freed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from course_utils.checks.compare import counted, describe, listed
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_03_graph_freeing import LESSON

_PARTLY: dict[str, tuple[str, set[str]]] = {
    "a pass through the upper part": ("upper part", {"m", "z"}),
    "a pass through one branch": ("one branch", {"trunk", "left"}),
    "a pass through each branch": ("both branches", {"left", "right"}),
    "a factor that was never saved": ("constant", {"m"}),
    "a write in place": ("written", {"top", "h"}),
    "a pass that retained": ("retained", set()),
    "a node that keeps a tuple": ("rows picked", {"picked", "m", "spread", "loss"}),
    "thirty doublings": ("doublings", {"h"}),
    "nothing has run, then a pass": ("fresh", set()),
}

# What the case's own pass frees, between two calls of the function.
_LATER = {"nothing has run, then a pass": {"h", "m", "z"}}

# Operations that save nothing.
_EMPTY = {"AccumulateGrad", "AddBackward0", "SumBackward0"}


def _cases(seed: int) -> list[Case]:
    return [
        Case(name, {"scene": scene, "seed": seed + n, "then a pass": name in _LATER})
        for n, (name, (scene, _)) in enumerate(_PARTLY.items())
    ]


def _names(seen: Observation) -> set[str] | None:
    """Return the names of the nodes that were returned; None where something else was."""
    returned = seen["returned"]
    if not isinstance(returned, list) or not all(isinstance(item, str) for item in returned):
        return None
    return set(returned)


def _what_came(returned: Value) -> str | None:
    """Say what is wrong with what came back as a collection of nodes; None where it is one, each node once."""
    if not isinstance(returned, list):
        return f"You returned {describe(returned)}; expected a set or a list of nodes."
    others = [item for item in returned if not isinstance(item, str)]
    foreign = sorted({str(item[1]) for item in others if isinstance(item, list) and item[0] == "node"})
    if foreign:
        held = f"What you returned holds nodes of another graph: {listed(foreign)}."
        return f"{held} Does your function keep a list or set between calls?"
    if others:
        kind = others[0][1] if isinstance(others[0], list) else "another type"
        return f"What you returned holds something of type {kind} that is no node of this graph."
    if len(set(map(str, returned))) < len(returned):
        return "What you returned holds a node more than once."
    return None


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    problem = _what_came(seen["returned"])
    yield Finding("kind", problem is None, problem or "")
    if problem is None:
        yield from _compare_freed(_names(seen) or set(), _PARTLY[case.name][1], seen["kinds"])
    if problem is None and case.name in _LATER and not seen["passes"] and not seen["changed"]:
        yield from _asked_again(case, seen)
    ran = seen["passes"]
    yield Finding("passes", ran == 0, f"Your function ran {counted(ran)}. Reading is enough.")
    message = "Your function changed a tensor, a gradient, or what the graph keeps. Reading is enough."
    yield Finding("untouched", not seen["changed"] or ran > 0, message)


def _asked_again(case: Case, seen: Observation) -> Iterator[Finding]:
    named = "the same nodes as before. The pass freed more." if seen["later"] else "no node. The pass freed some."
    message = f"Called again after one more pass, your function named {named}"
    same = seen["later"] == seen["returned"]
    yield Finding("anew", not same, message)
    problem = _what_came(seen["later"])
    if not same:
        yield Finding("kind", problem is None, problem or "")
    if not same and problem is None:
        yield from _compare_freed(set(map(str, seen["later"])), _LATER[case.name], seen["kinds"])


def _compare_freed(names: set[str], right: set[str], kinds: dict[str, str]) -> Iterator[Finding]:
    missing = listed(sorted(kinds[name] for name in right - names))
    of = "You named no node" if not names else f"You named {len(right & names)} of the {len(right)} nodes"
    yield Finding("all", right <= names, f"{of} whose saved tensors are gone. You missed: {missing}.")
    extra = listed(sorted({kinds[name] for name in names - right}))
    yield Finding("only", names <= right, f"You named nodes that have not lost saved tensors. Their kind: {extra}.")


def _extra(wrong: dict[str, set[str]]) -> Any:
    def explains(case: Case, seen: Observation) -> bool:
        return _names(seen) == _PARTLY[case.name][1] | wrong.get(case.given["scene"], {"nothing has this name"})

    return explains


def _only_empty_ones_added(seen: Observation, right: set[str]) -> bool:
    names = _names(seen) or set()
    return names > right and {seen["kinds"][name] for name in names - right} <= _EMPTY


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    nodes = sum(len(result["kinds"]) for _, result in seen)
    freed = sum(len(_PARTLY[case.name][1]) for case, _ in seen)
    yield (
        f"Of {nodes} nodes in {len(seen)} graphs {freed} had lost what they saved, and your function found them "
        f"without a pass. Trying it out with backward() would have freed more of them."
    )


EXERCISE = Exercise(
    id="freed_nodes",
    title="Find what a pass has freed",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="freed_nodes(loss)",
    cases=_cases,
    judge=_judge,
    hints=(
        "Reading a saved tensor of a freed node raises an error. Read all of them, and look at what the error says.",
        "Two errors can come: one says that saved tensors have been freed, the other that one was modified in place. "
        "Only the first is what you look for.",
        "Walk over all nodes with a set of seen ones. For each name in dir(node) that begins with _saved_, "
        "getattr(node, name) inside try/except RuntimeError. Add the node where the message speaks of saved tensors "
        "that have already been freed.",
    ),
    misconceptions=(
        Misconception(
            "modified is not freed",
            "You named nodes whose saved tensor was written to in place. Reading it raises an error, too, but the "
            "tensor is still there.",
            _extra({"written": {"m", "z"}}),
        ),
        Misconception(
            "None is not freed",
            "You named a node that never saved one of its factors, because backward does not need it. What was never "
            "there was not freed.",
            _extra({"constant": {"h"}}),
        ),
        Misconception(
            "empty is not freed",
            "You named nodes that have nothing saved because their operations save nothing. They can run again.",
            lambda case, seen: _only_empty_ones_added(seen, _PARTLY[case.name][1]),
        ),
    ),
    debrief=_debrief,
    reaches=("getattr with a computed name", "next_functions", "vars"),
)
