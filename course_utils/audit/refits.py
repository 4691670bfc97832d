"""Held-out data that are brought to a scale of their own, in place of that of the training."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.namings import is_held, is_trained
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.explain.source import called, names_of

_FITS = frozenset({"fit_transform", "fit"})
_MEANS, _SPREADS = frozenset({"mean", "min", "amin", "nanmean"}), frozenset({"std", "max", "amax", "nanstd"})


def refits(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the lines that fit a scaler to held-out data, or scale them by what they are themselves."""
    for file, scope in scopes:
        nodes = list(parts(scope))
        calls = [it for it in nodes if isinstance(it, ast.Call) and isinstance(it.func, ast.Attribute)]
        fits = [it for it in calls if called(it) in _FITS and it.args]
        for call in fits:
            owner = ast.unparse(call.func.value)  # type: ignore[attr-defined]
            data = names_of(call.args[0])
            first = [it for it in fits if ast.unparse(it.func.value) == owner and it.lineno < call.lineno]  # type: ignore[attr-defined]
            again = any(any(map(is_trained, names_of(it.args[0]))) for it in first)
            if again and len(call.args) == 1 and data and all(map(is_held, data)):
                yield _told(Spot(file, call.lineno), f"{owner} is fitted again, to {min(data)}", min(data))
        own = {name: line for line in nodes if isinstance(line, ast.Assign) for name in _by_itself(line)}
        trained = any(is_trained(name) for name in own)
        for name, line in own.items():
            if trained and is_held(name):
                yield _told(Spot(file, line.lineno), f"{name} is scaled by its own mean and spread", name)


def _by_itself(line: ast.Assign) -> set[str]:
    """Return the name of what a line scales by its own mean and deviation, or by its own limits."""
    value = line.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Div) or not isinstance(value.left, ast.BinOp):
        return set()
    left = value.left
    if not isinstance(left.op, ast.Sub) or not isinstance(left.left, ast.Name):
        return set()
    name = left.left.id
    means = any(called(it) in _MEANS and name in names_of(it) for it in ast.walk(left.right))
    spreads = any(called(it) in _SPREADS and name in names_of(it) for it in ast.walk(value.right))
    return {name} if means and spreads and names_of(left.right) - {"torch", "np"} == {name} else set()


def _told(spot: Spot, what: str, data: str) -> Told:
    return Told(
        "fitted-again",
        spot,
        f"{what}: the training's scale is another one",
        "The model has learned what a number means on the scale of its training data. Held-out data on a scale of "
        "their own are shifted and stretched by another amount: equal values come in as different ones.",
        "x_test = scaler.transform(x_test)  # with what was fitted to the training part",
        (data,),
    )
