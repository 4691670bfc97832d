"""Code that makes PyTorch raise or warn, for real, each with the card that it must get.

A function is a case, and so is a list of notebook cells. Comments at the end of its lines say which places a card
must show, and no others: `# raised here`.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CASES: dict[str, Case] = {}


@dataclass(frozen=True)
class Case:
    """One piece of code, the code of its card, whether its cause is proved, and words that its card must have.

    `remembered` cases run with the memory of backward passes that the extension keeps.
    """

    run: Callable[[], Any]
    code: str
    certain: bool
    says: tuple[str, ...]
    warns: bool
    remembered: bool


def case(
    code: str, *says: str, certain: bool = True, warns: bool = False, remembered: bool = False
) -> Callable[[Any], Any]:
    def add(run: Callable[[], Any]) -> Callable[[], Any]:
        name = f"{run.__module__.rpartition('.')[2]}.{run.__name__}"
        assert name not in CASES
        CASES[name] = Case(run, code, certain, says, warns, remembered)
        return run

    return add


def cells(name: str, *sources: str) -> Callable[[], None]:
    """Return a function that runs notebook cells one after the other, as a kernel does: all names are global."""

    def run() -> None:
        names: dict[str, Any] = {"__name__": "__main__"}
        for number, source in enumerate(sources):
            file = f"/tmp/ipykernel_{name}/{number}.py"
            linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
            exec(compile(source, file, "exec"), names)

    run.__name__, run.__module__ = name, "provoked.cells"
    return run
