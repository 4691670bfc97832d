"""Parts of a parameter that are frozen by their gradient alone, and are moved by the optimizer all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, ClassVar

import torch

from course_utils.audit.book import Slot, Trainer, sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Step
from course_utils.audit.lines import Spot, is_learners
from course_utils.audit.mentions import functions_at

_LOOKS = 20  # so many steps of each parameter are looked at
_TIMES = 3
_MASKS = frozenset({"mul_", "__imul__", "masked_fill_", "index_fill_", "__setitem__", "copy_"})
_FILLS = frozenset({"masked_fill", "masked_fill_", "index_fill", "index_fill_", "where", "zero_", "zeros_like"})


@dataclass
class _Partly:
    """A parameter of whose gradient a part is set to zero."""

    slot: Slot
    spot: Spot  # where its gradient is masked
    still: torch.Tensor | None = None  # which of its numbers had no gradient in any step
    before: torch.Tensor | None = None
    first: torch.Tensor | None = None
    looks: int = 0
    moved: int = 0


class Rows(Check):
    """Numbers whose gradient was set to zero by a hook or by hand, before and after a step."""

    codes: ClassVar = ("rows-move",)
    functions: ClassVar = _MASKS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._partly: dict[int, _Partly] = {}
        self._makers: dict[int, Trainer] = {}
        self._plain: set[int] = set()  # leaves that have no hook which masks

    def function(self, event: Op) -> None:
        grad = event.args[0] if event.args else None
        if not isinstance(grad, torch.Tensor) or not _sets_zero(event):
            return
        for slot in self.book.live():
            leaf = slot.tensor
            mine = None if leaf is None else leaf.grad
            if mine is not None and (mine is grad or _same_memory(mine, grad)):
                spot = event.spot
                if spot is not None:
                    self._partly.setdefault(slot.key, _Partly(slot, spot))
                return

    def step_begins(self, event: Step) -> None:
        for slot in event.trainer.slots:
            leaf = slot.tensor
            if leaf is None or leaf.grad is None or leaf.grad.is_sparse:
                continue
            partly = self._partly.get(slot.key) or self._hooked(slot, leaf)
            if partly is None or partly.looks >= _LOOKS:
                continue
            self._makers[slot.key] = event.trainer
            none = sampled(leaf.grad) == 0
            partly.still = none if partly.still is None or partly.still.shape != none.shape else partly.still & none
            partly.before = sampled(leaf)
            partly.first = partly.before if partly.first is None else partly.first
            partly.looks += 1

    def _hooked(self, slot: Slot, leaf: torch.Tensor) -> _Partly | None:
        if slot.key in self._plain:
            return None
        hooks: list[Any] = list((leaf._backward_hooks or {}).values())
        hooks += list((getattr(leaf, "_post_accumulate_grad_hooks", None) or {}).values())
        spot = next((found for found in map(_masking, hooks) if found is not None), None)
        if spot is None:
            if hooks or slot.received > _TIMES:
                self._plain.add(slot.key)
            return None
        return self._partly.setdefault(slot.key, _Partly(slot, spot))

    def step_ended(self, event: Step) -> None:
        for slot in event.trainer.slots if self._partly else ():
            partly, leaf = self._partly.get(slot.key), slot.tensor
            if partly is None or leaf is None or partly.before is None or partly.still is None:
                continue
            # A number that has a gradient now and then, as a row of a table has, is no frozen one.
            partly.moved += bool(((sampled(leaf) != partly.before) & partly.still).any())
            partly.before = None

    def found(self) -> Iterator[Found]:
        for partly in self._partly.values():
            share = float(partly.still.float().mean()) if partly.still is not None else 1.0
            if partly.moved < _TIMES or 2 * partly.moved < partly.looks or not 0 < share < 1:
                continue
            if _is_back(partly):
                continue  # the loop writes it back after each step
            trainer = self._makers[partly.slot.key]
            optimizer = trainer.ref()
            groups = optimizer.param_groups if optimizer is not None else []
            decays = any(group.get("weight_decay") for group in groups)
            name = partly.slot.name or "a parameter"
            yield self.say(
                "rows-move",
                (trainer.made if decays else None) or partly.spot,
                f"a part of {name} has a gradient of zero, set in line {partly.spot.line}, and moves all the same",
                ("Weight decay shrinks each number of a parameter, " if decays else "Momentum moves a number further, ")
                + "whatever its gradient is: a gradient of zero does not freeze it.",
                "put what shall learn into a parameter of its own: torch.cat([frozen, learned])  # frozen is a buffer\n"
                "or write the frozen values back after each step",
                times=partly.moved,
                about={partly.slot.key, trainer.key},
                names=(name,),
            )


def _is_back(partly: _Partly) -> bool:
    leaf = partly.slot.tensor
    if leaf is None or partly.first is None or partly.still is None:
        return False
    return not bool(((sampled(leaf) != partly.first) & partly.still).any())


def _same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.data_ptr() == other.data_ptr()


def _sets_zero(event: Op) -> bool:
    """Say whether a change of a gradient in place sets a part of it to zero: by a mask, or by an index."""
    if event.name in ("mul_", "__imul__", "copy_"):
        other = event.argument(1, "other")
        return isinstance(other, torch.Tensor) and other.dim() > 0 and not bool(other.all()) and bool(other.any())
    value = event.args[2] if len(event.args) > 2 else event.kwargs.get("value")
    return value == 0 if isinstance(value, int | float) else isinstance(value, torch.Tensor) and not bool(value.any())


def _masking(hook: Any) -> Spot | None:
    """Return the line of a hook of the learner's that sets a part of a gradient to zero."""
    hook = getattr(hook, "func", hook)
    code = getattr(hook, "__code__", None)
    if not isinstance(code, CodeType) or not is_learners(code.co_filename):
        return None
    cells = getattr(hook, "__closure__", None) or ()
    known = {**getattr(hook, "__globals__", {}), **dict(zip(code.co_freevars, map(_content, cells), strict=False))}
    for default, name in zip(reversed(getattr(hook, "__defaults__", None) or ()), _last_names(code), strict=False):
        known[name] = default
    owner = getattr(hook, "__self__", None)
    if owner is not None:
        known |= {f"self.{name}": value for name, value in vars(owner).items()}
        known |= {f"self.{name}": value for name, value in (vars(owner).get("_buffers") or {}).items()}
    for line, kind, name in _writes(code.co_filename, code.co_firstlineno):
        other = known.get(name) if kind == "mask" else None
        if kind == "fill" or (isinstance(other, torch.Tensor) and other.dim() > 0 and not bool(other.all())):
            return Spot(code.co_filename, line)
    return None


def _last_names(code: CodeType) -> Iterator[str]:
    return reversed(code.co_varnames[: code.co_argcount])


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


@lru_cache(maxsize=128)
def _writes(file: str, first: int) -> tuple[tuple[int, str, str], ...]:
    """Return what a function does that may set a part to zero: the line, how, and the name of what it multiplies by."""
    found: list[tuple[int, str, str]] = []
    for scope in functions_at(file, first):
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                if isinstance(node.value, ast.Constant) and node.value.value == 0:
                    found.append((node.lineno, "fill", ""))
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                found += [(node.lineno, "mask", ast.unparse(it)) for it in (node.left, node.right)]
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult):
                found.append((node.lineno, "mask", ast.unparse(node.value)))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in _FILLS:
                    found.append((node.lineno, "fill", ""))
                elif node.func.attr in ("mul", "mul_") and node.args:
                    found.append((node.lineno, "mask", ast.unparse(node.args[-1])))
    return tuple(found)
