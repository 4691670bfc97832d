"""Words and categories that are numbered once for the training, and anew for held-out data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Subset

from course_utils.audit.holders import variables
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parameters, parts
from course_utils.audit.namings import is_held, is_trained, without_part, words_of
from course_utils.audit.parted import CHOICES, by_part
from course_utils.audit.reading import Scopes, Told
from course_utils.audit.source import assigned
from course_utils.explain.source import called, names_of

_MOST, _SPECIAL, _COMMON = 100_000, 8, 2
_CODES = frozenset({"factorize", "get_dummies"})
_ALIGNED = re.compile(r"reindex|align\(|categories|\.columns|union_categoricals|concat\(")


class _Numbering(NamedTuple):
    """What numbers words in a variable, and the class of the data set that it belongs to, if it is one."""

    spot: Spot
    name: str  # "site.numbers" for what the thing named `site` holds
    words: dict[Any, int]
    kind: type | None

    @property
    def root(self) -> str:
        return self.name.partition(".")[0]

    @property
    def tail(self) -> str:
        return self.name.partition(".")[2]


def numbered_apart() -> dict[str, Told]:
    """Return the held-out data whose numbers stand for other words than the training's: both are at hand now.

    Where the numbers are those of one training, other trainings beside it may have others.
    """
    every = [
        _Numbering(spot, name, words, _kind(value))
        for spot, variable, value in variables()
        for name, words in _numberings(variable, value)
    ]
    found: dict[str, Told] = {}
    for own in every:
        trained = [it for it in every if _is_new_beside(own, it)]
        line = assigned(own.spot, own.root) if trained else None
        if line is not None and all(_moved(own, it) for it in trained):
            other = trained[0]
            word = _moved(own, other)
            what = f"{own.name} has other numbers than {other.name}"
            more = f"{what}: {word!r} is {own.words[word]} here, and {other.words[word]} there"
            found[f"ids of {own.root}"] = _told(line, more if len(more) < 120 else what, own.root)
    return found


def _is_new_beside(own: _Numbering, other: _Numbering) -> bool:
    """Say whether one numbering is that of new data for what was learnt with the other."""
    if own.tail != other.tail or is_held(other.root):
        return False
    if not own.tail and without_part(own.root) != without_part(other.root):
        return False
    # Of several sets of one class where one is the training's, the others are such data.
    beside = own.kind is not None and own.kind is other.kind and is_trained(other.root) and not is_trained(own.root)
    return is_held(own.root) or (beside and own.words.keys() <= other.words.keys())


def _moved(own: _Numbering, other: _Numbering) -> Any:
    """Return a word that two numberings share and number differently; None where they share too few, or agree."""
    common = [word for word in own.words if word in other.words]
    moved = [word for word in common if own.words[word] != other.words[word]]
    return moved[0] if moved and len(common) >= _COMMON else None


def _kind(value: Any) -> type | None:
    """Return the class of a data set of the script's."""
    data = _behind(value)
    return type(data) if isinstance(data, Dataset) else None


def _behind(value: Any) -> Any:
    while isinstance(value, DataLoader | Subset):
        value = value.dataset
    return value


def _numberings(name: str, value: Any) -> Iterator[tuple[str, dict[Any, int]]]:
    """Yield what numbers words or categories in a value: a dictionary, an encoder, those that a data set holds."""
    value = _behind(value)
    inside = vars(value) if hasattr(value, "__dict__") and not isinstance(value, type | torch.Tensor) else {}
    classes = inside.get("classes_")
    if isinstance(classes, np.ndarray | list) and len(classes) < _MOST:
        yield name, {str(it): at for at, it in enumerate(classes)}
    if _is_numbering(value):
        yield name, value
    for key, it in inside.items() if "." not in name and not isinstance(value, torch.nn.Module) else ():
        if _is_numbering(it):
            yield f"{name}.{key}", it


def _is_numbering(value: Any) -> bool:
    """Say whether a dictionary gives each of some words a whole number of its own, one after the other."""
    if type(value) is not dict or not 2 <= len(value) < _MOST or not all(isinstance(it, str) for it in value):
        return False
    numbers = list(value.values())
    if not all(type(it) is int for it in numbers):
        return False
    return len(set(numbers)) == len(numbers) and max(numbers) - min(numbers) < len(numbers) + _SPECIAL


