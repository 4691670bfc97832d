"""Parameters that a model does not know as such: computed, copied, or kept in a plain list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch

from course_utils.audit.book import Book, Model, Slot, Trainer
from course_utils.audit.classes import assigned_anywhere
from course_utils.audit.lines import Spot
from course_utils.graph.trace import walk


class Derived(NamedTuple):
    """What is to be said of such an attribute: the line that sets it, headline, reason and repair."""

    spot: Spot | None
    headline: str
    why: str
    fix: str


def derived_from(models: Iterable[Model], slots: Iterable[Slot]) -> Derived | None:
    """Return the attribute of a module that is computed from one of some leaves: `nn.Parameter(x).float()`."""
    leaves = [slot.tensor for slot in slots]
    for model in models:
        module = model.ref()
        for part in module.modules() if module is not None else ():
            for name, value in vars(part).items():
                if isinstance(value, torch.Tensor) and value.grad_fn is not None and _leads_to(value, leaves):
                    return _said(f"self.{name}", assigned_anywhere(type(part), f"self.{name}"))
    return None


def _said(name: str, spot: Spot | None) -> Derived:
    return Derived(
        spot,
        f"{name} is no parameter: it is computed from one that no model has and no optimizer holds",
        "A cast or a view of an nn.Parameter, as .float(), .to() or .view() give it, is a plain tensor, and a module "
        "registers parameters only. The parameter behind it received a gradient in each pass, and never moved.",
        f"{name} = nn.Parameter(values.float())  # cast and shape the values first, and wrap them last",
    )


def _leads_to(value: torch.Tensor, leaves: list[torch.Tensor | None]) -> bool:
    variables = (getattr(node, "variable", None) for node in walk([value.grad_fn]))
    return any(variable is leaf for variable in variables if variable is not None for leaf in leaves)


def copies_of(trainer: Trainer, slots: list[Slot]) -> list[Slot]:
    """Return tensors that learn and are no parameters, if each has the shape of one that an optimizer holds.

    Those of several models that were stacked have one dimension more.
    """
    plain = [slot for slot in slots if not slot.is_parameter]
    shapes = {slot.shape for slot in trainer.slots}
    kinds = {slot.shape if slot.shape in shapes else slot.shape[1:] for slot in plain}
    return plain if len(plain) > 1 and kinds == shapes else []


def plain_list_of(book: Book, slots: Iterable[Slot]) -> tuple[Spot | None, str]:
    """Return where a model keeps parts in a plain list or dict, and its name."""
    wanted = {slot.key for slot in slots}
    for model in book.models.values():
        module = model.ref()
        for part in module.modules() if module is not None else ():
            for name, value in vars(part).items():
                inside = list(value.values()) if isinstance(value, dict) else value
                if name.startswith("_") or not isinstance(inside, list | tuple):
                    continue
                owned = [p for it in inside for p in _parameters(it)]
                found = [book.find(p) for p in owned]
                if any(slot is not None and slot.key in wanted for slot in found):
                    return assigned_anywhere(type(part), f"self.{name}"), f"self.{name}"
    return None, ""


def _parameters(thing: object) -> list[torch.Tensor]:
    if isinstance(thing, torch.nn.Module):
        return list(thing.parameters())
    return [thing] if isinstance(thing, torch.nn.Parameter) else []
