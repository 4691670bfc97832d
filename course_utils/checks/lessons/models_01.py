"""Cases and judges of lesson 01 for graphs that an answer builds or repairs, and for the parameters behind a loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import nn

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Other, Value
from course_utils.checks.exercise import Finding
from course_utils.checks.lessons.reading_01 import abridged, no_passes
from course_utils.checks.observing.models_01 import broken_loss, gated_model, model_and_loss

# build_graph

# As `trace` prints it. A leaf is written as the name of its tensor.
WANTED: list[list[Any]] = [
    ["AddBackward0", [1, 0], [2, 0]],
    ["MulBackward0", [2, 0], None],
    ["ExpBackward0", [3, 1]],
    ["UnbindBackward0", [4, 0]],
    ["SubBackward0", [5, 0], [6, 0]],
    ["a"],
    ["b"],
]


def build_cases(seed: int) -> list[Case]:
    generator = torch.Generator().manual_seed(seed)
    sizes = {"a is 4 x 3, b has 3 numbers": ((4, 3), (3,)), "both are 2 x 5": ((2, 5), (2, 5))}
    return [
        Case(name, {x: Array.of(torch.rand(size, generator=generator)) for x, size in zip("ab", pair, strict=True)})
        for name, pair in sizes.items()
    ]


def judge_build(case: Case, seen: Observation) -> Iterator[Finding]:
    nodes = seen["nodes"]
    if nodes is None:
        yield Finding("type", False, f"What you returned is {describe(seen['returned'])}; expected a tensor.")
        return
    message = f"Your function changed the numbers in {listed(seen['changed'])}."
    yield Finding("numbers", not seen["changed"], message)
    message = f"Your function wrote to .grad of {listed(seen['graded'])}. No backward pass is asked for."
    yield Finding("grad", not seen["graded"], message)
    message = f"{first_difference(nodes)} This is the graph of your result:\n{written(nodes)}"
    yield Finding("graph", nodes == WANTED, message)


def first_difference(nodes: list[list[Any]]) -> str:
    """Say in one sentence where a graph is not the wanted one."""
    for index, (wanted, node) in enumerate(zip(WANTED, nodes, strict=False)):
        if node[0] != wanted[0]:
            return f"Node {index} is {_called(node)}; the wanted one is {_called(wanted)}."
        if node != wanted:
            ends, others = (_ends(it) or "nothing" for it in (node, wanted))
            return f"Node {index}, {_called(node)}, has edges to {ends}; the wanted ones are to {others}."
    return f"Your graph has {len(nodes)} nodes; the wanted one has {len(WANTED)}."


def _called(node: list[Any]) -> str:
    return {"a": "the leaf a", "b": "the leaf b"}.get(node[0], str(node[0]))


def _ends(node: list[Any]) -> str:
    edges = ("none" if it is None else f"{it[0]} (output {it[1]})" if it[1] else f"{it[0]}" for it in node[1:])
    return ", ".join(edges)


def written(nodes: list[list[Any]]) -> str:
    """Write a graph as `trace` does."""
    if not nodes:
        return "no graph: nothing was recorded"
    lines = []
    for index, node in enumerate(nodes):
        ends, leaf = _ends(node), "leaf " if node[0] in ("a", "b") else ""
        lines.append(f"{index} {node[0]} -> {ends}" if ends else f"{index} {leaf}{node[0]}")
    return "\n".join(lines)


def calculated_twice(case: Case, seen: Observation) -> bool:
    return _names(seen)["ExpBackward0"] == 2


def selected(case: Case, seen: Observation) -> bool:
    names = _names(seen)
    return bool(names["SelectBackward0"]) and not names["UnbindBackward0"]


def no_none(case: Case, seen: Observation) -> bool:
    nodes = seen["nodes"] or []
    return bool(nodes) and _names(seen)["MulBackward0"] > 0 and all(None not in node for node in nodes)


def other_order(case: Case, seen: Observation) -> bool:
    """Tell whether the graph is the wanted one but for the order of inputs."""
    nodes = seen["nodes"]
    if not nodes or nodes == WANTED:
        return False
    return _unordered(nodes, 0) == _unordered(WANTED, 0) and len(nodes) == len(WANTED)


def _unordered(nodes: list[list[Any]], index: int) -> str:
    name, *edges = nodes[index]
    if len(nodes) > 2 * len(WANTED):
        return ""
    parts = sorted("none" if edge is None else f"{edge[1]}:{_unordered(nodes, edge[0])}" for edge in edges)
    return f"{name}({', '.join(parts)})"


def _names(seen: Observation) -> Counter[str]:
    return Counter(node[0] for node in seen["nodes"] or [])


# connected_loss


def loss_cases(seed: int) -> list[Case]:
    generator = torch.Generator().manual_seed(seed)
    sizes = {"stem.weight": (3, 5), "stem.bias": (3,), "gate.weight": (3, 3), "gate.bias": (3,)}
    sizes |= {"head.weight": (2, 3), "head.bias": (2,), "log_scale": ()}

    def numbers(size: tuple[int, ...]) -> Array:
        return Array.of(torch.rand(size, generator=generator, dtype=torch.float64) * 1.4 - 0.5)

    return [
        Case(name, {part: numbers(size) for part, size in {**sizes, "x": (rows, 5), "target": (rows, 2)}.items()})
        for name, rows in {"four samples of float64": 4, "three samples of float64": 3}.items()
    ]


def judge_loss(case: Case, seen: Observation) -> Iterator[Finding]:
    value = right_value(seen["returned"], _cut_loss(gated_model(case), case), "Your loss")
    yield value
    given = [name for name in ("x", "target") if not close(seen[name], case.given[name].tensor())]
    yield Finding("inputs", not given, f"Your function changed the numbers in {listed(given)}.")
    changed = seen["changed"]
    yield Finding("parameters", not changed, f"Your function changed the numbers in {listed(changed)}.")
    graded = seen["graded"]
    yield Finding("grad", not graded, f"Your function changed .grad of {listed(graded)}.")
    if not seen["recorded"]:
        yield Finding("graph", False, "The loss that you returned was not made by a recorded operation.")
        return
    if "reached" not in seen:  # not one number: that is said already
        return
    names = [name for name in case.given if name not in ("x", "target")]
    missing = [name for name in names if name not in seen["reached"]]
    yield Finding("reached", not missing, f"The graph of your loss does not reach {listed(missing)}.")
    strangers = seen["strangers"]
    yield Finding("own leaves", not strangers, _ends_in(strangers))
    refused = seen["refused"]
    yield Finding("backward", not refused, f"A backward pass from your loss raises: {refused}")
    if not value.ok:
        return
    compared = [name for name in names if name not in missing and not refused]
    wrong = [name for name in compared if not _right_slope(case, name, seen["grads"].get(name))]
    message = f"The gradient of {listed(wrong)} is not the slope of the loss: a path to it is missing, or one too many."
    yield Finding("gradient", not wrong, message)


def _ends_in(strangers: list[str | list[int]]) -> str:
    leaves = [leaf if isinstance(leaf, str) else f"a leaf of shape {tuple(leaf)}" for leaf in strangers]
    are = "is no parameter" if len(leaves) == 1 else "are no parameters"
    return f"The graph of your loss ends in {abridged(list(dict.fromkeys(leaves)))}, which {are} of the model."


def _cut_loss(model: nn.Module, case: Case) -> torch.Tensor:
    return broken_loss(model, case.given["x"].tensor(), case.given["target"].tensor()).detach()


def _right_slope(case: Case, name: str, received: Value) -> bool:
    """Compare a gradient with a finite difference along a random direction. The cut loss has the right numbers."""
    model = gated_model(case)
    parameter = model.get_parameter(name).data
    if not isinstance(received, Array) or received.shape != tuple(parameter.shape):
        return False
    step, generator = 1e-5, torch.Generator().manual_seed(5)
    direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    parameter += step * direction
    above = _cut_loss(model, case)
    parameter -= 2 * step * direction
    slope = (above - _cut_loss(model, case)) / (2 * step)
    return bool(torch.isclose((received.tensor() * direction).sum().double(), slope, rtol=1e-5, atol=1e-8))


def flag_on_a_copy(case: Case, seen: Observation) -> bool:
    return isinstance(seen["returned"], Array) and seen["flagged"] and not seen["recorded"]


def wrapped_again(case: Case, seen: Observation) -> bool:
    strangers = seen.get("strangers", [])
    return bool(strangers) and all(isinstance(leaf, list) for leaf in strangers) and seen["recorded"]


def input_overwritten(case: Case, seen: Observation) -> bool:
    return not close(seen["x"], case.given["x"].tensor())


def one_path_cut(case: Case, seen: Observation) -> bool:
    """Tell whether everything is reached and still a gradient is wrong."""
    failed = {finding.prop for finding in judge_loss(case, seen) if not finding.ok}
    return failed == {"gradient"}


# without_gradient


def model_cases(seed: int) -> list[Case]:
    x = Array.of(torch.rand(2, 3, generator=torch.Generator().manual_seed(seed)) + 0.2)
    cases: dict[str, dict[str, Any]] = {
        "everything learns": {"model": "plain"},
        "a frozen layer in the middle": {"model": "frozen middle"},
        "a cut, and a layer nobody uses": {"model": "cut and unused"},
        "a cut on one of two paths": {"model": "cut on one path"},
        "tied weights": {"model": "tied"},
        "a loss term times zero": {"model": "switched off"},
        "a loss without a graph": {"model": "no grad"},
        ".grad from an earlier pass": {"model": "cut and unused", "has grad": ["stem.weight", "spare.bias"]},
        "flags changed after the forward pass": {
            **{"model": "frozen middle", "unfrozen after": ["2.bias"], "frozen after": ["0.weight"]},
        },
        "a recurrent loop": {"model": "unrolled"},
        "two layers with equal numbers": {"model": "equal numbers"},
        "a layer with buffers": {"model": "with buffers"},
        "a frozen layer that is used twice": {"model": "layer twice"},
        "40 doublings": {"model": "doubled"},
        "a chain of 3,500 operations": {"model": "chained"},
    }
    return [Case(name, {**given, "x": x}) for name, given in cases.items()]


def learning(case: Case) -> dict[str, bool]:
    """Say for each name of a parameter whether a real backward pass leaves a gradient there."""
    changes = (tuple(case.given.get(f"{what} after", ())) for what in ("frozen", "unfrozen"))
    return _learning(case.given["model"], case.given["x"], *changes)


@cache  # building the longest graphs takes longer than all the rest
def _learning(name: str, x: Array, frozen: tuple[str, ...], unfrozen: tuple[str, ...]) -> dict[str, bool]:
    given = {"model": name, "x": x, "frozen after": frozen, "unfrozen after": unfrozen}
    model, loss = model_and_loss(Case("", given))
    if loss.requires_grad:
        torch.autograd.backward(loss)
    return {name: it.grad is not None for name, it in model.named_parameters(remove_duplicate=False)}


def names_for(case: Case) -> list[str]:
    return sorted(name for name, learns in learning(case).items() if not learns)


def judge_names(case: Case, seen: Observation) -> Iterator[Finding]:
    received, learns = seen["returned"], learning(case)
    if not isinstance(received, list):
        yield Finding("type", False, f"What you returned is {describe(received)}; expected a list of names.")
        return
    odd = [item for item in received if type(item) is not str]
    if odd:
        yield Finding("type", False, f"Your list holds {_odd(odd[0])}; expected names of parameters, as text.")
        return
    unknown = sorted(set(received) - set(learns))
    yield Finding("parameters", not unknown, f"You list {abridged(unknown)}: the model has no parameter of that name.")
    extra = sorted(name for name in set(received) if learns.get(name, False))
    yield Finding("extra", not extra, f"You list {abridged(extra)}, where backward would leave a gradient.")
    missing = sorted(name for name in learns if not learns[name] and name not in received)
    yield Finding("missing", not missing, f"You do not list {abridged(missing)}, where backward leaves no gradient.")
    yield Finding("once", len(set(received)) == len(received), "Your list holds a name more than once.")
    yield Finding("sorted", received == sorted(received), f"Your list begins {received[:2]}, which is not sorted.")
    yield no_passes(seen)
    graded = seen["graded"]
    yield Finding("grad", not graded, f"Your function changed .grad of {listed(graded)}.")
    flags = seen["flags"]
    yield Finding("flags", not flags, f"Your function changed requires_grad of {listed(flags)}.")


def only_frozen(case: Case, seen: Observation) -> bool:
    return bool(seen["returned"] == sorted(_by_flag(case, False)) != names_for(case))


def frozen_left_out(case: Case, seen: Observation) -> bool:
    live = _by_flag(case, True)
    return bool(seen["returned"] == [name for name in names_for(case) if name in live] != names_for(case))


def second_name_left_out(case: Case, seen: Observation) -> bool:
    model, _ = model_and_loss(case)
    once = dict(model.named_parameters())
    return bool(seen["returned"] == [name for name in names_for(case) if name in once] != names_for(case))


def compared_numbers(case: Case, seen: Observation) -> bool:
    """Tell whether names are missing because another parameter, one that learns, holds the same numbers."""
    learns, parameters = learning(case), dict(model_and_loss(case)[0].named_parameters(remove_duplicate=False))
    known = [parameters[name] for name in learns if learns[name]]
    others = [name for name in names_for(case) if not any(torch.equal(parameters[name], it) for it in known)]
    return bool(seen["returned"] == others != names_for(case))


def buffers_too(case: Case, seen: Observation) -> bool:
    received, buffers = seen["returned"], dict(model_and_loss(case)[0].named_buffers())
    if not isinstance(received, list) or any(type(name) is not str for name in received):
        return False
    return [name for name in received if name not in buffers] == names_for(case) != received


def nothing_without_a_graph(case: Case, seen: Observation) -> bool:
    return bool(case.given["model"] == "no grad" and seen["returned"] == [])


def by_stored_grad(case: Case, seen: Observation) -> bool:
    held = case.given.get("has grad", ())
    return bool(seen["returned"] == [name for name in sorted(learning(case)) if name not in held] != names_for(case))


def frozen_too_late(case: Case, seen: Observation) -> bool:
    late = case.given.get("frozen after", ())
    return bool(late) and bool(seen["returned"] == [name for name in names_for(case) if name not in late])


def ran_backward(case: Case, seen: Observation) -> bool:
    return bool(seen["passes"])


def _by_flag(case: Case, flag: bool) -> list[str]:
    model, _ = model_and_loss(case)
    return [name for name, it in model.named_parameters(remove_duplicate=False) if it.requires_grad is flag]


def _odd(item: Value) -> str:
    return f"a {item.kind}" if isinstance(item, Other) else describe(item)
