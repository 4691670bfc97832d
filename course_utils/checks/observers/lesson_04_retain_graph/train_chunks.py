"""Running an answer to `train_chunks`."""

from __future__ import annotations

from typing import Any

from torch import nn

from course_utils.checks.data import Answer, Array, Case, Observation, Value, plain
from course_utils.checks.observers.lesson_04_retain_graph.loops import Loop
from course_utils.checks.observers.lesson_04_retain_graph.returned import tensors_in
from course_utils.checks.observers.lesson_04_retain_graph.surroundings import Surroundings
from course_utils.checks.scenes.lesson_04_retain_graph.train_chunks import recurrent


def observe(answer: Answer, case: Case) -> Observation:
    lstm, readout, optimizer, chunks, state = recurrent(case)
    start = [Array.of(part) for part in state]
    states: list[dict[str, Value]] = []
    last: list[Array] = []

    def note(module: nn.Module, given: Any, options: Any, result: Any) -> None:
        received = given[1] if len(given) > 1 else options.get("hx")
        parts = list(received) if type(received) in (tuple, list) else []
        carried = [Array.of(part) for part in parts] == (last or start)
        states.append({"carried": carried, "zero": not any(bool(part.any()) for part in parts)})
        last[:] = [Array.of(part) for part in result[1]]

    lstm.register_forward_hook(note, with_kwargs=True)
    watch = Loop(lstm, optimizer)
    around = Surroundings(lstm, readout, optimizers=[optimizer], lists=[chunks])
    returned = answer(lstm, readout, optimizer, chunks, state)
    after = returned[1] if type(returned) in (tuple, list) and len(returned) == 2 else None
    return {
        "returned": plain(returned),
        "attached": any(part.requires_grad for part in tensors_in(after)),
        "states": states,
        **watch.seen(),
        "start": [Array.of(part) for part in state] == start,
        "parameters": [plain(parameter) for parameter in [*lstm.parameters(), *readout.parameters()]],
        "left": around.changed(),
    }
