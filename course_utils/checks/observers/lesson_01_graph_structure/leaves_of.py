"""Running an answer to `leaves_of`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Answer, Array, Case, Observation, Value, plain, type_name
from course_utils.checks.observers.lesson_01_graph_structure.reading import items
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.lesson_01_graph_structure.graphs import Named, graph_of, write_to


def observe(answer: Answer, case: Case) -> Observation:
    tensor, named = graph_of(case)
    if case.given.get("written"):
        answer(tensor)
        write_to(tensor, named)
    for leaf in list(named.values())[::2]:  # some hold a gradient from before, some hold none
        leaf.grad = torch.full_like(leaf, 7.0)
    held = {name: plain(leaf.grad) for name, leaf in named.items()}
    names = {id(leaf): name for name, leaf in named.items()}
    before = {name: Array.of(leaf) for name, leaf in named.items()}
    flags = {name: leaf.requires_grad for name, leaf in named.items()}
    with every_pass() as passes:
        for _ in range(case.given.get("calls", 1)):
            result = answer(tensor)

    def name_of(item: Any) -> Value:
        if id(item) in names:
            return names[id(item)]
        if item is tensor:
            return ["itself", ""]
        if type(item) in (torch.Tensor, nn.Parameter) and (twin := _twin(item, named)):
            return ["copy", twin]
        return ["type", type_name(item)]

    changed = [name for name, leaf in named.items() if Array.of(leaf) != before[name]]
    graded = [name for name, leaf in named.items() if plain(leaf.grad) != held[name]]
    return {
        "returned": items(result, name_of),
        "passes": len(passes),
        "changed": changed,
        "graded": graded,
        "flags": [name for name, leaf in named.items() if leaf.requires_grad != flags[name]],
    }


def _twin(item: torch.Tensor, named: Named) -> str | None:
    """Name the tensor that has the numbers of `item`, or its memory."""
    if item.layout is not torch.strided or item.is_meta:
        return None
    for name, tensor in named.items():
        if item.shape == tensor.shape and item.dtype == tensor.dtype and torch.equal(item.detach(), tensor.detach()):
            return name
    return None
