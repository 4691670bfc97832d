"""Judging `backward_engine`: challenge: write a backward engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import torch

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Other
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_02_how_backward_works import LESSON
from course_utils.checks.judges.lesson_02_how_backward_works.shared_edges import ONE_EDGE_FOR_TWO, two_edges_at_once
from course_utils.checks.scenes.lesson_02_how_backward_works.graphs import SCENES, Scene
from course_utils.graph.trace import nodes_behind

# What a wrong idea may spoil in a scene, where the values alone do not tell.
_JOINS = ("an LSTM", "a Transformer layer")

_SHARED = (
    *("one gradient for two inputs", "one gradient for two results", "one gradient for two results, older"),
    *("one gradient for two leaves", "a weight used three times", *_JOINS),
)

_OUTPUTS = ("an output that nobody used", "a second output as the loss", *_JOINS)


def _cases(seed: int) -> Iterator[Case]:
    for offset, name in enumerate(SCENES):
        yield Case(name, {"scene": name, "seed": seed + 20 * offset})


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    passes = seen["passes"]
    message = "PyTorch's own engine ran. Your engine has to run the nodes itself."
    yield Finding("passes", not passes, message)
    touched = _touched(seen)
    yield Finding("grad", not touched, f"Your engine changed .grad of {listed(touched)}.")
    moved, frozen = seen["moved"], seen["frozen"]
    yield Finding("numbers", not moved, f"Your engine changed the numbers in {listed(moved)}.")
    yield Finding("flags", not frozen, f"Your engine left {listed(frozen)} without requires_grad.")
    most = "Your engine ran a node more than once: the custom Function's backward ran {} times in one pass."
    yield Finding("once", seen["runs"] <= 1, most.format(seen["runs"]))
    if seen["returned"] != Other("dict"):
        message = f"What you returned is {describe(seen['returned'])}; expected a dict from leaf tensors to gradients."
        yield Finding("type", False, message)
        return
    recorded = seen["recorded"]
    message = (
        f"The gradients of {listed(recorded)} require a gradient themselves. Nothing in your engine is to be recorded."
    )
    yield Finding("recorded", not recorded, message)
    strangers = sorted(set(seen["strangers"]))
    message = f"Your dict has keys of type {listed(strangers)} that are no leaf of this graph."
    if {"Tensor", "Parameter"} & set(strangers):
        message += " Does your engine keep a dict between calls?"
    yield Finding("keys", not strangers, message)
    for name, gradient in _gradients(case).items():
        if name not in seen["gradients"]:
            yield Finding("missing", False, f"Your dict has no gradient for the leaf {name!r}.")
        else:
            yield right_value(seen["gradients"][name], gradient, f"Your gradient of the leaf {name!r}")


def _gradients(case: Case) -> dict[str, torch.Tensor]:
    scene = SCENES[case.given["scene"]](case.given["seed"])
    return dict(zip(scene.leaves, torch.autograd.grad(scene.loss, list(scene.leaves.values())), strict=True))


def _touched(seen: Observation) -> list[str]:
    return [name for name, value in seen["before"].items() if seen["after"][name] != value]


def _wrong_leaves(case: Case, seen: Observation) -> dict[str, torch.Tensor]:
    """Return the right gradient of each leaf whose gradient came with other numbers, in the right shape.

    Of what dtype it came does not matter here: what float32 rounds is no other number.
    """
    received = seen["gradients"]
    return {
        name: right
        for name, right in _gradients(case).items()
        if isinstance(received.get(name), Array)
        and received[name].shape == tuple(right.shape)
        and not close(Array.of(received[name].tensor().to(right.dtype)), right)
    }


def _scene(case: Case) -> str:
    return str(case.given["scene"])


def _one_contribution(case: Case, seen: Observation) -> bool | None:
    """Tell whether a join passed on less than the sum of what comes to it. In large scenes that cannot be told."""
    scene = SCENES[_scene(case)](case.given["seed"])
    wrong = _wrong_leaves(case, seen)
    if two_edges_at_once(case) and not scene.parts:  # each edge brings half
        return bool(wrong) and all(close(seen["gradients"][name], right / 2) for name, right in wrong.items())
    if scene.parts:
        return any(
            close(seen["gradients"][name], sum(gradients, torch.zeros(())))
            for name in wrong
            for count in range(1, len(scene.parts))
            for gradients in combinations(_contributions(scene, name), count)
        )
    if _scene(case) in _JOINS:
        return None if wrong else False
    if _scene(case) in _OUTPUTS:  # what came too late for the node is missing, and the rest is right
        return bool(wrong) and all(
            _partly_missing(seen["gradients"][name].tensor(), right) for name, right in wrong.items()
        )
    scene.loss.backward()
    lost = seen["runs"] == 1 and bool(scene.arrived) and not close(seen["arrived"][0], scene.arrived[0])
    return lost and not _shifted(case, seen)


def _shifted(case: Case, seen: Observation) -> bool:
    """Tell whether a custom Function's second input got what was returned for the first, which needs no gradient."""
    if _scene(case) != "a thousand paths" or seen["runs"] != 1:
        return False
    scene = SCENES[_scene(case)](case.given["seed"])
    scene.loss.backward()
    return close(seen["arrived"][0], scene.arrived[0] * scene.leaves["x"].detach() ** 2)


