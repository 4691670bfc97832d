"""Exercises of lesson 03: predictions, reading what graphs keep, and keeping less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.frugal_03 import frugal, train
from course_utils.checks.lessons.predict_03 import LESSON, predict_alive, predict_second_backward
from course_utils.checks.observing.scenes_03 import keeping
from course_utils.graph.trace import nodes_behind

# Counting bytes. The oracle sees each tensor at the moment when an operation saves it.

_KEEPING = {
    "a graph that saves nothing": "nothing",
    "one result": "one result",
    "a tensor that three nodes save": "used twice",
    "two views of one tensor": "two views",
    "a small model": "model",
    "a mask that lives anyway": "mask",
    "a node that keeps a tuple": "rows picked",
    "thirty doublings": "doublings",
    "after backward": "after backward",
    "after a pass through the upper part": "partly freed",
}


def _graphs_to_count(seed: int) -> list[Case]:
    cases = enumerate(_KEEPING.items())
    return [Case(name, {"scene": scene, "seed": seed + n, "rows": 3 + n % 3}) for n, (name, scene) in cases]


def _when_saved(case: Case) -> list[tuple[int, int, int, str]]:
    """Return storage, its bytes, the tensor's own bytes, and whose the memory is besides, for each saved tensor."""
    kept: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.detach())
        return kept[-1]

    with torch.random.fork_rng(devices=[]), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        torch.manual_seed(case.given["seed"])
        loss, besides = keeping(case)
    nodes = nodes_behind(loss)
    own = [node.variable for node in nodes if hasattr(node, "variable")]
    owners = {tensor.untyped_storage().data_ptr(): "besides" for tensor in besides}
    owners |= {tensor.untyped_storage().data_ptr(): "leaf" for tensor in own}
    storages = [tensor.untyped_storage() for tensor in kept]
    return [
        (storage.data_ptr(), storage.nbytes(), tensor.nbytes, owners.get(storage.data_ptr(), ""))
        for storage, tensor in zip(storages, kept, strict=True)
    ]


def _bytes(case: Case) -> int:
    match case.given["scene"]:
        case "after backward":
            return 0
        case "partly freed":
            return int(case.given["rows"]) * 5 * 4  # the result of exp, which the pass did not reach
    return _kept_with(case)


def _kept_with(case: Case, *others: str) -> int:
    """Return the bytes of all storages that were saved: the graph's own, and those that `others` own."""
    return sum({storage: size for storage, size, _, owner in _when_saved(case) if owner in ("", *others)}.values())


def _judge_count(case: Case, seen: Observation) -> Iterator[Finding]:
    message = "You called `saved`, which counts for you. Read what the nodes keep yourself."
    yield Finding("own count", not seen["by instrument"], message)
    yield right_value(seen["returned"], _bytes(case), "The number of bytes")
    yield Finding("untouched", seen["passes"] == 0 and not seen["freed"], "Your function ran a backward pass.")
    yield Finding("besides", seen["besides"], "Your function changed the list `besides`.")


def _counted(case: Case, seen: Observation, counted: float) -> bool:
    return not seen["by instrument"] and close(seen["returned"], float(counted))


count_saved_bytes = Exercise(
    id="count_saved_bytes",
    title="Count what a graph keeps",
    lesson=LESSON,
    difficulty=3,
    minutes=25,
    points=3,
    call="count_saved_bytes(loss, besides)",
    cases=_graphs_to_count,
    judge=_judge_count,
    hints=(
        "Visit every node once. Look at the attributes whose names begin with _saved_. Not all of them are tensors.",
        "Memory belongs to storages. tensor.untyped_storage() has data_ptr() and nbytes(). Collect sizes by address.",
        "Walk over next_functions with a set of seen nodes. From AccumulateGrad nodes note the storage of .variable, "
        "and from `besides` theirs. For every other node take each name in dir(node) that begins with _saved_; reading "
        "a freed one raises RuntimeError. A value may be a tensor or a tuple that holds some. Put address: bytes into "
        "a dict unless the address is one of those noted, and sum the values.",
    ),
    misconceptions=(
        Misconception(
            "counted twice",
            "Your number counts some memory more than once: it adds up saved tensors, and several share memory.",
            lambda case, seen: _counted(case, seen, sum(size for _, size, _, owner in _when_saved(case) if not owner)),
        ),
        Misconception(
            "a view's own size",
            "Your number takes a view to be as large as it looks. A view keeps the whole memory of its base.",
            lambda case, seen: _counted(
                case, seen, sum({place: size for place, _, size, owner in _when_saved(case) if not owner}.values())
            ),
        ),
        Misconception(
            "leaves included",
            "Your number includes the memory of leaves or of the tensors in `besides`, or of views of them. Those "
            "tensors live anyway.",
            lambda case, seen: any(
                _counted(case, seen, _kept_with(case, *owners))
                for owners in (("leaf",), ("besides",), ("leaf", "besides"))
            ),
        ),
    ),
)


