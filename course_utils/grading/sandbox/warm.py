"""What a warm parent loads before it forks: little for the first child, which somebody waits for, then the rest."""

from __future__ import annotations

import gc
import os
import pkgutil
from importlib import import_module
from pathlib import Path

from course_utils.checks.observers import lookup

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
    """The shell that a child runs cells in, and what the watched modules held. Both change as more is loaded."""

    def __init__(self) -> None:
        os.environ["MPLBACKEND"] = "Agg"
        gc.disable()  # nothing is to be collected while modules load, and looking takes a fifth of the time
        import torch

        from course_utils.checks import examine
        from course_utils.grading.sandbox import learner

        torch.set_num_threads(1)
        learner.disarm()
        examine.warm_up()
        self.shell = learner.make_shell()
        self.shell.run_cell("import torch\n1 + 1", silent=True)
        self._whole = False
        self._settle()

    def lesson(self, lesson: str) -> None:
        """Load what observes the exercises of a lesson. Of a lesson that is none, nothing is loaded."""
        gc.disable()
        if lookup.load(lesson):
            self._settle()
        gc.enable()

    def whole(self) -> None:
        """Load all that notebooks and observers may need, and do once what imports more when it is first done."""
        if self._whole:
            return
        from course_utils.grading.sandbox import learner

        gc.disable()
        for name in IMPORTS:
            import_module(name)
        for package in ("checks.observers", "explain", "graph", "pictures"):
            home = import_module(f"course_utils.{package}")
            for module in pkgutil.walk_packages(home.__path__, f"{home.__name__}."):
                import_module(module.name)
        learner.warm_up()
        self._whole = True
        gc.collect()
        self._settle()

    def _settle(self) -> None:
        """Remember what is loaded now, and take it out of the garbage collector's sight: forks then share it."""
        from course_utils.grading.sandbox.integrity import Original

        self.original = Original()
        gc.freeze()
        gc.enable()
        threads = len(list(Path("/proc/self/task").iterdir()))
        if threads != 1:
            raise Threads(f"the warm parent has {threads} threads; a fork is safe with 1 only")
