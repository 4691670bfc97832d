"""What is there when an error is to be explained: its text, the learner's lines and names, PyTorch's own frames.

Everything is looked up, nothing is evaluated: no property, `__getattr__` or operator of the learner's runs.
A Situation holds live frames. It is dropped when the explanation is made, and nothing of it is kept.
"""

from __future__ import annotations

import ast
import dis
import inspect
import os
import traceback
import types
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import FrameType
from typing import Any

import torch

from course_utils.explain.explanation import Place
from course_utils.explain.ownership import BETWEEN, COURSE, TORCH, is_learners
from course_utils.explain.reading import MISSING, is_a, value_of
from course_utils.explain.rerun import Writes
from course_utils.explain.source import Scope, Source, Sources

MAX_TEXT = 4_000


@dataclass(eq=False)
class Call:
    """One of the learner's functions at work, or their file or cell: where it stands, and what its names mean."""

    frame: FrameType
    line: int
    instruction: int
    sources: Sources
    running: bool = False  # the function has not ended, as when it is warned

    @property
    def file(self) -> str:
        return self.frame.f_code.co_filename

    @property
    def is_module(self) -> bool:
        return self.frame.f_code.co_name == "<module>"

    @cached_property
    def names(self) -> Mapping[str, Any]:
        """The function's own names; none of a function that still runs.

        To ask a running function for its names leaves a copy of them in its frame, which would keep them alive.
        """
        if self.running and self.frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return {}
        return self.frame.f_locals

    @cached_property
    def source(self) -> Source | None:
        return self.sources.of(self.file, self.frame.f_globals)

    @cached_property
    def scope(self) -> Scope | None:
        """The function as it was written, or the whole file."""
        return None if self.source is None else self.source.function(self.frame.f_code)

    @cached_property
    def node(self) -> ast.AST | None:
        """The expression that was being worked out: the very call of a line with several."""
        if self.source is None or self.instruction < 0:
            return None
        for position, place in enumerate(self.frame.f_code.co_positions()):
            if position == self.instruction // 2:
                start, end, column, end_column = place
                if start is None or end is None or column is None or end_column is None:
                    return None
                return self.source.at(start, end, column, end_column)
        return None

    @cached_property
    def statement(self) -> ast.stmt | None:
        return None if self.node is None or self.source is None else self.source.statement(self.node)

    def look_up(self, name: str) -> Any:
        """Return what a name means here, or MISSING."""
        if name in self.names:
            return self.names[name]
        return self.frame.f_globals.get(name, MISSING)

    def value(self, node: ast.AST | None) -> Any:
        """Return what an expression of names, attributes and constant indices means here, or MISSING."""
        return value_of(node, self.look_up)

    def place(self, role: str, node: ast.AST | int | None = None) -> Place:
        """Return one line, with the part that it plays; the line that is being run by default."""
        line = self.line if node is None else node if isinstance(node, int) else getattr(node, "lineno", self.line)
        source = self.source if not isinstance(node, ast.AST) else self.home(node)
        return Place(role, self.file, line, "") if source is None else Place(role, source.file, line, source.text(line))

    def home(self, node: ast.AST) -> Source | None:
        """Return the source that a part of a syntax tree is of: the call's own, or that of a cell before it."""
        if self.source is None or node in self.source:
            return self.source
        return next((cell for cell in self.sources.cells_before(self.source) if node in cell), self.source)


