"""Running an answer to `count_saved_bytes`."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.data import Answer, Case, Observation, Value, plain
from course_utils.checks.observers.lesson_03_graph_freeing.states import states
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.lesson_03_graph_freeing.count_saved_bytes import keeping
from course_utils.graph import saved as instrument


def observe(answer: Answer, case: Case) -> Observation:
    torch.default_generator.manual_seed(case.given["seed"])
    loss, besides = keeping(case)
    before, given = states(loss), list(map(id, besides))
    earlier = _called(answer, loss, besides) if case.given["between"] is not None else (None, 0, 0)
    if case.given["between"] == "a pass" and states(loss) == before:  # what an answer changed may raise in a pass
        loss.backward()
        before = states(loss)
    returned, passes, reads = _called(answer, loss, besides)
    return {
        "returned": returned,
        "passes": earlier[1] + passes,
        "by instrument": bool(earlier[2] + reads),
        "freed": states(loss) != before,
        "besides": list(map(id, besides)) == given,
    }


def _called(answer: Answer, loss: torch.Tensor, besides: list[torch.Tensor]) -> tuple[Value, int, int]:
    """Return what an answer returned, how many passes it ran, and how often it asked `saved`."""
    reads: list[None] = []
    original = instrument.kept

    def counted(node: Any) -> Any:
        reads.append(None)
        return original(node)

    instrument.kept = counted
    try:
        with every_pass() as passes:
            returned = plain(answer(loss, besides))
    finally:
        instrument.kept = original
    return returned, len(passes), len(reads)
