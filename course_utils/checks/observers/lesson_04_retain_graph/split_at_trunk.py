"""Running an answer to `split_at_trunk`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.loops import plain_tensor
from course_utils.checks.observers.passes import count_passes, every_pass
from course_utils.checks.observers.runs import notice
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.scenes.lesson_04_retain_graph.split_at_trunk import many_headed
from course_utils.graph.alive import Memory


def observe(answer: Answer, case: Case) -> Observation:
    trunk, heads, inputs = many_headed(case)
    leaves = _leaves(trunk, heads, inputs)
    before = _values(leaves)
    runs = [0] * (1 + len(heads))
    hidden = Memory()
    alive: list[int] = []
    through: set[int] = set()

    def start(number: int) -> Callable[[], None]:
        def begins() -> None:
            runs[number] += 1
            if number:
                alive.append(hidden.alive())

        return begins

    for number, part in enumerate([trunk, *heads]):
        notice(part, lambda module, given, result: None, start(number), name="runs")
    # A pass that adds to h.grad runs the node that made h, and none behind it: so ask deeper.
    lowest: nn.Module = trunk.first  # type: ignore[assignment]
    notice(lowest, lambda module, given, result: count_passes(plain_tensor(result), through))
    for head in heads:
        inner: nn.Module = head.hidden  # type: ignore[assignment]
        notice(inner, lambda module, given, result: hidden.add(plain_tensor(result)))
    given = list(heads)
    around = Surroundings(trunk, *heads, inputs, lists=[given])
    with every_pass() as passes:
        returned = plain(answer(trunk, given, inputs))
    return {
        "returned": returned,
        "gradients": {name: plain(leaf.grad) for name, leaf in leaves.items()},
        "runs": runs,
        "alive": alive,
        "through": len(through),
        "passes": len(passes),
        "retained": sum(it.kept for it in passes),
        "moved": _values(leaves) != before,
        "left": around.changed(),
    }


def _leaves(trunk: nn.Module, heads: list[nn.Module], inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    leaves: dict[str, torch.Tensor] = {f"trunk.{name}": leaf for name, leaf in trunk.named_parameters()}
    seen: set[int] = set()
    for number, head in enumerate(heads):
        for name, leaf in head.named_parameters():
            if id(leaf) not in seen:
                seen.add(id(leaf))
                leaves[f"head {number}.{name}"] = leaf
    return {**leaves, "inputs": inputs}


def _values(leaves: dict[str, torch.Tensor]) -> list[Array]:
    return [Array.of(leaf) for leaf in leaves.values()]