def _partly_missing(received: torch.Tensor, right: torch.Tensor) -> bool:
    return bool(((received == 0) | torch.isclose(received, right)).all())


def _contributions(scene: Scene, name: str) -> list[torch.Tensor]:
    """Return what each part of the loss sends to one leaf."""
    return [
        gradient
        for part in scene.parts
        for gradient in torch.autograd.grad(part, scene.leaves[name], allow_unused=True, retain_graph=True)
        if gradient is not None
    ]


def _for_each_path(case: Case, seen: Observation) -> bool:
    """Tell whether a node ran again, and where there are a thousand paths to it, more often than twice."""
    return bool(seen["runs"] > (2 if _scene(case) == "a thousand paths" else 1))


def _changed_in_place(case: Case, seen: Observation) -> bool | None:
    wrong = _scene(case) in _SHARED and bool(_wrong_leaves(case, seen)) and not _one_contribution(case, seen)
    return None if wrong and _scene(case) in _JOINS else wrong


def _wrong_output(case: Case, seen: Observation) -> bool | None:
    wrong = _scene(case) in _OUTPUTS and bool(_wrong_leaves(case, seen))
    return None if wrong and _scene(case) in _JOINS else wrong


def _wider_than_the_leaf(case: Case, seen: Observation) -> bool:
    received = seen["gradients"]
    return any(
        isinstance(received.get(name), Array)
        and (len(received[name].shape), math.prod(received[name].shape)) > (right.dim(), right.numel())
        for name, right in _gradients(case).items()
    )


def _wider_inside(case: Case, seen: Observation) -> bool:
    return _scene(case) == "broadcasting a result" and not _wider_than_the_leaf(case, seen)


def _other_dtype(case: Case, seen: Observation) -> bool:
    received = seen["gradients"]
    if _scene(case) == "a leaf as the loss":  # nothing to convert: the engine began with another dtype
        return False
    return not _wrong_leaves(case, seen) and any(
        isinstance(received.get(name), Array) and received[name].tensor().dtype != right.dtype
        for name, right in _gradients(case).items()
    )


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    ((case, _),) = [pair for pair in seen if _scene(pair[0]) == "a thousand paths"]
    nodes = len(nodes_behind(SCENES[_scene(case)](case.given["seed"]).loss))
    yield (
        f"Behind the graph with more than a thousand paths there are {nodes} nodes. Your engine ran each once, when "
        "all its contributions had come; following each path would have run the last ones a thousand times."
    )
    yield f"In {len(seen)} graphs it gave what torch.autograd.grad gives, and PyTorch's engine never ran."