# Finding what is freed. What is right was worked out by hand.

_PARTLY: dict[str, tuple[str, set[str]]] = {
    "nothing has run": ("fresh", set()),
    "a pass through the upper part": ("upper part", {"m", "z"}),
    "a pass through one branch": ("one branch", {"trunk", "left"}),
    "a pass through each branch": ("both branches", {"left", "right"}),
    "a factor that was never saved": ("constant", {"m"}),
    "a write in place": ("written", {"top"}),
    "a pass that retained": ("retained", set()),
    "a node that keeps a tuple": ("rows picked", {"picked", "m"}),
    "thirty doublings": ("doublings", {"h"}),
}
# Operations that save nothing.
_EMPTY = {"AccumulateGrad", "AddBackward0", "SumBackward0"}


def _partial_passes(seed: int) -> list[Case]:
    return [Case(name, {"scene": scene, "seed": seed + n}) for n, (name, (scene, _)) in enumerate(_PARTLY.items())]


def _names(seen: Observation) -> set[str] | None:
    """Return the names of the nodes that were returned; None where something else was."""
    returned = seen["returned"]
    if not isinstance(returned, list) or not all(isinstance(item, str) for item in returned):
        return None
    return set(returned)


def _what_came(returned: Value) -> str | None:
    """Say what is wrong with what came back as a collection of nodes; None where it is one, each node once."""
    if not isinstance(returned, list):
        return f"You returned {describe(returned)}; expected a set of nodes."
    others = [item for item in returned if not isinstance(item, str)]
    if others:
        kind = others[0][1] if isinstance(others[0], list) else "another type"
        return f"What you returned holds something of type {kind} that is no node of this graph."
    if len(set(map(str, returned))) < len(returned):
        return "What you returned holds a node more than once."
    return None


def _judge_freed(case: Case, seen: Observation) -> Iterator[Finding]:
    problem = _what_came(seen["returned"])
    yield Finding("kind", problem is None, problem or "")
    if problem is None:
        yield from _compare_freed(_names(seen) or set(), _PARTLY[case.name][1], seen["kinds"])
    quiet = seen["passes"] == 0 and not seen["freed"] and not seen["changed"]
    message = "Your function ran a backward pass, or changed a tensor or a gradient. Reading is enough."
    yield Finding("untouched", quiet, message)


def _compare_freed(names: set[str], right: set[str], kinds: dict[str, str]) -> Iterator[Finding]:
    missing = len(right - names)
    yield Finding("all", not missing, f"You missed {missing} of {len(right)} nodes whose saved tensors are gone.")
    extra = listed(sorted({kinds[name] for name in names - right}))
    yield Finding("only", names <= right, f"You named nodes that no pass has freed. Their kind: {extra}.")


def _extra(wrong: dict[str, set[str]]) -> Any:
    def explains(case: Case, seen: Observation) -> bool:
        return _names(seen) == _PARTLY[case.name][1] | wrong.get(case.given["scene"], {"nothing has this name"})

    return explains


def _only_empty_ones_added(seen: Observation, right: set[str]) -> bool:
    names = _names(seen) or set()
    return names > right and {seen["kinds"][name] for name in names - right} <= _EMPTY


freed_nodes = Exercise(
    id="freed_nodes",
    title="Find what a pass has freed",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="freed_nodes(loss)",
    cases=_partial_passes,
    judge=_judge_freed,
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
            _extra({"written": {"h", "z"}}),
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
)

EXERCISES = (predict_second_backward, predict_alive, count_saved_bytes, train, freed_nodes, frugal)
