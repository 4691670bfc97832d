"""Running an answer to `connected_loss`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.lesson_01_graph_structure.connected_loss import gated_model, move_on
from course_utils.graph import trace as graphs


def observe(answer: Answer, case: Case) -> Observation:
    model = gated_model(case)
    x, target = case.given["x"].tensor(), case.given["target"].tensor()
    parameters = dict(model.named_parameters())
    for parameter in parameters.values():
        parameter.grad = torch.ones_like(parameter)
    versions = x._version, target._version
    held = {name: plain(parameter.grad) for name, parameter in parameters.items()}
    with every_pass() as passes:
        loss = answer(model, x, target)
    seen: Observation = {
        "returned": plain(loss),
        "passes": len(passes),
        "flagged": False,
        "recorded": False,
        "grads": {},
        "refused": "",
    }
    seen["x"], seen["target"] = Array.of(x), Array.of(target)
    # Numbers that are moved and moved back may come out as they were, or not: rounding decides.
    seen["written"] = [
        what for what, it, then in zip(("x", "target"), (x, target), versions, strict=True) if it._version != then
    ]
    seen["changed"] = [name for name, parameter in parameters.items() if Array.of(parameter) != case.given[name]]
    seen["graded"] = [name for name, parameter in parameters.items() if plain(parameter.grad) != held[name]]
    seen["frozen"] = [name for name, parameter in parameters.items() if not parameter.requires_grad]
    if type(loss) is torch.Tensor and loss.requires_grad:
        seen["flagged"], seen["recorded"] = True, not loss.is_leaf
    if seen["recorded"] and loss.dim() == 0:
        leaves = [node.variable for node in graphs.nodes_behind(loss) if type(node).__name__ == graphs.ACCUMULATE]
        own = {id(parameter) for parameter in parameters.values()}
        given = {id(x): "x", id(target): "target"}
        strangers = [leaf for leaf in leaves if id(leaf) not in own]
        seen["strangers"] = [given.get(id(leaf), list(leaf.shape)) for leaf in strangers]
        seen["reached"] = [name for name, it in parameters.items() if any(it is leaf for leaf in leaves)]
        asked = {name: parameter for name, parameter in parameters.items() if parameter.requires_grad}
        try:
            grads = torch.autograd.grad(loss, list(asked.values()), allow_unused=True)
        except RuntimeError as error:  # backward refuses the learner's graph
            seen["refused"] = str(error).splitlines()[0]
        else:
            seen["grads"] = {name: plain(grad) for name, grad in zip(asked, grads, strict=True)}
    move_on(model, x)
    seen["again"] = plain(answer(model, x, target))
    return seen