EXERCISE = Exercise(
    id="backward_engine",
    title="Challenge: write a backward engine",
    lesson=LESSON,
    difficulty=5,
    minutes=90,
    points=8,
    call="backward_engine(loss)",
    reaches=("next_functions",),
    counted=True,
    cases=_cases,
    judge=_judge,
    hints=(
        "You have all the parts: the counts and the order from run_order, and the lesson's way of running one "
        "node. New is a place "
        "where the gradients of each node wait until all have come.",
        "Keep for each node a list with one place for each output of the operation, filled with None: "
        "len(node._input_metadata) is the number of outputs. A "
        "contribution goes to "
        "the place that its edge names. It is brought to the shape and dtype expected there, then it is added to "
        "what is in that place. "
        "AccumulateGrad nodes are not called: their gradient goes into the result.",
        "1. Count edges, as in run_order. 2. Put a one into the place of the loss: edge.node, edge.output_nr of "
        "get_gradient_edge(loss). 3. Under no_grad, take a ready node. If it has a `variable`, keep the gradient. "
        "Otherwise call it with the entries of its list: node(*gradients) (custom Functions: node.apply(*gradients)). "
        "Some return a tensor in place of a tuple of one. 4. Go through its next_functions and what it returned, side "
        "by side; pass over an edge that leads to None. Add each gradient that is not None, as a new tensor, after "
        "sum_to_size and to(dtype) by to._input_metadata[output]. Lower the count in any case.",
    ),
    misconceptions=(
        Misconception(
            "PyTorch's engine",
            "You let PyTorch's own engine run. In this exercise you write that engine.",
            lambda case, seen: seen["passes"] > 0,
        ),
        Misconception(
            "AccumulateGrad is called",
            "Your engine changed .grad of leaves. An AccumulateGrad node does that when it is called, as it really "
            "adds; a line of your own may do it as well. This engine has to leave .grad alone.",
            lambda case, seen: not seen["passes"] and bool(_touched(seen)),
        ),
        Misconception(
            "once for each path",
            "Your engine runs a node again for each path that leads to it, and the number of paths can double with "
            "each fork. Wait until all contributions have come, and run the node once.",
            _for_each_path,
            ended=("TimedOut",),
            ended_in=("a thousand paths", *_JOINS),
        ),
        Misconception(
            "one edge for two",
            ONE_EDGE_FOR_TWO,
            lambda case, seen: (
                two_edges_at_once(case) and not seen["strangers"] and not seen["passes"] and not _touched(seen)
            ),
        ),
        Misconception(
            "not all contributions",
            "Where branches join, your engine passes on less than the sum of the contributions. Either a node "
            "ran before all of "
            "them had come, or a later one took the place of an earlier one.",
            _one_contribution,
        ),
        Misconception(
            "shifted by an input without a node",
            "A custom Function returned a gradient for an input that needs none, and your engine sent it to the next "
            "input. What a node returns stands side by side with next_functions, the entries with None among them.",
            _shifted,
        ),
        Misconception(
            "changed in place",
            "Your engine changes a gradient in place. A node may hand the same tensor to two of its inputs, and "
            "then the "
            "gradient of the other one changes too.",
            _changed_in_place,
        ),
        Misconception(
            "wrong output",
            "Your engine gives an output of an operation that has several a gradient that is not its own. An edge "
            "names the node and the number of the output; where no edge arrives, the gradient is None.",
            _wrong_output,
        ),
        Misconception(
            "not summed back",
            "Your engine gives a leaf a gradient of a larger shape than the leaf's. A node returns its gradients in "
            "the broadcast shape; the engine sums them back, over dimensions that were added and over those of size 1.",
            _wider_than_the_leaf,
        ),
        Misconception(
            "None leaves the edge open",
            "A node returned None for one of its inputs, and your engine went on waiting for that edge. No gradient "
            "comes by it, but no other one will come either.",
            lambda case, seen: _scene(case) == "None for one input" and not seen["gradients"],
        ),
        Misconception(
            "shapes of leaves only",
            "Your engine brings gradients to shape only where a leaf gets them. A gradient for an inner node has to be "
            "brought to shape, too, before that node runs.",
            _wider_inside,
            ended=("RuntimeError",),
            ended_in=("broadcasting a result",),
        ),
        Misconception(
            "the wrong dtype",
            "Your engine gives a leaf a gradient of another dtype. Where an operation mixes float32 and float64, the "
            "engine converts each gradient to what its input was.",
            _other_dtype,
        ),
    ),
    debrief=_debrief,
)
