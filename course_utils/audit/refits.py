"""Held-out data that are brought to a scale of their own, in place of that of the training."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parameters, parts
from course_utils.audit.namings import is_held, is_trained
from course_utils.audit.parted import CHOICES, by_part
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.audit.renumbering import renumbered
from course_utils.audit.source import tree_of
from course_utils.explain.source import called, names_of

_FITS = frozenset({"fit_transform", "fit"})
_MEANS, _SPREADS = frozenset({"mean", "min", "amin", "nanmean"}), frozenset({"std", "max", "amax", "nanstd"})
_OWN_EACH = re.compile(r"tsne|umap|mds|means|cluster|dbscan|mixture|model|net$|detector", re.I)
_DRAWN = re.compile(rf"{_OWN_EACH.pattern}|pca|svd|plot|scatter", re.I)  # a picture of data has its own axes
_ENCODERS = re.compile(r"(Label|Ordinal|OneHot)(Encoder|Binarizer)|Vectorizer|Tokenizer")
_ASKS = re.compile(r"^_*(predict|infer|evaluat|score|test|transform|forecast|classify|apply)", re.I)


def refits(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the lines that fit a scaler to held-out data, or scale them by what they are themselves."""
    for file, scope in scopes:
        nodes = list(parts(scope))
        calls = [it for it in nodes if isinstance(it, ast.Call) and isinstance(it.func, ast.Attribute)]
        fits = [it for it in calls if called(it) in _FITS and it.args]
        for call in fits:
            owner = ast.unparse(call.func.value)  # type: ignore[attr-defined]
            data = names_of(call.args[0]) - {name for it in ast.walk(call) for name in _each(it)}
            first = [it for it in fits if ast.unparse(it.func.value) == owner and it.lineno < call.lineno]  # type: ignore[attr-defined]
            again = any(any(map(is_trained, names_of(it.args[0]))) for it in first)
            if again and len(call.args) == 1 and data and all(map(is_held, data)):
                encodes = _ENCODERS.search(owner) or _ENCODERS.search(_made(owner, nodes))
                what = f"{owner} is fitted again, to {min(data)}"
                yield (renumbered if encodes else _told)(Spot(file, call.lineno), what, min(data))
        own = {name: line for line in nodes if isinstance(line, ast.Assign) for name in _by_itself(line)}
        trained = any(is_trained(name) for name in own)
        for name, line in own.items():
            if trained and is_held(name):
                yield _told(Spot(file, line.lineno), f"{name} is scaled by its own mean and spread", name)
    yield from _when_asked(scopes)
    yield from _in_one_function(scopes)


def _each(node: ast.AST) -> set[str]:
    """Return the names of what goes through data: those of `[x for x in data]`."""
    return names_of(node.target) if isinstance(node, ast.comprehension) else set()


def _made(owner: str, nodes: list[ast.AST]) -> str:
    """Return what a name is bound to in a function, as code."""
    lines = [it for it in nodes if isinstance(it, ast.Assign) and owner in map(ast.unparse, it.targets)]
    return ast.unparse(lines[-1].value) if lines else ""


def _when_asked(scopes: Scopes) -> Iterator[Told]:
    """Yield the lines of methods for new data that fit what the method for the training fits, too."""
    ran = {scope for _, scope in scopes}
    for file in sorted({file for file, _ in scopes}):
        tree = tree_of(file)
        kinds = [it for it in ast.walk(tree) if isinstance(it, ast.ClassDef)] if tree is not None else []
        for kind in kinds:
            fits = {it: _fits_of(it) for it in kind.body if isinstance(it, ast.FunctionDef) and it in ran}
            trained = {owner for it, found in fits.items() if _trains(it) for owner in found}
            for method, found in fits.items():
                for owner, line in found.items():
                    if owner in trained and _ASKS.match(method.name) and not _trains(method):
                        what = f"{owner} is fitted again in {method.name}, to the data that are asked for"
                        encodes = _ENCODERS.search(_made(owner, list(ast.walk(kind))))
                        yield (renumbered if encodes else _told)(Spot(file, line), what, owner)


def _fits_of(method: ast.FunctionDef) -> dict[str, int]:
    """Return what of its object a method fits each time that it is called, with the line."""
    calls = _calls(method)
    texts = {ast.unparse(it.func) for it in calls}
    guarded = {it for choice in ast.walk(method) if isinstance(choice, CHOICES) for it in ast.walk(choice)}
    found = {}
    for call in calls:
        owner = ast.unparse(call.func).rpartition(".")[0]
        used = called(call) == "fit_transform" or f"{owner}.transform" in texts
        given = names_of(*call.args) & set(parameters(method))
        scales = owner.startswith("self.") and not _OWN_EACH.search(owner)
        if called(call) in _FITS and used and given and scales and call not in guarded:
            found[owner] = call.lineno
    return found


def _calls(scope: ast.AST) -> list[ast.Call]:
    return [it for it in ast.walk(scope) if isinstance(it, ast.Call)]


def _trains(method: ast.FunctionDef) -> bool:
    return re.match(r"_*(fit|train)", method.name) is not None or ".backward(" in ast.unparse(method)


def _in_one_function(scopes: Scopes) -> Iterator[Told]:
    """Yield the lines of functions that fit a scaler to what they are given, held-out data, too."""
    for file, scope in scopes:
        if not isinstance(scope, ast.FunctionDef) or any(isinstance(it, CHOICES) for it in ast.walk(scope)):
            continue
        gives = any(isinstance(it, ast.Return) and it.value is not None for it in ast.walk(scope))
        for call in _calls(scope) if gives else ():
            given = names_of(*call.args) & set(parameters(scope))
            if called(call) != "fit_transform" or len(call.args) != 1 or not given:
                continue
            trained, held = by_part(scope, scopes)
            if trained and held and not _DRAWN.search(ast.unparse(scope)):
                what = f"{scope.name} fits a scaler to what it is given, also to that of line {held[0].lineno}"
                yield _told(Spot(file, call.lineno), what, min(given))


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
