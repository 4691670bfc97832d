"""Running an answer to `fit_best`."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_09_practical_checklist.watched import watched
from course_utils.checks.scenes.batches import Batches
from course_utils.checks.scenes.lesson_09_practical_checklist.fit_best import warm_network
from course_utils.checks.scenes.lesson_09_practical_checklist.training import regression, sgd


def observe(answer: Answer, case: Case) -> Observation:
    model, batches = warm_network(case), Batches(regression(case))
    validation = (case.given["inputs"].tensor(), case.given["targets"].tensor())
    optimizer = sgd(model, case.given["rate"], decay=case.given["decay"])
    kept: list[Any] = []

    def run() -> Any:
        kept.append(answer(model, optimizer, batches, validation, case.given["epochs"]))
        return kept[0]

    seen = watched(run, [model], [*batches, validation], optimizer)
    own = {tensor.untyped_storage().data_ptr() for tensor in model.state_dict().values()}
    state = kept[0][0] if isinstance(kept[0], tuple | list) and kept[0] else None
    held = state.items() if isinstance(state, dict) else ()
    shared = [str(name) for name, it in held if isinstance(it, torch.Tensor) and it.untyped_storage().data_ptr() in own]
    graphs = [str(name) for name, it in held if isinstance(it, torch.Tensor) and it.grad_fn is not None]
    return {**seen, "state": plain(state), "shared": shared, "copied graphs": graphs}
