"""Running an answer to `train_chunks`."""

from __future__ import annotations

from typing import Any

from torch import nn

from course_utils.checks.data import Answer, Array, Case, Observation, Value, plain
from course_utils.checks.observers.lesson_04_retain_graph.returned import tensors_in
from course_utils.checks.observers.loops import Loop, plain_tensor
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.scenes.lesson_04_retain_graph.train_chunks import recurrent


def observe(answer: Answer, case: Case) -> Observation:
    lstm, readout, optimizer, chunks, state = recurrent(case)
    start = [Array.of(part) for part in state]
    states: list[dict[str, Value]] = []
    last: list[Array] = []

    def note(module: nn.Module, given: tuple[Any, ...], result: Any) -> None:
        parts = next((list(part) for part in given if type(part) in (tuple, list)), [])
        carried = [Array.of(plain_tensor(part)) for part in parts] == (last or start)
        states.append({"carried": carried, "zero": not any(bool(part.any()) for part in parts)})
        last[:] = [Array.of(plain_tensor(part)) for part in result[1]]

    watch = Loop(lstm, optimizer, note)
    around = Surroundings(lstm, readout, *state, optimizers=[optimizer], lists=[chunks])
    with every_pass() as passes:
        returned = answer(lstm, readout, optimizer, chunks, state, case.given["together"])
    after = returned[1] if type(returned) in (tuple, list) and len(returned) == 2 else None
    return {
        "returned": plain(returned),
        "attached": any(part.grad_fn is not None for part in tensors_in(after)),
        "states": states,
        **watch.seen(),
        "passes": len(passes),
        "passes that retain": sum(it.kept for it in passes),
        "start": [Array.of(part) for part in state] == start,
        "parameters": [plain(parameter) for parameter in [*lstm.parameters(), *readout.parameters()]],
        "left": around.changed(),
    }
