"""Judging `count_saved_bytes`: count what a graph keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch

from course_utils.checks.compare import close, counted, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_03_graph_freeing import LESSON
from course_utils.checks.scenes.lesson_03_graph_freeing.count_saved_bytes import keeping
from course_utils.graph.trace import nodes_behind

_KEEPING = {
    "a graph that saves nothing": "nothing",
    "one result": "one result",
    "a second call for one graph, in which three nodes save a tensor": "used twice",
    "two views of one tensor": "two views",
    "a small model": "model",
    "a mask that lives anyway": "mask",
    "results that live anyway": "activations",
    "a node that keeps a tuple": "rows picked",
    "a number and buffers": "number and buffers",
    "thirty doublings": "doublings",
    "a second call for one graph, after a backward pass": "after backward",
    "after a pass through the upper part": "partly freed",
    "after a pass through one branch": "a branch freed",
}


def _cases(seed: int) -> list[Case]:
    cases = enumerate(_KEEPING.items())
    # From the seed, so that nobody knows the numbers of bytes beforehand.
    return [
        Case(
            name,
            {
                **{"scene": scene, "seed": seed + n, "rows": 3 + n % 3 + 3 * (seed // 1000 % 20)},
                "between": {"used twice": "nothing", "after backward": "a pass"}.get(scene),  # of two calls
            },
        )
        for n, (name, scene) in cases
    ]


class _Kept(NamedTuple):
    """A saved tensor: its storage, the bytes of that and its own, whose the memory is besides, and its kind.

    `follows` says whether it requires a gradient, `loss` whether it is the loss itself.
    """

    storage: int
    size: int
    own: int
    owner: str
    dim: int
    dtype: torch.dtype
    follows: bool
    loss: bool


def _when_saved(case: Case) -> list[_Kept]:
    """Return each tensor that is saved, as often as it is."""
    kept: list[tuple[torch.Tensor, bool]] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append((tensor.detach(), tensor.requires_grad))
        return kept[-1][0]

    with torch.random.fork_rng(devices=[]), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        torch.manual_seed(case.given["seed"])
        loss, besides = keeping(case)
    nodes = nodes_behind(loss)
    own = [node.variable for node in nodes if hasattr(node, "variable")]
    owners = {tensor.untyped_storage().data_ptr(): "besides" for tensor in besides}
    owners |= {tensor.untyped_storage().data_ptr(): "leaf" for tensor in own}
    number = _Kept(-1, 8, 8, "", 0, torch.float64, False, False)  # PyTorch tells no hook of it
    found = [number] if case.given["scene"] == "number and buffers" else []
    for tensor, follows in kept:
        storage = tensor.untyped_storage()
        owner = owners.get(storage.data_ptr(), "")
        sizes = storage.data_ptr(), storage.nbytes(), tensor.nbytes
        is_loss = storage.data_ptr() == loss.untyped_storage().data_ptr()
        found.append(_Kept(*sizes, owner, tensor.dim(), tensor.dtype, follows, is_loss))
    return found


def _own(case: Case) -> list[_Kept]:
    """Return what was saved and lives for the graph alone."""
    return [it for it in _when_saved(case) if not it.owner]


def _each_once(kept: Iterable[_Kept]) -> int:
    """Return the bytes of the storages, each counted once."""
    return sum({it.storage: it.size for it in kept}.values())


def _bytes(case: Case) -> int:
    match case.given["scene"]:
        case "after backward":
            return 0
        case "partly freed":
            return 4 * int(case.given["rows"]) * 5 * 4  # the four results that the pass did not reach
        case "a branch freed":
            return 3 * int(case.given["rows"]) * 5 * 4  # both factors, and what the sine keeps
    return _kept_with(case)


def _kept_with(case: Case, *others: str) -> int:
    """Return the bytes of all storages that were saved: the graph's own, and those that `others` own."""
    return _each_once(it for it in _when_saved(case) if it.owner in ("", *others))


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    message = "You called `saved`, which counts for you. Read what the nodes keep yourself."
    yield Finding("own count", not seen["by instrument"], message)
    if not (seen["freed"] and case.given["between"] == "a pass"):  # then the pass that frees was left out
        yield right_value(seen["returned"], _bytes(case), "The number of bytes")
    ran = seen["passes"]
    yield Finding("passes", ran == 0, f"Your function ran {counted(ran)}.")
    message = "After your function the graph does not keep what it kept before."
    yield Finding("untouched", not seen["freed"] or ran > 0, message)
    yield Finding("besides", seen["besides"], "Your function changed the list `besides`.")