@dataclass(eq=False)
class Situation:
    """One error or warning with everything that is still there of it."""

    kind: type
    text: str
    calls: tuple[Call, ...] = ()
    torch_frames: tuple[FrameType, ...] = ()  # outermost first
    file: str = ""  # of a warning
    line: int = 0
    error: BaseException | None = None
    sources: Sources = field(default_factory=Sources)
    writes: Writes | None = None  # what a second run of the cell saw
    in_pass: int = 0  # how many of the calls stood before a backward pass began; 0 without one

    @property
    def started(self) -> Call | None:
        """The learner's line that began the backward pass; their innermost line where there was none."""
        return self.calls[self.in_pass - 1] if self.in_pass else self.here

    @property
    def here(self) -> Call | None:
        """The learner's innermost line."""
        return self.calls[-1] if self.calls else None

    def needed(self, role: str = "raised here") -> tuple[Place, ...]:
        """Return the learner's line at which PyTorch refused, or warned."""
        if self.here is not None:
            return (self.here.place(role),)
        if self.line and is_learners(self.file):
            source = self.sources.of(self.file)
            return (Place(role, self.file, self.line, source.text(self.line) if source else ""),)
        return ()

    def at_start(self, role: str = "raised here") -> tuple[Place, ...]:
        """Return the learner's line that began the backward pass."""
        return (self.started.place(role),) if self.started is not None else ()

    @property
    def node(self) -> ast.AST | None:
        return None if self.here is None else self.here.node

    @cached_property
    def line_tree(self) -> ast.stmt | None:
        """The statement that was being run; also of a warning, of which only file and line are known."""
        if self.here is not None:
            return self.here.statement
        source = self.sources.of(self.file) if is_learners(self.file) else None
        found = (
            [n for n in ast.walk(source.tree) if isinstance(n, ast.stmt) and n.lineno == self.line] if source else []
        )
        return found[-1] if found else None

    def within(self, file: str, function: str = "") -> FrameType | None:
        """Return PyTorch's innermost frame in a file ("optim/optimizer.py"), and in a function of it."""
        for frame in reversed(self.torch_frames):
            code = frame.f_code
            if f"/torch/{file}" in code.co_filename.replace(os.sep, "/") and function in ("", code.co_name):
                return frame
        return None

    def given(self, file: str, function: str, name: str) -> Any:
        """Return what a function of PyTorch's has under a name, or MISSING."""
        frame = self.within(file, function)
        return MISSING if frame is None else frame.f_locals.get(name, MISSING)

    @cached_property
    def roots(self) -> tuple[torch.Tensor, ...]:
        """The tensors that the failing backward pass started from."""
        for function, name in (("backward", "tensors"), ("grad", "outputs"), ("backward", "self")):
            file = "_tensor.py" if name == "self" else "autograd/__init__.py"
            found = self.given(file, function, name)
            if is_a(found, torch.Tensor):
                return (found,)
            if isinstance(found, list | tuple):
                return tuple(tensor for tensor in found if is_a(tensor, torch.Tensor))
        return ()


def situation_of(error: Any) -> Situation | None:
    """Return what is there of an exception or a warning; None where it cannot be PyTorch's or Python's own."""
    if isinstance(error, warnings.WarningMessage):
        if not is_a(error.category, type):
            return None
        return Situation(error.category, _text(error.message), file=str(error.filename), line=int(error.lineno))
    if not isinstance(error, BaseException) or error.__traceback__ is None:
        return None
    entries: list[tuple[FrameType, int, int]] = []
    step: types.TracebackType | None = error.__traceback__
    while step is not None:
        entries.append((step.tb_frame, step.tb_lineno, step.tb_lasti))
        step = step.tb_next
    last, _, instruction = entries[-1]
    if not last.f_code.co_filename.startswith(TORCH) and _raises(last, instruction):
        return None  # somebody's own `raise`, whatever it says
    found = _of_frames(type(error), _text(error), entries)
    if found is not None:
        found.error = error
    return found


def situation_of_stack(category: type, text: str, file: str, line: int, frame: FrameType | None) -> Situation | None:
    """Return what is there of a warning while it is given, when the whole stack is still at work."""
    entries = [(frame, number, frame.f_lasti) for frame, number in traceback.walk_stack(frame)]
    found = _of_frames(category, _ends(text), entries[::-1], running=True)
    if found is not None:
        found.file, found.line = file, line
    return found


def _of_frames(
    kind: type, text: str, entries: list[tuple[FrameType, int, int]], running: bool = False
) -> Situation | None:
    sources = Sources()
    calls, frames = [], []
    outer, in_pass = "", 0
    for frame, line, instruction in entries:
        file = frame.f_code.co_filename
        if is_learners(file):
            calls.append(Call(frame, line, instruction, sources, running))
        if file.startswith(TORCH):
            frames.append(frame)
            if frame.f_code.co_name == "_engine_run_backward" and not in_pass:
                in_pass = len(calls)
        elif is_learners(file) or (file.startswith(COURSE) and not file.startswith(BETWEEN)):
            outer = file  # whoever called last into libraries
    found = Situation(kind, text, tuple(calls), tuple(frames), sources=sources, in_pass=in_pass)
    # The course's own line, of which a learner knows nothing. What a checkpoint runs again is the learner's, whoever
    # began the pass.
    return None if outer.startswith(COURSE) and found.within("utils/checkpoint.py") is None else found


def _raises(frame: FrameType, instruction: int) -> bool:
    """Return whether a frame stands at a `raise` or `assert` of its own."""
    return dis.opname[frame.f_code.co_code[instruction]] == "RAISE_VARARGS" if instruction >= 0 else False


def _text(error: object) -> str:
    """Return an error's message. Its class may be the learner's, and its `__str__` do anything."""
    try:
        return _ends(str.__str__(str(error)))
    except Exception:
        return ""


def _ends(text: str) -> str:
    """Return a text, or the ends of a long one: a worker process is named at the beginning, its error at the end."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT // 2] + text[-MAX_TEXT // 2 :]
