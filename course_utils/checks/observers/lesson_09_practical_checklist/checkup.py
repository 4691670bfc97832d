"""Running an answer to `checkup`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course_utils.checks.data import Answer, Case, Observation, plain, type_name
from course_utils.checks.observers.lesson_09_practical_checklist.watched import flags_of, modes_of
from course_utils.checks.observers.traces import hooks_on, parts_of
from course_utils.checks.scenes.lesson_09_practical_checklist.checkup import patient
from course_utils.checks.scenes.zoo import OwnError, Stopped

_FAILS = "this step fails at its end"


def observe(answer: Answer, case: Case) -> Observation:
    model, optimizer, step = patient(case)
    calls: list[None] = []
    before, modes, own = flags_of([model]), modes_of([model]), hooks_on(*parts_of(model), optimizer)
    errors: dict[str, type[BaseException]] = {"OwnError": OwnError, "Stopped": Stopped}
    error = errors.get(case.given["raises"])

    def counted() -> None:
        calls.append(None)
        step()
        if error:
            raise error(_FAILS)

    raised = False
    returned: Any = None
    try:
        returned = answer(model, optimizer, counted)
    except (OwnError, Stopped) as caught:
        if str(caught) != _FAILS:
            raise
        raised = True
    if isinstance(returned, Mapping):
        returned = {key: _names(value) if isinstance(key, str) else value for key, value in returned.items()}
    return {
        "returned": plain(returned),
        "raised": raised,
        "calls": len(calls),
        "hooks": hooks_on(*parts_of(model), optimizer) - own,
        "parameters": {name: plain(it) for name, it in model.named_parameters()},
        "gradients": {name: plain(it.grad) for name, it in model.named_parameters()},
        "flags": flags_of([model]) == before,
        "modes": modes_of([model]) == modes,
    }


def _names(value: object) -> Any:
    """Return a set as a list: sets do not cross."""
    if type(value) in (set, frozenset):
        return sorted((item if type(item) is str else type_name(item)) for item in value)  # type: ignore[attr-defined]
    return value
