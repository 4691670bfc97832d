"""Running an answer to `used_outputs`."""

from __future__ import annotations

from torch.autograd.graph import get_gradient_edge

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.lesson_01_graph_structure.used_outputs import earlier_use, outputs_of


def observe(answer: Answer, case: Case) -> Observation:
    tensor, parts = outputs_of(case)
    node = get_gradient_edge(parts[0]).node
    with every_pass() as passes:
        if "before" in case.given:
            answer(earlier_use(case, parts), node)
        results = [plain(answer(tensor, node)) for _ in range(case.given.get("calls", 1))]
    return {"returned": results[-1], "first": results[0], "passes": len(passes)}
