"""What a warm parent loads before it forks: little for the first child, which somebody waits for, then the rest.

A first child that cannot import what it lacks has all of it, too.
"""

from __future__ import annotations

import gc
import os
import pkgutil
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from course_utils.checks.observers.lookup import Observer
    from course_utils.grading.sandbox.integrity import Original

# Everything that notebooks import, so that a child finds it loaded.
IMPORTS = (
    *("bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "decimal", "enum", "fractions"),
    *("functools", "gc", "heapq", "inspect", "io", "itertools", "json", "math", "operator", "pprint", "random", "re"),
    *("statistics", "string", "textwrap", "threading", "time", "timeit", "tracemalloc", "traceback", "types", "typing"),
    *("warnings", "weakref", "numpy", "torch", "torch._dynamo", "torch.func", "torch.utils.checkpoint", "torch.optim"),
    *("torch.autograd.forward_ad", "torch.nn.functional", "torch.nn.utils", "torch.utils.data", "torch.distributions"),
    *("matplotlib.pyplot", "ipywidgets", "IPython.display", "asyncio"),
)


class Threads(Exception):
    """This process has started threads. It must not fork: what they hold would be held in the child for ever."""


class Warmth:
    """The shell that a child runs cells in, and for a lesson: its `observers`, and the `original` of what they use."""

    original: Original
    observers: Mapping[str, Observer]

    def __init__(self) -> None:
        os.environ["MPLBACKEND"] = "Agg"
        gc.disable()  # nothing is to be collected while modules load, and looking takes a fifth of the time
        import torch

        from course_utils.grading.sandbox import learner

        torch.set_num_threads(1)
        # PyTorch asks once which vector instructions the processor has, when it first computes, and reads /proc and
        # /sys. A child finds neither, and would compute with the plainest: rounded otherwise than where it is judged.
        torch.backends.cpu.get_cpu_capability()
        learner.disarm()
        self.shell = learner.make_shell()
        self.shell.run_cell("import torch\n1 + 1", silent=True)
        self._whole = False
        self._lessons: dict[str, tuple[Original, Mapping[str, Observer]]] = {}
        _settle()

    def lesson(self, lesson: str) -> None:
        """Load what observes the exercises of a lesson, and watch that. Of a lesson that is none, nothing is loaded."""
        from course_utils.checks.observers import lookup
        from course_utils.grading.sandbox import learner
        from course_utils.grading.sandbox.integrity import Original, used_by

        gc.disable()
        if lookup.load(lesson):
            self._lessons.clear()
        if lesson not in self._lessons:
            _load("explain")  # a child can import nothing, and an answer may raise
            own = [learner.__name__, *(name for name in sys.modules if _may_observe(name, lesson))]
            self._lessons[lesson] = Original(used_by(own)), lookup.loaded(lesson)
            _settle()
        gc.enable()
        self.original, self.observers = self._lessons[lesson]

    def whole(self) -> None:
        """Load all that notebooks and observers may need, and do once what imports more when it is first done."""
        if self._whole:
            return
        from course_utils.grading.sandbox import learner

        gc.disable()
        for name in IMPORTS:
            import_module(name)
        for package in ("checks.observers", "explain", "graph", "pictures"):
            _load(package)
        learner.warm_up()
        self._whole = True
        self._lessons.clear()
        gc.collect()
        _settle()


def _load(package: str) -> None:
    home = import_module(f"course_utils.{package}")
    for module in pkgutil.walk_packages(home.__path__, f"{home.__name__}."):
        import_module(module.name)


def _may_observe(name: str, lesson: str) -> bool:
    """Say whether a module is an observer or a scene, and of no other lesson."""
    trying = name.startswith(("course_utils.checks.observers.", "course_utils.checks.scenes."))
    return trying and (".lesson_" not in name or f".lesson_{lesson}." in name)


def _settle() -> None:
    """Take what is loaded now out of the garbage collector's sight: forks then share it."""
    gc.freeze()
    gc.enable()
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads != 1:
        raise Threads(f"the warm parent has {threads} threads; a fork is safe with 1 only")
