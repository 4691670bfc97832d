"""Running an answer to `count_saved_bytes`."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_03_graph_freeing.states import states
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.lesson_03_graph_freeing.count_saved_bytes import keeping
from course_utils.graph import saved as instrument


def observe(answer: Answer, case: Case) -> Observation:
    torch.default_generator.manual_seed(case.given["seed"])
    loss, besides = keeping(case)
    before, given = states(loss), list(map(id, besides))
    reads: list[None] = []
    original = instrument.kept

    def counted(node: Any) -> Any:
        reads.append(None)
        return original(node)

    instrument.kept = counted
    try:
        with every_pass() as passes:
            for _ in range(case.given["calls"]):
                returned = plain(answer(loss, besides))
    finally:
        instrument.kept = original
    return {
        "returned": returned,
        "passes": len(passes),
        "by instrument": bool(reads),
        "freed": states(loss) != before,
        "besides": list(map(id, besides)) == given,
    }
