"""Loaders that give no batch at all: fewer rows than a batch has, and the last one is dropped."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

from course_utils.audit.holders import variables
from course_utils.audit.lines import Spot
from course_utils.audit.reading import Told
from course_utils.audit.source import assigned


def empty_loaders() -> dict[str, Told]:
    """Return what to say of the loaders at hand that have rows and no batch, by their names."""
    found = {}
    for spot, name, value in variables():
        if isinstance(value, DataLoader) and _is_empty(value):
            found[name] = _told(assigned(spot, name) or spot, name, value)
    return found


def _is_empty(loader: DataLoader[Any]) -> bool:
    try:
        return len(loader) == 0 and len(loader.dataset) > 0 and bool(loader.drop_last)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):
        return False  # a stream has no length


def _told(spot: Spot, name: str, loader: DataLoader[Any]) -> Told:
    rows = len(loader.dataset)  # type: ignore[arg-type]
    return Told(
        "loader-empty",
        spot,
        f"{name} gives no batch: of {rows} rows, drop_last leaves out what fills no batch of {loader.batch_size}",
        "A loop over it does nothing and says nothing. What is measured in there keeps its first value, and what is "
        "trained in there stays as it is.",
        "drop_last=False  # in evaluation no row is to be left out",
        (name,),
    )
