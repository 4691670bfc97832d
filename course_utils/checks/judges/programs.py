"""Programs of a task, with numbered lines: run as they are or with lines changed, watched; and answers about them."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Finding
from course_utils.checks.judges.predictions import Table

_FILE = "<program>"


@dataclass(frozen=True)
class Ran:
    """What became of a program: its names, and where it stopped with an error, the number of that line."""

    names: dict[str, Any]
    line: int | None = None
    error: Exception | None = None


@dataclass(frozen=True)
class Program:
    """A program of a task. Its lines count from 1, empty ones too. `torch` and `nn` are known to it."""

    text: str
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", dedent(self.text).strip("\n").splitlines())

    def numbered(self) -> str:
        """Return the program as a task shows it, a number before each line."""
        return "\n".join(f"{number:2}  {line}" for number, line in enumerate(self.lines, 1))

    def run(
        self,
        instead: Mapping[int, str] | None = None,
        watch: Callable[[int, dict[str, Any]], None] = lambda line, names: None,
        names: Mapping[str, Any] | None = None,
    ) -> Ran:
        """Run the program, as far as it goes, with other text in place of some lines ("pass" leaves one out).

        `names` are there from the start.

        `watch` gets the number of each statement that stands in no block, and the names, when the statement has run.
        """
        lines = [(instead or {}).get(number, line) for number, line in enumerate(self.lines, 1)]
        known: dict[str, Any] = {"torch": torch, "nn": nn, **(names or {})}
        for statement in ast.parse("\n".join(lines)).body:
            try:
                exec(compile(ast.Module([statement], []), _FILE, "exec"), known)
            except Exception as error:
                return Ran(known, _line_of(error), error)
            watch(statement.lineno, known)
        return Ran(known)


class Choices(Table):
    """A table of letters and whole numbers. A letter may be small, a number may be given as a text."""

    def judge(self, case: Case, seen: Observation) -> Iterator[Finding]:
        """Find which entries are right."""
        yield from super().judge(case, _read(seen))

    def but(self, **changed: Any) -> Callable[[Case, Observation], bool]:
        """Tell an answer that is right but for these entries."""
        only = super().but(**changed)
        return lambda case, seen: only(case, _read(seen))

    def any_but(self, *changes: Mapping[str, Any]) -> Callable[[Case, Observation], bool]:
        """Tell an answer that is right but for the entries of one of several dicts."""
        ways = [self.but(**changed) for changed in changes]
        return lambda case, seen: any(way(case, seen) for way in ways)


def _read(seen: Observation) -> Observation:
    value = seen["value"]
    return {"value": {name: _one(item) for name, item in value.items()} if isinstance(value, dict) else value}


def _one(item: Value) -> Value:
    if not isinstance(item, str):
        return item
    text = item.strip()
    return int(text) if text.isdecimal() and len(text) < 9 else text.upper()


def _line_of(error: Exception) -> int | None:
    """Return the last line of the program that an error went through."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _FILE]
    return lines[-1] if lines else None
