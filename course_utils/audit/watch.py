"""`audit`: watch a training for mistakes that raise no error."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import torch

from course_utils.audit.book import COMPILED
from course_utils.audit.checks import CHECKS
from course_utils.audit.finding import LEVELS
from course_utils.audit.lines import name_of
from course_utils.audit.patches import listening
from course_utils.audit.recorder import Recorder
from course_utils.audit.report import AuditFailed, Report, Watched
from course_utils.audit.rules import RULES
from course_utils.audit.verdict import unseen, without_consequences

P = ParamSpec("P")
R = TypeVar("R")

FULL_STEPS = 20


class audit:
    """Watch a training: `with audit(model, optimizer) as report:`, or `@audit(steps=10)` above a function.

    Models and optimizers are found as they act; those given are named and watched from the beginning. The first
    `steps` optimizer steps are watched closely, each function of PyTorch's with its line; afterwards passes, steps
    and calls of models, to the end of the body. An optimizer that is made later is watched closely again from its
    making to its own first `steps` steps, three times at most. Nothing of the training changes: no value, gradient or
    random number.

    The report is filled when the body ends. With `strict`, AuditFailed is raised then where anything of level error
    or likely was found. An error of the body comes through. A decorated function has its last report as `report`.

    Raises TypeError for anything given that is neither a module, nor an optimizer, nor a tensor.
    """

    def __init__(self, *subjects: Any, steps: int = FULL_STEPS, strict: bool = False) -> None:
        for subject in subjects:
            if not isinstance(subject, torch.nn.Module | torch.optim.Optimizer | torch.Tensor):
                raise TypeError(
                    f"audit() got {type(subject).__name__}; it takes models, optimizers and tensors, or nothing: "
                    "it finds what a training uses by itself"
                )
        self._subjects = subjects
        self._steps = steps
        self._report = Report()
        self._report.strict = strict
        self._recorder: Recorder | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Report:
        recorder = Recorder(CHECKS, self._steps)
        for subject in self._subjects:
            if isinstance(subject, torch.nn.Module):
                recorder.book.model(subject).name = (name_of(subject) or "").removesuffix(COMPILED)
            elif isinstance(subject, torch.optim.Optimizer):
                recorder.book.trainer(subject)
            else:
                recorder.book.slot(subject).name = name_of(subject) or ""
        recorder.book.index()
        self._recorder = recorder
        self._stack.enter_context(listening(recorder))
        return self._report

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        recorder = self._recorder
        assert recorder is not None
        self._recorder = None
        self._report.interrupted |= kind is not None
        found = recorder.finish(self._report.interrupted)
        self._stack.close()
        findings = without_consequences(found)
        recorder.missed.update(unseen(recorder.clock) | recorder.missed)
        ran = [code for code in RULES if code not in recorder.missed]
        self._report.findings = tuple(sorted(findings, key=lambda it: (LEVELS.index(it.level), it.file, it.line)))
        self._report.watched = Watched(recorder.clock.steps, recorder.clock.passes, tuple(ran), recorder.missed)
        if self._report.strict and error is None and self._report.failing():
            raise AuditFailed(self._report)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Watch each call of a function. Its findings are printed to stderr, and kept as `function.report`."""

        @functools.wraps(function)
        def watched(*args: P.args, **kwargs: P.kwargs) -> R:
            with audit(*self._subjects, steps=self._steps, strict=self._report.strict) as report:
                watched.report = report  # type: ignore[attr-defined]
                result = function(*args, **kwargs)
            if report.findings:
                print(report, file=sys.stderr)
            return result

        return watched
