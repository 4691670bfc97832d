"""Telling at once what an observer sees, and observing in one of two unlike ways.

An observer's lists belong to whoever runs in its process: what it told a listener can no more be taken out of them. A
grader listens and runs an answer twice, the second time with other observers, beside which stand decoys: they look as
the first ones do, and nothing is read from them. In a notebook nobody listens, and there are no decoys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Listener = Callable[[str], None]

DECOY = "a decoy"
GAGGED = "another listener"


@dataclass
class _State:
    listener: Listener | None = None
    second: bool = False
    decoys: list[Callable[[], bool]] = field(default_factory=list)


_states = [_State()]  # a list: what watches over modules takes a new value for a change


def _teller() -> tuple[Listener, Callable[[Listener], None]]:
    """Return what tells, and what sets whom it tells for good: no name leads to him."""
    listeners: list[Listener] = []

    def tell(what: str) -> None:
        """Tell the listener that one more of `what` was seen."""
        listener = listeners[0] if listeners else _states[0].listener
        if listener is not None:
            listener(what)

    def listen_for_good(listener: Listener) -> None:
        """Have the listener told from now on, and nobody else: who listens afterwards is told of, and not told."""
        listeners.append(listener)

    return tell, listen_for_good


tell, listen_for_good = _teller()


def listen(listener: Listener | None) -> None:
    """Have the listener told from now on, in place of the one before, where nobody listens for good."""
    if _states[0].listener is None:
        tell(GAGGED)
    _states[0].listener = listener


def observe_otherwise() -> None:
    """Observe in the second way from now on, with decoys."""
    _states[0].second = True


def otherwise() -> bool:
    """Say whether observers are of the second kind."""
    return _states[0].second


def lay(touched: Callable[[], bool]) -> None:
    """Lay a decoy: `touched` will be asked once, after the case, whether somebody changed it or went past it."""
    _states[0].decoys.append(touched)


def gather() -> None:
    """Take up the decoys, and tell of each that was touched."""
    decoys, _states[0].decoys = _states[0].decoys, []
    for touched in decoys:
        if touched():
            tell(DECOY)