def _counted(case: Case, seen: Observation, counted: float) -> bool:
    """Say whether the learner counted so, and wrongly. What was counted before a pass and not again is another slip."""
    wrong = case.given["between"] != "a pass" and not close(seen["returned"], float(_bytes(case)))
    return wrong and not seen["by instrument"] and close(seen["returned"], float(counted))


def _without_numbers(case: Case, seen: Observation) -> bool | None:
    """Tell whether tensors of no dimension are missing. A Python number alone may be missing for another reason."""
    without = _counted(case, seen, _each_once(it for it in _own(case) if it.dim))
    return None if without and case.given["scene"] == "number and buffers" else without


def _without_constants(case: Case, seen: Observation) -> bool | None:
    """Tell whether what requires no gradient is missing. Of picked rows the only such tensor is the one in a tuple."""
    without = _counted(case, seen, _each_once(it for it in _own(case) if it.follows))
    return None if without and case.given["scene"] == "rows picked" else without


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    cases = {case.given["scene"]: case for case, _ in seen}
    model, views = _when_saved(cases["model"]), _when_saved(cases["two views"])
    own, all_of_it = _bytes(cases["model"]), _each_once(model)
    yield (
        f"Small model: the nodes refer to {all_of_it} bytes, and {own} of them live for the graph alone. The rest are "
        f"weights and a batch, which live anyway."
    )
    yield (
        f"Two views: they look like {sum(it.own for it in views)} bytes and keep "
        f"{_bytes(cases['two views'])}, all of their base."
    )


EXERCISE = Exercise(
    id="count_saved_bytes",
    title="Count what a graph keeps",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="count_saved_bytes(loss, besides)",
    cases=_cases,
    judge=_judge,
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
            lambda case, seen: _counted(case, seen, sum(it.size for it in _own(case))),
        ),
        Misconception(
            "a view's own size",
            "Your number takes a view to be as large as it looks. A view keeps the whole memory of its base.",
            lambda case, seen: _counted(case, seen, sum({it.storage: it.own for it in _own(case)}.values())),
        ),
        Misconception(
            "as they look",
            "Your number adds up the saved tensors, each as large as it looks. Several share memory, which counts "
            "once, and a view keeps the whole memory of its base.",
            lambda case, seen: _counted(case, seen, sum(it.own for it in _own(case))),
        ),
        Misconception(
            "tuples left out",
            "Your number leaves out what a node keeps in a tuple. Look at each item in there.",
            # The only tuple in these graphs holds whole numbers, which pick rows.
            lambda case, seen: _counted(case, seen, _each_once(it for it in _own(case) if it.dtype != torch.int64)),
        ),
        Misconception(
            "no dimension left out",
            "Your number leaves out saved tensors of no dimension. One number takes memory, too.",
            _without_numbers,
        ),
        Misconception(
            "the loss left out",
            "Your number leaves out the loss itself where a node saved it as its result. The graph keeps that memory, "
            "too, and nobody said that it lives anyway.",
            lambda case, seen: _counted(case, seen, _each_once(it for it in _own(case) if not it.loss)),
        ),
        Misconception(
            "constants left out",
            "Your number leaves out saved tensors that require no gradient. A constant, a buffer or a statistic that a "
            "node keeps takes memory, too.",
            _without_constants,
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
    debrief=_debrief,
    reaches=(
        "getattr with a computed name",
        "next_functions",
        "_cdata",
        "torch.utils._pytree",
        "torch.utils._pytree.tree_leaves",
    ),
)
