"""Running an answer to `split_at_trunk`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.observers.passes import count_passes
from course_utils.checks.scenes.lesson_04_retain_graph.split_at_trunk import many_headed
from course_utils.graph.alive import Memory
from course_utils.graph.saved import saved


def observe(answer: Answer, case: Case) -> Observation:
    trunk, heads, inputs = many_headed(case)
    leaves = _leaves(trunk, heads, inputs)
    before = _values(leaves)
    runs = [0] * (1 + len(heads))
    hidden = Memory()
    alive: list[int] = []
    results: list[torch.Tensor] = []
    passes: set[int] = set()

    def start(number: int) -> Callable[..., None]:
        def hook(*given: Any) -> None:
            runs[number] += 1
            if number:
                alive.append(hidden.alive())

        return hook

    for number, part in enumerate([trunk, *heads]):
        part.register_forward_pre_hook(start(number))
        part.register_forward_hook(lambda module, given, result: results.append(result))
    # A pass that adds to h.grad runs the node that made h, and none behind it: so ask deeper.
    lowest: nn.Module = trunk.first  # type: ignore[assignment]
    lowest.register_forward_hook(lambda module, given, result: count_passes(result, passes))
    for head in heads:
        inner: nn.Module = head.hidden  # type: ignore[assignment]
        inner.register_forward_hook(lambda module, given, result: hidden.add(result))
    given = list(heads)
    around = Surroundings(trunk, *heads, inputs, lists=[given])
    returned = plain(answer(trunk, given, inputs))
    return {
        "returned": returned,
        "gradients": {name: plain(leaf.grad) for name, leaf in leaves.items()},
        "runs": runs,
        "alive": alive,
        "passes": len(passes),
        "kept": saved(*results, besides=[inputs]).bytes if all(type(item) is torch.Tensor for item in results) else 0,
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
