"""Running an answer to `run_order`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation, plain, type_name
from course_utils.checks.observers.passes import engine_passes
from course_utils.checks.scenes.lesson_02_how_backward_works.graphs import SCENES
from course_utils.graph.trace import nodes_behind


def observe(answer: Answer, case: Case) -> Observation:
    scene = SCENES[case.given["scene"]](case.given["seed"])
    nodes = nodes_behind(scene.loss)
    number = {id(node): index for index, node in enumerate(nodes)}
    with engine_passes(*nodes) as passes:
        returned = answer(scene.loss)
    if type(returned) not in (list, tuple):
        return {"returned": plain(returned), "passes": len(passes)}
    order = [number.get(id(item), type_name(item)) for item in returned[: 2 * len(nodes) + 2]]
    return {"order": order, "passes": len(passes)}
