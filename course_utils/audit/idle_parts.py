"""What an optimizer was given by name, and nobody froze on purpose: it asks for no gradient all the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from torch import nn

from course_utils.audit.book import Model, Slot, Trainer
from course_utils.audit.grouping import named_parts
from course_utils.audit.lines import Spot
from course_utils.audit.source import assigned, bound_at, calls, source_at, tree_of

_WANTS = re.compile(r"requires_grad")


class Idle(NamedTuple):
    """Such a part, the line that decided, and what is to be said of it."""

    slots: list[Slot]
    spot: Spot | None
    headline: str
    why: str
    fix: str


def idle_parts(trainer: Trainer, still: list[Slot], models: Iterable[Model], frozen: Container[int]) -> Iterator[Idle]:
    """Yield the parts of an optimizer that never asked for a gradient, of those that stood `still`.

    A table from pretrained vectors is frozen unless it is told not to be, and a tensor asks for none unless it is
    told to. Who freezes a layer by a line of their own may keep it in a group: that is nothing.
    """
    made = trainer.made
    if made is None or _thaws(made.file):
        return
    name, told = trainer.name or "optimizer", set()
    for part in named_parts(trainer):
        slots = [slot for slot in part.slots if slot.key not in told]
        if not slots or any(slot not in still for slot in slots):
            continue
        if any(slot.key in frozen for slot in slots):
            continue
        spot = _table_line(models, slots, made.file)
        if spot is not None:
            told |= {slot.key for slot in slots}
            yield Idle(
                slots,
                spot,
                f"{name} was given {part.text}, which from_pretrained() froze",
                "Embedding.from_pretrained() freezes its vectors unless it is told not to. They were handed to "
                f"{name} by name, asked for no gradient in any step, and are what they were.",
                "nn.Embedding.from_pretrained(vectors, freeze=False)",
            )
        elif not any(slot.is_parameter for slot in slots):
            line = assigned(made, part.text)
            if line is not None and not _WANTS.search(source_at(line)):
                told |= {slot.key for slot in slots}
                yield Idle(
                    slots,
                    line,
                    f"{name} was given {part.text}, which asks for no gradient",
                    f"A tensor asks for a gradient only where it is told to. {name} makes steps for this one and "
                    "never finds a gradient: it stays as it was made.",
                    f"{part.text} = torch.zeros(..., requires_grad=True)  # or {part.text}.requires_grad_()",
                )


def _table_line(models: Iterable[Model], slots: list[Slot], file: str) -> Spot | None:
    """Return the line that made a table of pretrained vectors and did not say whether it is to be frozen."""
    names = {
        name.rpartition(".")[2]
        for module in (model.ref() for model in models)
        for name, part in (module.named_modules() if module is not None else ())
        if isinstance(part, nn.Embedding | nn.EmbeddingBag) and any(part.weight is slot.tensor for slot in slots)
    }
    lines = calls(file, r"Embedding(Bag)?\.from_pretrained$") if names and len(slots) == 1 else []
    own = [it for it in lines if bound_at(it).rpartition(".")[2] in names] or lines
    return own[0] if len(own) == 1 and "freeze" not in source_at(own[0]) else None


def _thaws(file: str) -> bool:
    """Say whether a file switches requires_grad on anywhere, or by what it computes."""
    tree = tree_of(file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Assign):
            named = any(isinstance(it, ast.Attribute) and it.attr == "requires_grad" for it in node.targets)
            value: ast.expr | None = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named, value = node.func.attr == "requires_grad_", next(iter(node.args), None)
        else:
            continue
        if named and not (isinstance(value, ast.Constant) and value.value is False):
            return True
    return False
