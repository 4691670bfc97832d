"""Judging `run_order`: predict the order in which nodes run."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_02_how_backward_works import LESSON
from course_utils.checks.judges.lesson_02_how_backward_works.shared_edges import ONE_EDGE_FOR_TWO, two_edges_at_once
from course_utils.checks.scenes.lesson_02_how_backward_works.graphs import OF_ORDER, YOUNGER, written_since
from course_utils.graph.trace import ACCUMULATE, nodes_behind


@dataclass(frozen=True)
class _Run:
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


def _real_run(case: Case) -> _Run:
    loss = written_since(OF_ORDER[case.given["scene"]](case.given["seed"]))
    nodes = nodes_behind(loss)
    order: list[int] = []
    for index, node in enumerate(nodes):
        node.register_prehook(lambda gradients, index=index: order.append(index))
    loss.backward()
    number = {node: index for index, node in enumerate(nodes)}
    behind = [[number[to] for to, _ in node.next_functions if to is not None] for node in nodes]
    return _Run(order, [type(node).__name__ for node in nodes], [node._sequence_nr() for node in nodes], behind)


def _cases(seed: int) -> Iterator[Case]:
    chosen = (
        *("a leaf as the loss", "a fork, long branch first", "a fork, short branch first", "a weight used three times"),
        *("one gradient for two inputs", "x * x", "h * h", "x * x and more"),
        *("asked before about another result", "an output that nobody used", YOUNGER),
        "a Transformer layer",
    )
    for offset, name in enumerate(chosen):
        yield Case(name, {"scene": name, "seed": seed + 20 * offset})


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    passes = seen["passes"]
    yield Finding("passes", not passes, "Your function ran a backward pass. Predict the order without one.")
    if "order" not in seen:
        message = f"What you returned is {describe(seen['returned'])}; expected a list of nodes."
        yield Finding("type", False, message)
        return
    order, run = seen["order"], _real_run(case)
    strangers = sorted({item for item in order if not isinstance(item, int)})
    if strangers:
        message = f"Your list holds {listed(strangers)}, and nothing of that is a node of this graph."
        if any(it.startswith("another node") for it in strangers):
            message += " Does your function keep a list between calls, or make a node by an operation?"
        yield Finding("nodes", False, message)
        return
    yield Finding("count", *_count(order, run))
    if sorted(order) == sorted(run.order):
        yield Finding("order", *_places(order, run))


def _count(order: list[int], run: _Run) -> tuple[bool, str]:
    missing, again = len(set(run.order) - set(order)), len(order) - len(set(order))
    parts = [f"lacks {missing} of the {len(run.order)} nodes of this graph"] if missing else []
    parts += [f"names nodes more than once ({again} too many)"] if again else []
    return not parts, f"Your list {' and '.join(parts)}."


def _places(order: list[int], run: _Run) -> tuple[bool, str]:
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


def _ordered(wrong: Callable[[_Run], list[int]]) -> Callable[[Case, Observation], bool]:
    """Tell whether the learner gave the order that a wrong idea gives."""

    def holds(case: Case, seen: Observation) -> bool:
        order, run = seen.get("order"), _real_run(case)
        nodes = isinstance(order, list) and all(isinstance(item, int) for item in order)
        if not nodes or sorted(order) != sorted(run.order):  # type: ignore[arg-type]
            return False
        return run.settled(order) == run.settled(wrong(run))  # type: ignore[arg-type]

    return holds


def _leaves_at_the_end(run: _Run) -> list[int]:
    return sorted(run.order, key=lambda node: run.names[node] == ACCUMULATE)  # stable: operations stay in order


def _first_come(run: _Run) -> list[int]:
    """Let ready nodes wait in a queue."""
    still_open = Counter(to for below in run.behind for to in below)
    queue = deque(run.order[:1])
    order = []
    while queue:
        order.append(queue.popleft())
        for to in run.behind[order[-1]]:
            still_open[to] -= 1
            if not still_open[to]:
                queue.append(to)
    return order


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, found = max(seen, key=lambda pair: len(pair[1]["order"]))
    run = _real_run(case)
    edges = sum(map(len, run.behind))
    yield (
        f"In {case.name} you put {len(found['order'])} nodes in the order of a real pass. {edges} edges lead to them: "
        "each brings one contribution, and a node runs when the last of its own has come."
    )
    yield "Of the ready nodes the engine takes leaves first, then the one recorded last: roughly backwards in time."


EXERCISE = Exercise(
    id="run_order",
    title="Predict the order in which nodes run",
    lesson=LESSON,
    difficulty=4,
    minutes=30,
    points=5,
    call="run_order(tensor)",
    reaches=("next_functions",),
    cases=_cases,
    judge=_judge,
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
            among=frozenset({"count", "order"}),
        ),
        Misconception(
            "by number alone",
            "Your list is all nodes sorted by _sequence_nr(), from high to low. The leaves have the highest number of "
            "all, so it begins with them; but a node runs only when it is ready.",
            _ordered(lambda run: sorted(run.order, key=lambda node: -run.numbers[node])),
            among=frozenset({"count", "order"}),
        ),
        Misconception(
            "first come, first served",
            "In your order the ready nodes run one after the other as they became ready. Of the nodes that are ready, "
            "the engine takes the one with the highest _sequence_nr(), however late it became ready.",
            _ordered(_first_come),
            among=frozenset({"count", "order"}),
        ),
        Misconception(
            "leaves at the end",
            "Your operations are in the right order, but the leaves come after all of them. The engine runs an "
            "AccumulateGrad as soon as "
            "its gradient is complete.",
            _ordered(_leaves_at_the_end),
            among=frozenset({"count", "order"}),
        ),
        Misconception(
            "one edge for two",
            ONE_EDGE_FOR_TWO,
            lambda case, seen: "order" in seen and not seen["passes"] and two_edges_at_once(case),
        ),
    ),
    debrief=_debrief,
)