def renumberings(scopes: Scopes) -> Iterator[Told]:
    """Yield the lines that number the categories of held-out data by themselves, where the training's are, too."""
    for file, scope in scopes:
        if isinstance(scope, ast.FunctionDef):
            yield from _in_one_function(file, scope, scopes)
        coded = [(it, words) for it in parts(scope) if isinstance(it, ast.expr) and (words := _coded(it))]
        trained = any(any(map(is_trained, words)) for _, words in coded)
        for node, words in coded:
            held = sorted(filter(is_held, words))
            aligned = _ALIGNED.search(ast.unparse(scope))
            if trained and held and not any(map(is_trained, words)) and not aligned:
                yield renumbered(Spot(file, node.lineno), f"the categories of {held[0]} are numbered anew", held[0])


def _coded(node: ast.expr) -> set[str]:
    """Return the words of what gets numbers by the categories that are in it: `pd.factorize(x)`, `x.cat.codes`."""
    if isinstance(node, ast.Call) and called(node) in _CODES:
        return words_of(node) - {"pd", "np"}
    if isinstance(node, ast.Attribute) and node.attr == "codes":
        return words_of(node) - {"pd", "np"}
    return set()


def _in_one_function(file: str, function: ast.FunctionDef, scopes: Scopes) -> Iterator[Told]:
    """Yield the line at which a function numbers the words of what it is given, held-out data, too."""
    if any(isinstance(it, CHOICES) for it in ast.walk(function)):
        return
    found = [it for it in parts(function) if isinstance(it, ast.Assign) and _numbers(it.value)]
    for line in found:
        name = ast.unparse(line.targets[0])
        used = any(
            isinstance(it, ast.Subscript | ast.Attribute) and ast.unparse(it.value) == name for it in parts(function)
        )
        if not used or not _comes_from(line.value, function) or _returns(function, name):
            continue
        trained, held = by_part(function, scopes)
        if trained and held:
            what = f"{function.name} numbers the words of what it is given, also of that of line {held[0].lineno}"
            yield renumbered(Spot(file, line.lineno), what, name)


def _numbers(value: ast.expr) -> bool:
    """Say whether an expression numbers words in the order of their coming, or by how many there are."""
    if not isinstance(value, ast.DictComp) or "sorted(" in ast.unparse(value):
        return False
    return any(called(it.iter) == "enumerate" for it in value.generators)


def _comes_from(value: ast.expr, function: ast.FunctionDef) -> bool:
    """Say whether what is numbered is made of what a function is given, and nothing sorts it on the way."""
    names, known = names_of(value), set(parameters(function))
    lines = [it for it in parts(function) if isinstance(it, ast.Assign)]
    for line in reversed(lines):
        if names & {name for to in line.targets for name in names_of(to)}:
            if "sorted(" in ast.unparse(line.value):
                return False
            names |= names_of(line.value)
    return bool(names & known)


def _returns(function: ast.FunctionDef, name: str) -> bool:
    """Say whether a function gives a numbering back: the caller may pass on that of the training."""
    given = [it.value for it in ast.walk(function) if isinstance(it, ast.Return) and it.value is not None]
    alone = [part for it in given for part in (it.elts if isinstance(it, ast.Tuple) else [it])]
    handed = [it for value in alone for call in ast.walk(value) if isinstance(call, ast.Call) for it in call.args]
    return any(ast.unparse(part) == name for part in (*alone, *handed))


def renumbered(spot: Spot, what: str, data: str) -> Told:
    """Return what is said of data that get numbers of their own, as the source says."""
    return _told(spot, f"{what}: the training's numbers are others", data)


def _told(spot: Spot, headline: str, data: str) -> Told:
    return Told(
        "ids-apart",
        spot,
        headline,
        "The model has learned what each number stands for. Numbers that are given anew, by what is in the held-out "
        "data and in which order, stand for other words or categories: the model reads another text.",
        "test = encode(test_words, vocabulary)  # with the numbering that was made of the training part",
        (data,),
    )
