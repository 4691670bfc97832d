"""Running an answer to `ema_update`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.lesson_06_detach_vs_no_grad.watching import flags, gradients_in, hooks_in, modes_of
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.ema_update import average_pair


def observe(answer: Answer, case: Case) -> Observation:
    target, source = average_pair(case)
    parameters, buffers = dict(target.named_parameters()), dict(target.named_buffers())
    given = [*source.parameters(), *source.buffers()]
    places = {name: tensor.data_ptr() for name, tensor in (parameters | buffers).items()}
    versions = {name: tensor._version for name, tensor in (parameters | buffers).items()}
    before = flags(target), flags(source), gradients_in(source), [Array.of(tensor) for tensor in given]
    with torch.set_grad_enabled(case.given["recording"]):
        rest = gradients_in(target), modes_of(target, source), hooks_in(target, source)
        answer(target, source, case.given["decay"])
        rest_after = gradients_in(target), modes_of(target, source), hooks_in(target, source)
        recording = torch.is_grad_enabled()
    after = dict(target.named_parameters()) | dict(target.named_buffers())
    unmoved = [name for name, tensor in (parameters | buffers).items() if tensor._version == versions[name]]
    names_same = after.keys() == parameters.keys() | buffers.keys()
    return {
        "parameters": {name: plain(after.get(name)) for name in parameters},
        "buffers": {name: plain(after.get(name)) for name in buffers},
        "in place": names_same and all(after[name].data_ptr() == place for name, place in places.items()),
        "same objects": names_same and all(after[name] is tensor for name, tensor in (parameters | buffers).items()),
        "unmoved": unmoved,
        "graph": any(tensor.grad_fn is not None for tensor in (*target.parameters(), *target.buffers())),
        "flags": (flags(target), flags(source)) == before[:2],
        "source": (gradients_in(source), [Array.of(tensor) for tensor in given]) == before[2:],
        "grad mode": recording is case.given["recording"],
        "target gradients": rest_after[0] == rest[0],
        "modes": rest_after[1][1:] == rest[1][1:],
        "hooks": rest_after[2] == rest[2],
    }
