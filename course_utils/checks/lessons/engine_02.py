"""The two exercises of lesson 02 about the engine: the order of its nodes, and writing one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import torch

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.vjp_02 import LESSON
from course_utils.checks.observing.scenes import SCENES, Scene
from course_utils.graph.trace import ACCUMULATE, nodes_behind

# What a wrong idea may spoil in a scene, where the values alone do not tell.
_JOINS = ("an LSTM", "a Transformer layer")
_SHARED = (
    *("one gradient for two inputs", "one gradient for two results", "one gradient for two results, older"),
    *("a weight used three times", *_JOINS),
)
_OUTPUTS = ("an output that nobody used", "a second output as the loss", *_JOINS)


@dataclass(frozen=True)
class Run:
    """A real backward pass over a scene: the nodes in the order in which they ran, numbered as `trace` does."""

    order: list[int]
    names: list[str]
    numbers: list[int]
    behind: list[list[int]]  # for each node, where its edges lead

    def settled(self, order: list[int]) -> list[int]:
        """Sort each run of leaves. One node made them ready together, and PyTorch promises no order among them."""
        result: list[int] = []
        together: list[int] = []
        for node in order:
            if self.names[node] == ACCUMULATE:
                together.append(node)
                continue
            result += [*sorted(together), node]
            together = []
        return result + sorted(together)


def _real_run(case: Case) -> Run:
    scene = SCENES[case.given["scene"]](case.given["seed"])
    nodes = nodes_behind(scene.loss)
    order: list[int] = []
    for index, node in enumerate(nodes):
        node.register_prehook(lambda gradients, index=index: order.append(index))
    scene.loss.backward()
    number = {node: index for index, node in enumerate(nodes)}
    behind = [[number[to] for to, _ in node.next_functions if to is not None] for node in nodes]
    return Run(order, [type(node).__name__ for node in nodes], [node._sequence_nr() for node in nodes], behind)


def _two_edges_at_once(case: Case) -> bool:
    """Tell whether a node of the scene leads to the same node by two edges."""
    scene = SCENES[case.given["scene"]](case.given["seed"])
    for node in nodes_behind(scene.loss):
        behind = [to for to, _ in node.next_functions if to is not None]
        if len(set(behind)) < len(behind):
            return True
    return False


_ONE_EDGE_FOR_TWO = (
    "One node may lead to the same node by two edges, as in x * x. Each edge counts, and each brings a contribution "
    "of its own."
)


def _order_cases(seed: int) -> Iterator[Case]:
    chosen = (
        *("a leaf as the loss", "a fork, long branch first", "a fork, short branch first", "a weight used three times"),
        *("one gradient for two inputs", "x * x", "h * h", "x * x and more"),
        *("an output that nobody used", "a Transformer layer"),
    )
    for offset, name in enumerate(chosen):
        yield Case(name, {"scene": name, "seed": seed + 20 * offset})


def _judge_order(case: Case, seen: Observation) -> Iterator[Finding]:
    passes = seen["passes"]
    yield Finding("passes", not passes, "Your function ran a backward pass. Predict the order without one.")
    if "order" not in seen:
        message = f"What you returned is {describe(seen['returned'])}; expected a list of nodes."
        yield Finding("type", False, message)
        return
    order, run = seen["order"], _real_run(case)
    strangers = sorted({item for item in order if not isinstance(item, int)})
    if strangers:
        message = f"Your list holds {listed(strangers)}, which is no node of this graph."
        yield Finding("nodes", False, message)
        return
    yield Finding("count", *_count(order, run))
    if sorted(order) == sorted(run.order):
        yield Finding("order", *_places(order, run))


def _count(order: list[int], run: Run) -> tuple[bool, str]:
    missing, again = len(set(run.order) - set(order)), len(order) - len(set(order))
    parts = [f"lacks {missing} of the {len(run.order)} nodes of this graph"] if missing else []
    parts += [f"names nodes more than once ({again} too many)"] if again else []
    return not parts, f"Your list {' and '.join(parts)}."


def _places(order: list[int], run: Run) -> tuple[bool, str]:
    mine, real = run.settled(order), run.settled(run.order)
    agreed = next((place for place, pair in enumerate(zip(mine, real, strict=True)) if pair[0] != pair[1]), len(real))
    if agreed == len(real):
        return True, ""
    node = mine[agreed]
    name = run.names[node]
    if not agreed:
        return False, f"Your order begins with {name}, and the engine began with another node."
    edges = sum(to.count(node) for to in run.behind)
    still_open = edges - sum(run.behind[before].count(node) for before in mine[:agreed])
    if still_open:
        verb = "was" if still_open == 1 else "were"
        why = f"which was not ready: {still_open} of its {edges} edges {verb} still open."
    else:
        why = "which was ready, but a ready node with a higher number went first."
    return False, f"Your order is right for the first {agreed} of {len(real)} nodes. Then you have {name}, {why}"


def _ordered(wrong: Callable[[Run], list[int]]) -> Callable[[Case, Observation], bool]:
    """Tell whether the learner gave the order that a wrong idea gives."""

    def holds(case: Case, seen: Observation) -> bool:
        order, run = seen.get("order"), _real_run(case)
        nodes = isinstance(order, list) and all(isinstance(item, int) for item in order)
        if not nodes or sorted(order) != sorted(run.order):  # type: ignore[arg-type]
            return False
        return run.settled(order) == run.settled(wrong(run))  # type: ignore[arg-type]

    return holds


def _leaves_at_the_end(run: Run) -> list[int]:
    return sorted(run.order, key=lambda node: run.names[node] == ACCUMULATE)  # stable: operations stay in order


run_order = Exercise(
    id="run_order",
    title="Predict the order in which nodes run",
    lesson=LESSON,
    difficulty=4,
    minutes=30,
    points=5,
    call="run_order(tensor)",
    cases=_order_cases,
    judge=_judge_order,
    hints=(
        "The lesson stated when a node becomes ready, and which of the ready nodes the engine takes.",
        "First walk the graph and count for each node how many edges lead to it. Then act out the engine with "
        "these counts "
        "and run nothing: take a node, append it, lower the counts of the nodes behind it.",
        "Start with the node of get_gradient_edge(tensor). Keep a list of ready nodes. Repeat: take the one with "
        "the highest "
        "_sequence_nr() out of it, append it to the order, lower the count of each node in its next_functions by "
        "one for each edge, "
        "and add those that reach zero to the ready ones.",
    ),
    misconceptions=(
        Misconception(
            "the nearest first",
            "You gave the nodes by their distance from the result, as a walk over the graph meets them. A node whose "
            "gradient is not complete cannot run yet, however near it is.",
            _ordered(lambda run: sorted(run.order)),
        ),
        Misconception(
            "by number alone",
            "You sorted all nodes by _sequence_nr(). The leaves have the highest number of all, so your list "
            "begins with them; but a node "
            "runs only when it is ready.",
            _ordered(lambda run: sorted(run.order, key=lambda node: -run.numbers[node])),
        ),
        Misconception(
            "leaves at the end",
            "Your operations are in the right order, but the leaves come after all of them. The engine runs an "
            "AccumulateGrad as soon as "
            "its gradient is complete.",
            _ordered(_leaves_at_the_end),
        ),
        Misconception(
            "one edge for two",
            _ONE_EDGE_FOR_TWO,
            lambda case, seen: "order" in seen and not seen["passes"] and _two_edges_at_once(case),
        ),
    ),
)


def _engine_cases(seed: int) -> Iterator[Case]:
    for offset, name in enumerate(SCENES):
        yield Case(name, {"scene": name, "seed": seed + 20 * offset})


def _judge_engine(case: Case, seen: Observation) -> Iterator[Finding]:
    passes = seen["passes"]
    message = "PyTorch's own engine ran over this graph. Your engine has to run the nodes itself, by calling them."
    yield Finding("passes", not passes, message)
    touched = _touched(seen)
    yield Finding("grad", not touched, f"Your engine changed .grad of {listed(touched)}.")
    most = "Your engine ran a node more than once: the custom Function's backward ran {} times in one pass."
    yield Finding("once", seen["runs"] <= 1, most.format(seen["runs"]))
    if describe(seen["returned"]) != "of type dict":
        message = f"What you returned is {describe(seen['returned'])}; expected a dict from leaf tensors to gradients."
        yield Finding("type", False, message)
        return
    recorded = seen["recorded"]
    message = f"The gradients of {listed(recorded)} have a graph of their own: your engine's steps were recorded."
    yield Finding("recorded", not recorded, message)
    strangers = sorted(set(seen["strangers"]))
    message = f"Your dict has keys of type {listed(strangers)} that are no leaf of this graph."
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
    """Return the right gradient of each leaf whose gradient came with other numbers, in the right shape."""
    received = seen["gradients"]
    return {
        name: right
        for name, right in _gradients(case).items()
        if isinstance(received.get(name), Array)
        and received[name].shape == tuple(right.shape)
        and not close(received[name], right)
    }


def _scene(case: Case) -> str:
    return str(case.given["scene"])


def _one_contribution(case: Case, seen: Observation) -> bool:
    """Tell whether a join passed on less than the sum of what comes to it."""
    scene = SCENES[_scene(case)](case.given["seed"])
    wrong = _wrong_leaves(case, seen)
    if _two_edges_at_once(case) and not scene.parts:
        return bool(wrong)
    if scene.parts:
        return any(
            close(seen["gradients"][name], sum(gradients, torch.zeros(())))
            for name in wrong
            for count in range(1, len(scene.parts))
            for gradients in combinations(_contributions(scene, name), count)
        )
    if _scene(case) in _JOINS:
        return bool(wrong)
    if _scene(case) in _OUTPUTS:  # what came too late for the node is missing, and the rest is right
        return bool(wrong) and all(
            _partly_missing(seen["gradients"][name].tensor(), right) for name, right in wrong.items()
        )
    scene.loss.backward()
    return seen["runs"] == 1 and bool(scene.arrived) and not close(seen["arrived"][0], scene.arrived[0])


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


def _changed_in_place(case: Case, seen: Observation) -> bool:
    return _scene(case) in _SHARED and bool(_wrong_leaves(case, seen)) and not _one_contribution(case, seen)


def _wrong_output(case: Case, seen: Observation) -> bool:
    return _scene(case) in _OUTPUTS and bool(_wrong_leaves(case, seen))


def _wider_than_the_leaf(case: Case, seen: Observation) -> bool:
    received = seen["gradients"]
    return any(
        isinstance(received.get(name), Array) and len(received[name].shape) > right.dim()
        for name, right in _gradients(case).items()
    )


def _wider_inside(case: Case, seen: Observation) -> bool:
    return _scene(case) == "broadcasting a result" and not _wider_than_the_leaf(case, seen)


def _other_dtype(case: Case, seen: Observation) -> bool:
    received = seen["gradients"]
    return not _wrong_leaves(case, seen) and any(
        isinstance(received.get(name), Array) and received[name].tensor().dtype != right.dtype
        for name, right in _gradients(case).items()
    )


backward_engine = Exercise(
    id="backward_engine",
    title="Challenge: write a backward engine",
    lesson=LESSON,
    difficulty=5,
    minutes=45,
    points=8,
    call="backward_engine(loss)",
    cases=_engine_cases,
    judge=_judge_engine,
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
        "get_gradient_edge(loss). "
        "3. Under no_grad, take a ready node. If it has a `variable`, keep the gradient. Otherwise call it with "
        "the entries of its list: node(*gradients) (custom Functions: node.apply(*gradients)). 4. "
        "Go through its next_functions and what it returned, side by side. Add each "
        "gradient that is not None, "
        "as a new tensor, after sum_to_size and to(dtype) by to._input_metadata[output]. Lower the count in any case.",
    ),
    misconceptions=(
        Misconception(
            "PyTorch's engine",
            "You let PyTorch's own engine run the graph. In this exercise you write that engine.",
            lambda case, seen: seen["passes"] > 0,
        ),
        Misconception(
            "AccumulateGrad is called",
            "Your engine changed .grad of leaves. An AccumulateGrad node does that when it is called: it really adds. "
            "This engine has to leave .grad alone.",
            lambda case, seen: not seen["passes"] and bool(_touched(seen)),
        ),
        Misconception(
            "once for each path",
            "Your engine runs a node again for each path that leads to it. The values come out right, but the "
            "number of paths can "
            "double with each fork. Wait until all contributions have come, and run the node once.",
            lambda case, seen: seen["runs"] > 1,
            ended=("TimedOut",),
        ),
        Misconception(
            "one edge for two",
            _ONE_EDGE_FOR_TWO,
            lambda case, seen: _two_edges_at_once(case) and not seen["strangers"] and not _touched(seen),
        ),
        Misconception(
            "not all contributions",
            "Where branches join, your engine passes on less than the sum of the contributions. Either a node "
            "ran before all of "
            "them had come, or a later one took the place of an earlier one.",
            _one_contribution,
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
            "Your engine brings a gradient to the wrong output of an operation that has several. An edge names "
            "the node and "
            "the number of the output.",
            _wrong_output,
        ),
        Misconception(
            "not summed back",
            "Your engine gives a leaf a gradient with more dimensions than the leaf has. A node returns its "
            "gradients in the broadcast shape; the engine "
            "sums them back.",
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
)
