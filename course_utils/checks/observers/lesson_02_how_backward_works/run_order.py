"""Running an answer to `run_order`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from torch.autograd.graph import Node

from course_utils.checks.data import Answer, Case, Observation, plain, type_name
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.lesson_02_how_backward_works.graphs import OF_ORDER, written_since
from course_utils.graph.trace import nodes_behind


def observe(answer: Answer, case: Case) -> Observation:
    scene = OF_ORDER[case.given["scene"]](case.given["seed"])
    with every_pass() as passes:
        if scene.earlier is not None:
            answer(scene.earlier)
            answer(scene.loss)
        loss = written_since(scene)
        nodes = nodes_behind(loss)
        number = {id(node): index for index, node in enumerate(nodes)}
        returned = answer(loss)
    if not isinstance(returned, Sequence) or isinstance(returned, str | bytes | bytearray):
        return {"returned": plain(returned), "passes": len(passes)}
    order = [number.get(id(item), _stranger(item)) for item in islice(returned, 2 * len(nodes) + 2)]
    return {"order": order, "passes": len(passes)}


def _stranger(item: object) -> str:
    return f"another node {type_name(item)}" if isinstance(item, Node) else f"something of type {type_name(item)}"
