"""What names say of data: whether they are held out, or for the training."""

from __future__ import annotations

import ast
import re

from course_utils.explain.source import names_of

_HELD = re.compile(r"(^|_)(va|val|vals|valid|validation|te|test|tests|testing|holdout|heldout|dev)(_|\d|$)", re.I)
_TRAINED = re.compile(r"(^|_)(train|training|tr|trn)(_|\d|$)", re.I)
_RUN_ON = re.compile(r"^[xy](val|test|va|te|valid)$", re.I)
_RUN_ON_TRAINED = re.compile(r"^[xy](train|tr)$", re.I)


def is_held(name: str) -> bool:
    """Say whether a name stands for what is held out."""
    found = _HELD.search(_parted(name)) is not None or _RUN_ON.match(name) is not None
    return found and not is_trained(name)


def is_trained(name: str) -> bool:
    """Say whether a name stands for the training's part."""
    return _TRAINED.search(_parted(name)) is not None or _RUN_ON_TRAINED.match(name) is not None


def without_part(name: str) -> str:
    """Return a name without the words that say which part of the data it stands for: `words` for `val_words`."""
    return re.sub(r"_+", "_", _TRAINED.sub("_", _HELD.sub("_", _parted(name)))).strip("_")


def _parted(name: str) -> str:
    """Return a name with its words parted: trainLoader is train_Loader."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)


def words_of(*nodes: ast.AST | None) -> set[str]:
    """Return the names and attributes that stand in some expressions."""
    found = {name for node in nodes if node is not None for name in names_of(node)}
    every = [part for node in nodes if node is not None for part in ast.walk(node)]
    return found | {part.attr for part in every if isinstance(part, ast.Attribute)}
