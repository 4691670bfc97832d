"""Hooks that pack and unpack what a graph saves: what they owe, and what they may not do."""

from __future__ import annotations

import ast
import re

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.naming import argument
from course_utils.explain.rules import Rule, card, with_article
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, written

_OF_UNPACKED = {
    "numpy.ndarray": "torch.from_numpy({given})  # what unpack returns",
    "NoneType": "return {given}  # at the end of unpack; and pack returns what is to be kept",
    "tuple": "{given}[0]  # what unpack returns: the tensor of what pack kept",
    "list": "{given}[0]  # what unpack returns: the tensor of what pack kept",
    "str": "torch.load({given})  # what unpack returns: read what pack wrote to that path",
}


def _unpack(s: Situation) -> tuple[str, tuple[Place, ...]]:
    """Return the unpack hook as it was written, and the line that set it; "" where not one line alone did."""
    found = []
    for call in s.calls:
        for node in ast.walk(call.scope) if call.scope is not None else ():
            if called(node) in ("saved_tensors_hooks", "register_hooks"):
                hook = written(argument(node, 1, "unpack_hook"))
                found.append((hook, (call.place("hooks set here", node),)))
    return found[0] if len(found) == 1 else ("", ())


def _unpacked(s: Situation, m: re.Match[str]) -> Explanation | None:
    unpack, set_here = _unpack(s)
    unpack = unpack if unpack.isidentifier() else "unpack"
    kind = m[1]
    why = (
        f"What unpack returns takes the place of the saved tensor, so it is a tensor with its shape and dtype. "
        f"`{unpack}` returned {'None' if kind == 'NoneType' else with_article(kind)}"
    )
    why += ": does it have a return? Or did pack return nothing?" if kind == "NoneType" else "."
    fix = _OF_UNPACKED.get(kind, "# make the tensor again in unpack, from what pack returned").format(given="packed")
    if fix.startswith("return"):
        fix = f"# {fix}"
    headline = f"the unpack hook returned {'None' if kind == 'NoneType' else with_article(kind)}, not a tensor"
    return card("saved-hook", headline, why, fix, (*set_here, *s.at_start()))


def _written_into(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "pack is given the tensor that your forward goes on computing with, not a copy. To write into it changes both."
    )
    fix = "# in pack: compute a new tensor, as t * 2 for t.mul_(2); or begin with t = t.clone()"
    return card("saved-hook", "the pack hook writes in place into what it was given", why, fix, s.needed())


def _arguments(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "Two functions belong together: pack says what is kept for a saved tensor, unpack makes the tensor of it again."
    )
    fix = "torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda kept: kept)  # pack, unpack"
    return card("saved-hook", "saved-tensor hooks are a pair of functions, pack and unpack", why, fix, s.needed())


def _again(s: Situation, m: re.Match[str]) -> Explanation | None:
    if "already been set" in s.text:
        why = "What a node saved has room for one pair of hooks, and this one has it."
        fix = "# one pair that does both; hooks cannot be taken off a saved tensor"
        return card("saved-hook", "this saved tensor has its hooks already", why, fix, s.needed())
    why = "backward() frees what the graph saved as it goes. There is nothing left that a hook could pack."
    fix = "# register the hooks before backward()"
    return card("saved-hook", "hooks were to be set on what backward() has freed", why, fix, s.needed())


def _in_transform(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "torch.func takes derivatives by graphs of its own, which have no saved-tensor hooks."
    fix = "# without the hooks inside torch.func; or torch.autograd.grad in place of torch.func.grad"
    return card("saved-hook", "torch.func does not take saved-tensor hooks", why, fix, s.needed())


RULES = (
    Rule(
        TypeError, r"Output of saved tensor unpack_hook expected to be a Tensor but got result of type (\S+)", _unpacked
    ),
    Rule(RuntimeError, r"A saved tensor pack hook is modifying its input in place", _written_into),
    Rule(TypeError, r"saved_tensors_hooks\.__init__\(\) missing 1 required positional argument", _arguments),
    Rule(TypeError, r"_push_saved_tensors_default_hooks\(\): incompatible function arguments", _arguments),
    Rule(TypeError, r"^register_hooks\(\): incompatible function arguments.*SavedTensor", _arguments),
    Rule(RuntimeError, r"Calling register_hooks on a saved tensor", _again),
    Rule(RuntimeError, r"torch\.func\..* don't yet support saved tensor hooks", _in_transform),
)
