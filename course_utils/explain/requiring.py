"""How a tensor that a gradient is asked of comes to require one: said by whose tensor it is."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import torch

from course_utils.explain.naming import argument, assigned
from course_utils.explain.reading import is_a
from course_utils.explain.situation import Call, Situation
from course_utils.explain.source import names_of, written

MAX_NAMES = 3


def requiring(s: Situation, without: Mapping[str, Any], output: ast.expr | None) -> str:
    """Return the fix for tensors, by name, that require no gradient and of which autograd.grad was asked for one.

    A parameter among several was frozen by somebody, so it is left out. What a function was given stays as it is, since
    its caller goes on with it: where the function computes from it, it takes a tensor of its own.
    """
    first, tensor = next(iter(without.items()))
    asked = argument(s.node, 1, "inputs")
    listed = asked.elts if isinstance(asked, ast.List | ast.Tuple) else []
    several = len(listed) > 1 or (not listed and written(asked) not in ("", first))
    several = several and not (s.here is not None and is_a(s.here.value(asked), torch.Tensor))
    several = several and any(it.requires_grad for it in s.roots)  # else nothing would be left
    if several and is_a(tensor, torch.nn.Parameter):
        left_out = f"# leave out what is frozen: {', '.join(list(without)[:MAX_NAMES])}"
        if not listed:
            left_out = f"[it for it in {written(asked)} if it.requires_grad]  # without what is frozen"
        return f"{left_out}\n{first}.requires_grad_()  # before it is used, if it is to learn"
    return "\n".join(_line(s, name, output, several) for name in list(without)[:MAX_NAMES])


def _line(s: Situation, name: str, output: ast.expr | None, several: bool) -> str:
    flag = f"{name}.requires_grad_()  # before it is used"
    call = _given_to(s, name)
    if call is None:
        return f"{flag}; or leave out what is frozen" if several else flag
    names, code = names_of(output), call.frame.f_code
    if names and name not in names and not any(assigned(call, it) for it in names) and names <= set(_arguments(code)):
        return f"{flag}: where `{written(output) or 'the output'}` is computed"
    return f"{name} = {name}.detach().requires_grad_()  # a tensor of your own, before it is used"


def _arguments(code: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names


def _given_to(s: Situation, name: str) -> Call | None:
    """Return the function at work that was given a tensor and keeps it; a comprehension is a part of its function."""
    for call in reversed(s.calls):
        code = call.frame.f_code
        comprehension = code.co_name.startswith("<") and not call.is_module and code.co_name != "<lambda>"
        if name in _arguments(code) and not comprehension:
            return None if assigned(call, name) else call
        if not comprehension:
            return None
    return None
