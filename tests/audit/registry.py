"""How loops enter the zoos."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

MARK = "# <- here"


@dataclass(frozen=True)
class Fault:
    """A loop with one fault: the code that must be found, at a line that ends in MARK.

    `also` holds codes that may be said as well, because they are true of the loop, too.
    """

    name: str
    run: Callable[[], object]
    code: str
    also: frozenset[str] = frozenset()
    lines: frozenset[int] = field(default=frozenset())


RIGHT: dict[str, Callable[[], object]] = {}
FAULTS: dict[str, Fault] = {}


def right(function):
    """Enter a right loop: nothing of level error or likely may be said of it."""
    assert function.__name__ not in RIGHT, function.__name__
    RIGHT[function.__name__] = function
    return function


def fault(code, *also):
    """Enter a faulty loop."""

    def enter(function):
        name = function.__name__
        assert name not in FAULTS, name
        source, first = inspect.getsourcelines(function)
        marked = frozenset(first + at for at, line in enumerate(source) if line.rstrip().endswith(MARK))
        assert marked, f"{name}: mark the line"
        FAULTS[name] = Fault(name, function, code, frozenset(also), marked)
        return function

    return enter
