"""Tensors on the device meta, which has shapes and no numbers: nothing can be copied or read out of them."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.naming import argument, receiver
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, written


def _no_data(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, value = _subject(s)
    made = _made(s)
    if is_a(value, torch.nn.Module) and any(it.is_meta for it in torch.nn.Module.parameters(value)):
        own = name if name.replace(".", "").isidentifier() else "model"
        device = _device(s.node)
        why = f"`{own}` was built on the device meta, which has shapes and no numbers: there is nothing to copy."
        fix = (
            f"{own}.to_empty(device={device})  # memory with any numbers in it; then give it values:\n"
            f"{own}.apply(lambda part: getattr(part, 'reset_parameters', lambda: None)())\n"
            f"# or {own}.load_state_dict(...) with saved ones"
        )
        return card("meta-tensor", f"`{own}` is on meta, with no numbers to copy", why, fix, (*made, *s.needed()))
    certain = is_a(value, torch.Tensor) and value.is_meta
    shown = f"`{name}`" if certain and name else "a tensor"
    what = "no number to read" if "item()" in s.text else "no numbers to copy"
    why = f"{shown} is on the device meta, which has shapes and no numbers; what is computed of it is there, too."
    fix = (
        f"torch.zeros_like({name}, device='cpu')  # real memory"
        if certain and name
        else ("# build what is to hold numbers on a real device: device='cpu'; a model that is on meta: model.to_empty")
    )
    return card("meta-tensor", f"{shown} is on meta: {what}", why, fix, (*made, *s.needed()), certain)


def _state(s: Situation, m: re.Match[str]) -> Explanation | None:
    given = written(argument(s.node, 0)) or "the state"
    why = f"`{given}` holds tensors on the device meta, which has shapes and no numbers: there is nothing to load."
    fix = "# save the state of a model that has numbers; one on meta has none"
    return card("meta-tensor", f"`{given}` is on meta: no numbers to load", why, fix, (*_made(s), *s.needed()))


def _into_meta(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "The model is on the device meta, which cannot hold numbers, so load_state_dict copied nothing."
    fix = "# load_state_dict(state, assign=True): takes the tensors of state themselves; or to_empty() before it"
    return card("meta-tensor", f"`{m[1]}` is on meta, so what was loaded is lost", why, fix, (*_made(s), *s.needed()))


def _subject(s: Situation) -> tuple[str, object]:
    """Return what is moved or read: as it was written, and its value."""
    node: ast.AST | None = receiver(s.node)
    value = s.here.value(node) if s.here is not None else None
    if (not is_a(value, torch.nn.Module) and not is_a(value, torch.Tensor)) or called(s.node) == "copy_":
        node = argument(s.node, 0)
        value = s.here.value(node) if s.here is not None else None
    return written(node), value


def _device(node: ast.AST | None) -> str:
    given = written(argument(node, 0, "device"))
    return "'cuda'" if called(node) == "cuda" else given or "'cpu'"


def _made(s: Situation) -> tuple[Place, ...]:
    """Return the learner's line that names the device meta, where it is the only one of the functions at work."""
    found = [
        call.place("meta here", node)
        for call in s.calls
        for node in (ast.walk(call.scope) if call.scope is not None else ())
        if isinstance(node, ast.Constant) and node.value == "meta"
    ]
    return (found[0],) if len({(it.file, it.line) for it in found}) == 1 else ()


RULES = (
    Rule(RuntimeError, r"Error\(s\) in loading state_dict.*Cannot copy out of meta tensor", _state),
    Rule(NotImplementedError, r"Cannot copy out of meta tensor; no data!", _no_data),
    Rule(RuntimeError, r"Tensor\.item\(\) cannot be called on meta tensors", _no_data),
    Rule(TypeError, r"can't convert meta device type tensor to numpy", _no_data),
    Rule(Warning, r"for (\S+): copying from a non-meta parameter .* which is a no-op", _into_meta),
)
