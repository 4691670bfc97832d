"""Targets of a loss in the wrong dtype: class numbers that are not counted, other targets that do not fit."""

from __future__ import annotations

import re

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.families.losses import Given
from course_utils.explain.naming import named
from course_utils.explain.nodes import behind, operation, same_memory
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import target_name
from course_utils.graph.memory import dtype_name
from course_utils.graph.saved import kept


def _class_numbers(s: Situation, m: re.Match[str]) -> Explanation | None:
    it = Given(s)
    true, dtype = it.names["target"], it.dtype("target") or m[1].lower()
    why = f"Class numbers are counted, so they are integers; `{true}` is {dtype}."
    own = target_name(true, "target")
    fix = f"{own} = {own}.long()"
    if (
        it.target is not None
        and it.input is not None
        and it.target.shape != it.input.shape
        and it.target.dim() == it.input.dim()
    ):
        fix += f"\n# and one number for each sample: {true}.squeeze(-1)"
    headline = f"`{true}` holds {dtype} numbers, where the loss expects class numbers"
    return card("target-dtype", headline, why, fix, s.needed())


def _not_float(s: Situation, m: re.Match[str]) -> Explanation | None:
    """A loss function refused its targets as it was called."""
    it = Given(s)
    if not it.function or it.target is None:
        return _in_backward(s)
    return _unfit(s, it.function, it.names["target"], it.target, it.names["input"], it.input)


def _in_backward(s: Situation) -> Explanation | None:
    """Return the card of a loss whose forward took the targets, and whose backward did not: its node keeps them."""
    for node in behind(s.roots):
        saved = {name: tensor for name, _, tensor in kept(node) if tensor is not None}
        true, pred = saved.get("target"), saved.get("self")
        if true is not None and pred is not None and true.dtype != pred.dtype:
            names = _name(s, true) or "the targets", _name(s, pred) or "the predictions"
            return _unfit(s, operation(node), names[0], true, names[1], pred)
    return None


def _name(s: Situation, saved: torch.Tensor) -> str:
    return named(s, lambda it: it.dtype == saved.dtype and it.shape == saved.shape and same_memory(it, saved))


def _unfit(
    s: Situation, function: str, true: str, target: torch.Tensor, pred: str, given: torch.Tensor | None
) -> Explanation | None:
    dtype = dtype_name(target.dtype)
    own = target_name(true, "target")
    shown = true if true.startswith("the ") else f"`{true}`"
    if not target.is_floating_point():
        why = (
            f"`{function}` computes with the targets as with real numbers, so they are to be floating point; "
            f"here they are {dtype}."
        )
        held = "booleans" if target.dtype == torch.bool else "integers"
        headline = f"{shown} holds {held} ({dtype}), where the loss expects floating point"
        return card("target-dtype", headline, why, f"{own} = {own}.float()", s.needed())
    if given is None or given.dtype == target.dtype:
        return None
    wanted = dtype_name(given.dtype)
    why = f"`{function}` does not convert by itself: the predictions are {wanted}, {shown} {dtype}."
    fix = f"{own} = {own}.to({pred}.dtype)" if pred.isidentifier() else f"{own} = {own}.to(torch.{wanted})"
    return card("target-dtype", f"{shown} is {dtype}, the predictions are {wanted}", why, fix, s.needed())


RULES = (
    Rule(RuntimeError, r"expected target dtype to be Long or Byte, but got (\w+)", _class_numbers),
    Rule(RuntimeError, r"result type \w+ can't be cast to the desired output type \w+", _not_float),
    Rule(RuntimeError, r"Found dtype (\w+) but expected (\w+)", _not_float),
    Rule(RuntimeError, r"kl_div: Integral inputs not supported", _not_float),
)
