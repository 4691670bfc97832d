"""See what PyTorch's autograd does, and check what you write about it.

`trace`, `saved` and `draw` show a recorded graph; `record_backward` and `step` show a backward pass over it, `memory`
and `plot` the bytes alive during a run. `explain` says what an error of PyTorch's means in your code; so does
`%load_ext course_utils` in a notebook. `predict` asks before it shows. `check`, `hint`, `solution` and `progress`
belong to the exercises.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course_utils.audit.watch import audit as audit
    from course_utils.checks.check import CheckFailed as CheckFailed
    from course_utils.checks.check import check as check
    from course_utils.checks.guidance import hint as hint
    from course_utils.checks.guidance import solution as solution
    from course_utils.checks.overview import progress as progress
    from course_utils.explain.explaining import explain as explain
    from course_utils.explain.explanation import Explanation as Explanation
    from course_utils.graph.record import record_backward as record_backward
    from course_utils.graph.saved import saved as saved
    from course_utils.graph.trace import trace as trace
    from course_utils.graph.watch import memory as memory
    from course_utils.pictures.plots import plot as plot
    from course_utils.pictures.prediction import predict as predict
    from course_utils.pictures.stepper import step as step
    from course_utils.pictures.svg import draw as draw

# Each name is loaded when it is first used, so that `import course_utils` costs next to nothing.
_HOME = {
    "CheckFailed": "checks.check",
    "Explanation": "explain.explanation",
    "audit": "audit.watch",
    "check": "checks.check",
    "draw": "pictures.svg",
    "explain": "explain.explaining",
    "hint": "checks.guidance",
    "memory": "graph.watch",
    "plot": "pictures.plots",
    "predict": "pictures.prediction",
    "progress": "checks.overview",
    "record_backward": "graph.record",
    "saved": "graph.saved",
    "solution": "checks.guidance",
    "step": "pictures.stepper",
    "trace": "graph.trace",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"course_utils has no {name!r}; it has {', '.join(_HOME)}")
    return getattr(import_module(f"course_utils.{_HOME[name]}"), name)


class _Face(ModuleType):
    """Keeps a public name where a part of the package has the same name: importing that would put the part there."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face


def load_ipython_extension(shell: Any) -> None:
    """Explain PyTorch's errors and warnings below their cells, and bring `%%audit` and `%ask`."""
    import_module("course_utils.explain.extension").load(shell)
    import_module("course_utils.audit.magic").register(shell)
    import_module("course_utils.ask.magic").register(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Show none any more, and take `%%audit` and `%ask` away."""
    import_module("course_utils.explain.extension").unload(shell)
    import_module("course_utils.audit.magic").unregister(shell)
    import_module("course_utils.ask.magic").unregister(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
