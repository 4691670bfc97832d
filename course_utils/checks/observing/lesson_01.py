"""Observers for lesson 01."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import Node, get_gradient_edge

from course_utils.checks.data import Array, Case, Observation, Value, plain, type_name
from course_utils.checks.observing.graphs_01 import Named, graph_of, outputs_of
from course_utils.checks.observing.models_01 import gated_model, model_and_loss
from course_utils.checks.observing.watch import engine_passes
from course_utils.graph import trace as graphs

Answer = Callable[..., Any]


def walk(answer: Answer, case: Case) -> Observation:
    tensor, _ = graph_of(case)
    nodes = graphs.nodes_behind(
        tensor
    )  # kept: the node of a leaf that no operation uses lives as long as someone holds it
    number = {id(node): index for index, node in enumerate(nodes)}
    with engine_passes(*_tracked(tensor)) as passes:
        results = [answer(tensor) for _ in range(case.given.get("calls", 1))]

    def place_of(item: object) -> Value:
        if id(item) in number:
            return number[id(item)]
        return ["node", type_name(item)] if isinstance(item, Node) else type_name(item)

    seen: Observation = {"returned": [_items(result, place_of) for result in results], "passes": len(passes)}
    if tensor.is_leaf and tensor.requires_grad:
        seen["behind a result"] = _items(answer(tensor.exp()), type_name)
    return seen


def leaves_of(answer: Answer, case: Case) -> Observation:
    tensor, named = graph_of(case)
    names = {id(leaf): name for name, leaf in named.items()}
    before = {name: Array.of(leaf) for name, leaf in named.items()}
    with engine_passes(*_tracked(tensor)) as passes:
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
    graded = [name for name, leaf in named.items() if leaf.is_leaf and leaf.grad is not None]
    return {"returned": _items(result, name_of), "passes": len(passes), "changed": changed, "graded": graded}


def used_outputs(answer: Answer, case: Case) -> Observation:
    tensor, parts = outputs_of(case)
    node = get_gradient_edge(parts[0]).node
    with engine_passes(*_tracked(tensor)) as passes:
        results = [plain(answer(tensor, node)) for _ in range(case.given.get("calls", 1))]
    return {"returned": results[-1], "first": results[0], "passes": len(passes)}


def build_graph(answer: Answer, case: Case) -> Observation:
    a, b = (case.given[name].tensor().requires_grad_() for name in "ab")
    owners = {id(a): "a", id(b): "b"}
    tensor = answer(a, b)
    seen: Observation = {"returned": plain(tensor), "nodes": None}
    if type(tensor) is torch.Tensor:
        nodes = graphs.nodes_behind(tensor)
        graph = graphs.describe(nodes, graphs.roots_of([tensor]))
        seen["nodes"] = [
            [owners.get(id(live.variable), "another leaf")]
            if node.is_leaf
            else [node.name, *([edge.node, edge.output] if edge else None for edge in node.inputs)]
            for node, live in zip(graph.nodes, nodes, strict=True)
        ]
    seen["changed"] = [name for name, leaf in (("a", a), ("b", b)) if Array.of(leaf) != case.given[name]]
    seen["graded"] = [name for name, leaf in (("a", a), ("b", b)) if leaf.grad is not None]
    return seen


def connected_loss(answer: Answer, case: Case) -> Observation:
    model = gated_model(case)
    x, target = case.given["x"].tensor(), case.given["target"].tensor()
    parameters = dict(model.named_parameters())
    for parameter in parameters.values():
        parameter.grad = torch.ones_like(parameter)
    held = {name: plain(parameter.grad) for name, parameter in parameters.items()}
    loss = answer(model, x, target)
    seen: Observation = {"returned": plain(loss), "flagged": False, "recorded": False, "grads": {}, "refused": ""}
    seen["x"], seen["target"] = Array.of(x), Array.of(target)
    seen["changed"] = [name for name, parameter in parameters.items() if Array.of(parameter) != case.given[name]]
    seen["graded"] = [name for name, parameter in parameters.items() if plain(parameter.grad) != held[name]]
    if type(loss) is torch.Tensor and loss.requires_grad:
        seen["flagged"], seen["recorded"] = True, not loss.is_leaf
    if seen["recorded"] and loss.dim() == 0:
        leaves = [node.variable for node in graphs.nodes_behind(loss) if type(node).__name__ == graphs.ACCUMULATE]
        own = {id(parameter) for parameter in parameters.values()}
        given = {id(x): "x", id(target): "target"}
        strangers = [leaf for leaf in leaves if id(leaf) not in own]
        seen["strangers"] = [given.get(id(leaf), list(leaf.shape)) for leaf in strangers]
        seen["reached"] = [name for name, it in parameters.items() if any(it is leaf for leaf in leaves)]
        try:
            grads = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        except RuntimeError as error:  # backward refuses the learner's graph
            seen["refused"] = str(error).splitlines()[0]
        else:
            seen["grads"] = {name: plain(grad) for name, grad in zip(parameters, grads, strict=True)}
    return seen


def without_gradient(answer: Answer, case: Case) -> Observation:
    model, loss = model_and_loss(case)
    held = {name: plain(parameter.grad) for name, parameter in model.named_parameters()}
    flags = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    with engine_passes(*_tracked(loss)) as passes:
        result = plain(answer(model, loss))
    now = dict(model.named_parameters())
    return {
        "returned": result,
        "passes": len(passes),
        "graded": [name for name in held if name in now and plain(now[name].grad) != held[name]],
        "flags": [name for name in flags if name in now and now[name].requires_grad != flags[name]],
    }


def _tracked(tensor: torch.Tensor) -> list[torch.Tensor]:
    return [tensor] if tensor.requires_grad else []


def _items(result: object, place: Callable[[object], Value]) -> Value:
    """Describe each item of a returned list, tuple or set; anything else as plain data that is no list."""
    if type(result) in (list, tuple, set):
        items: Iterable[object] = result  # type: ignore[assignment]
        return [place(item) for item in items]
    return plain(result)


def _twin(item: torch.Tensor, named: Named) -> str | None:
    """Name the tensor that has the numbers of `item`, or its memory."""
    if item.layout is not torch.strided or item.is_meta:
        return None
    for name, tensor in named.items():
        if item.shape == tensor.shape and item.dtype == tensor.dtype and torch.equal(item.detach(), tensor.detach()):
            return name
    return None
