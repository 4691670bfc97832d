"""Layers that were given something else than a tensor, a state of another shape, or a tensor on another device."""

from __future__ import annotations

import re

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.families.shapes import layer_at_work, layer_input
from course_utils.explain.naming import argument, modules
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card, with_article
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
    why = f"A layer computes with tensors, and `{name}` was given {with_article(kind)}."
    fix = _FIX.get(kind, "# give it a tensor").format(given=given)
    if (
        is_a(called, torch.nn.Module) and called is not layer
    ):  # it stands inside a module, so that what it was given was made there
        if any(part._forward_hooks for call in s.calls for _, part in modules(call)):
            why += " What a forward hook returns replaces the output of its layer, and there is such a hook here."
            fix = "# a forward hook that only looks returns nothing"
        elif "{given}" in _FIX.get(kind, ""):
            fix = "# give it a tensor"
    return card(
        "input-not-a-tensor", f"`{name}` was given {with_article(kind)}, not a tensor", why, fix, s.needed(), True
    )


def _hidden_size(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, layer = layer_at_work(s)
    if layer is None:
        return None
    given = written(argument(s.node, 1, "hx"))
    shown = f"`{given}`" if given else "the state"
    why = (
        f"The state that `{name}` starts from has shape (layers and directions, batch, hidden_size), for this input "
        f"({m[1]}); {shown} has ({m[2]})."
    )
    fix = f"# a state of shape ({m[1]}), made from the batch: torch.zeros(layers, x.size(0), hidden_size)"
    if not getattr(layer, "batch_first", False):
        fix = f"# a state of shape ({m[1]}); the batch is dimension 1 of the input, unless batch_first=True"
    return card("hidden-shape", f"{shown} does not fit `{name}`: ({m[2]}) for ({m[1]})", why, fix, s.needed())


def _device(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, layer = layer_at_work(s)
    given = layer_input(s)
    own = next(iter(torch.nn.Module.parameters(layer)), None) if layer is not None else None
    why = "One operation computes on one device. Its tensors are on several."
    headline, fix, certain = (
        "tensors on different devices meet",
        "# .to(device) for the model and for each batch",
        False,
    )
    if layer is not None and given is not None and own is not None and own.device != given.device:
        headline = f"`{name}` is on device {own.device}, and its input on {given.device}"
        why, certain = f"{why} `{name}` was made or moved to {own.device}; its input is on {given.device}.", True
        what = written(argument(s.node, 0))
        fix = f"{what} = {what}.to('{own.device}')" if what.isidentifier() else fix
        if own.is_meta:
            why += " The device meta holds shapes and no numbers."
            fix = f"# {name}: build it on {given.device}, or to_empty(device='{given.device}') and load its state"
    return card("device-mismatch", headline, why, fix, s.needed(), certain)


RULES = (
    Rule(RuntimeError, r"Expected hidden(?:\[\d\])? size \((.*?)\), got \[(.*?)\]", _hidden_size, "nn/modules/rnn.py"),
    Rule(RuntimeError, r"is not on the expected device|Expected all tensors to be on the same device", _device),
    Rule(
        TypeError,
        r"argument 'input' \(position 1\) must be Tensor, not ([\w.]+)",
        _no_tensor,
        "nn/modules/",
    ),
)
