"""Running an answer to `fit_scale`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.loops import Loop
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.scenes.lesson_04_retain_graph.fit_scale import scaled_classifier


def observe(answer: Answer, case: Case) -> Observation:
    model, log_scale, optimizer, batches = scaled_classifier(case)
    watch = Loop(model[-1], optimizer)
    around = Surroundings(model, log_scale, optimizers=[optimizer], lists=[batches])
    with every_pass() as passes:
        returned = answer(model, log_scale, optimizer, batches)
    return {
        "returned": plain(returned),
        **watch.seen(),
        "passes": len(passes),
        "passes that retain": sum(it.kept for it in passes),
        "parameters": [plain(parameter) for parameter in model.parameters()],
        "log_scale": plain(log_scale),
        "left": around.changed(),
    }
