"""`%load_ext course_utils`: a card below the traceback of each cell that PyTorch stops, or warns."""

from __future__ import annotations

import sys
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from html import escape
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from course_utils.explain import passes
from course_utils.explain.card import Card
from course_utils.explain.explaining import explained
from course_utils.explain.explanation import Explanation
from course_utils.explain.rerun import Writes
from course_utils.explain.warned import warnings_explained

LEVELS = ("off", "short", "full")
# A cell in which PyTorch warns of many things shows the first of them.
MAX_CARDS = 3

_HELP = "%autograd_help off, short or full: what is shown below an error. Now: "


@dataclass(frozen=True)
class Notice:
    """One grey line, for what is not an explanation."""

    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": f'<div role="note" style="opacity:0.7">{escape(self.text)}</div>'}


class Helper:
    """What the extension keeps between cells: how much to show, and the last explanation as plain data."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self.level = "full"
        self.last: Explanation | None = None
        self._warned: list[Explanation] = []
        self._cell = ExitStack()
        self._writes: Writes | None = None

    def load(self) -> None:
        passes.remember()
        self._shell.events.register("pre_run_cell", self.begins)
        self._shell.events.register("post_run_cell", self.ended)
        register: Any = self._shell.register_magic_function
        register(self.autograd_help, "line", "autograd_help")
        register(self.explain, "line_cell", "explain")

    def unload(self) -> None:
        self._cell.close()
        self._shell.events.unregister("pre_run_cell", self.begins)
        self._shell.events.unregister("post_run_cell", self.ended)
        for kind in ("line", "cell"):
            for name in ("autograd_help", "explain"):
                self._shell.magics_manager.magics[kind].pop(name, None)
        passes.forget()

    def begins(self, info: Any) -> None:
        """Before a cell: look at the warnings that it gives."""
        self._cell.close()
        self._warned.clear()
        if self.level != "off":
            self._cell.enter_context(warnings_explained(self._warned.append, self._failed))

    def ended(self, result: Any) -> None:
        """After a cell, below its traceback: show what can be said. Nothing that happens here reaches the learner."""
        self._cell.close()
        found, self._warned = self._warned, []
        if self.level == "off":
            return
        try:
            if result.error_in_exec is not None:
                of_error = explained(result.error_in_exec, self._writes)
                found = [of_error, *found] if of_error is not None else found
        except Exception as error:
            self._failed(error)
        for it in reversed(found[:MAX_CARDS]):
            self.last = it
        for it in found[:MAX_CARDS]:
            display(Card(it, short=self.level == "short"))

    def _failed(self, error: Exception) -> None:
        display(Notice(f"course_utils could not explain this: its own code failed with {type(error).__name__}."))

    def autograd_help(self, line: str) -> None:
        """%autograd_help off|short|full: how much is shown below an error of PyTorch's."""
        level = line.strip()
        if level in LEVELS:
            self.level = level
        elif level:
            display(Notice(f"%autograd_help got {level!r}. It takes off, short or full; it stays {self.level}."))
            return
        display(Notice(_HELP + self.level))

    def explain(self, line: str, cell: str | None = None) -> None:
        """%explain: the last error, in full. %%explain: run the cell again, with each write into a tensor watched.

        What the cell does happens again, also to your variables and files.
        """
        if cell is not None:
            self._again(cell)
            return
        if self.last is None and isinstance(getattr(sys, "last_value", None), BaseException):
            try:
                self.last = explained(sys.last_value)
            except Exception as error:
                self._failed(error)
        if self.last is None:
            display(Notice("There is nothing to explain: no error or warning of PyTorch's that the course knows."))
        else:
            display(Card(self.last))

    def _again(self, cell: str) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Error detected in")  # anomaly mode's own; the card has the line
            with torch.autograd.set_detect_anomaly(True, check_nan=False), Writes() as self._writes:
                try:
                    self._shell.run_cell(cell)
                finally:
                    self._writes = None


_helpers: dict[int, Helper] = {}


def load(shell: InteractiveShell) -> None:
    """Begin to explain what cells raise. A second time changes nothing."""
    if id(shell) not in _helpers:
        _helpers[id(shell)] = Helper(shell)
        _helpers[id(shell)].load()


def unload(shell: InteractiveShell) -> None:
    """Stop, and leave nothing behind."""
    helper = _helpers.pop(id(shell), None)
    if helper is not None:
        helper.unload()
