"""A wrong idea of order: nodes that share two edges count as one."""

from __future__ import annotations

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_02_how_backward_works.graphs import OF_ORDER
from course_utils.graph.trace import nodes_behind

ONE_EDGE_FOR_TWO = (
    "One node may lead to the same node by two edges, as in x * x. Each edge counts, and each brings a contribution "
    "of its own."
)


def two_edges_at_once(case: Case) -> bool:
    """Tell whether a node of the scene leads to the same node by two edges."""
    scene = OF_ORDER[case.given["scene"]](case.given["seed"])
    for node in nodes_behind(scene.loss):
        behind = [to for to, _ in node.next_functions if to is not None]
        if len(set(behind)) < len(behind):
            return True
    return False
