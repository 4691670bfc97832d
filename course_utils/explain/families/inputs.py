"""Layers that were given something else than a tensor."""

from __future__ import annotations

import re

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.families.shapes import layer_at_work
from course_utils.explain.naming import argument, modules
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import written

_FIX = {
    "tuple": "# pass on the element that is the tensor: an LSTM or GRU returns (output, state)",
    "numpy.ndarray": "torch.as_tensor({given}, dtype=torch.float32)",
    "list": "torch.tensor({given})  # torch.stack, if its elements are tensors",
    "NoneType": "# does the function that made it return a value?",
}


def _no_tensor(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, layer = layer_at_work(s)
    if layer is None:
        return None
    kind = m[1]
    given = written(argument(s.node, 0)) or "its input"
    called = s.here.value(getattr(s.node, "func", None)) if s.here is not None else None
    why = f"A layer computes with tensors, and `{name}` was given a {kind}."
    fix = _FIX.get(kind, "# give it a tensor").format(given=given)
    if (
        is_a(called, torch.nn.Module) and called is not layer
    ):  # it stands inside a module, so that what it was given was made there
        if any(part._forward_hooks for call in s.calls for _, part in modules(call)):
            why += " What a forward hook returns replaces the output of its layer, and there is such a hook here."
            fix = "# a forward hook that only looks returns nothing"
        elif "{given}" in _FIX.get(kind, ""):
            fix = "# give it a tensor"
    return card("input-not-a-tensor", f"`{name}` was given a {kind}, not a tensor", why, fix, s.needed(), True)


RULES = (
    Rule(
        TypeError,
        r"argument 'input' \(position 1\) must be Tensor, not ([\w.]+)",
        _no_tensor,
        "nn/modules/",
    ),
)
