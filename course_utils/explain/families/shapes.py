"""Shapes, dtypes and indices that do not fit a layer or an operation."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.naming import argument, module_name, receiver
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card, shape_in
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, written


def layer_at_work(s: Situation) -> tuple[str, torch.nn.Module | None]:
    """Return the innermost of PyTorch's modules at work, with the learner's name for it."""
    for frame in reversed(s.torch_frames):
        module = frame.f_locals.get("self")
        if not is_a(module, torch.nn.Module) or is_a(module, torch.nn.Sequential):
            continue
        if type(module).__module__.startswith("torch.nn"):
            return module_name(s, module) or _inside(s, module) or type(module).__name__, module
    return "", None


def _inside(s: Situation, module: torch.nn.Module) -> str:
    """Return the place of a layer in a Sequential at work that the learner's names do not reach."""
    for frame in s.torch_frames:
        outer = frame.f_locals.get("self")
        if is_a(outer, torch.nn.Sequential):
            for name, part in torch.nn.Module.named_modules(outer):
                if part is module:
                    return f"{type(outer).__name__}[{name}]"
    return ""


def layer_input(s: Situation) -> torch.Tensor | None:
    for frame in reversed(s.torch_frames):
        value = frame.f_locals.get("input")
        if is_a(value, torch.Tensor):
            return value
    return None


def operands(s: Situation) -> tuple[str, str, tuple[torch.Tensor | None, torch.Tensor | None]]:
    """Return both operands of the failing operation as they were written, and their tensors where they have names."""
    node = s.node
    sides: list[ast.expr | None] = [None, None]
    if isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        sides = [node.target, node.value]
    elif isinstance(node, ast.Compare):
        sides = [node.left, node.comparators[0]]
    elif isinstance(node, ast.Call):
        owner = receiver(node)
        library = s.here is not None and not is_a(s.here.value(owner), torch.Tensor)
        sides = [argument(node, 0), argument(node, 1)] if library else [owner, argument(node, 0)]
    values = [s.here.value(it) if s.here is not None and it is not None else None for it in sides]
    tensors = tuple(it if is_a(it, torch.Tensor) else None for it in values)
    return written(sides[0]) or "the left side", written(sides[1]) or "the right side", tensors  # type: ignore[return-value]


def _matrices(s: Situation, m: re.Match[str]) -> Explanation | None:
    rows, inner, inner_b, columns = m[1], m[2], m[3], m[4]
    name, layer = layer_at_work(s)
    if is_a(layer, torch.nn.Linear):
        given = layer_input(s)
        shape = tuple(given.shape) if given is not None else f"({rows}, {inner})"
        why = (
            f"`{name}` multiplies vectors of {layer.in_features} numbers. Its input has shape {shape}: {inner} "
            f"numbers in the last dimension."
        )
        fix = f"nn.Linear({inner}, {layer.out_features})  # for `{name}`, if the input is right"
        if given is not None and given.dim() > 2 and given[0].numel() == layer.in_features:
            fix = "x = x.flatten(1)  # before this layer: one row of numbers for each sample\n" + fix
        return card(
            "matrix-shapes",
            f"`{name}` has in_features={layer.in_features}, but its input ends in {inner}",
            why,
            fix,
            s.needed(),
        )
    left, right, _ = operands(s)
    why = f"A product of matrices needs as many columns on the left as rows on the right: {inner} and {inner_b} differ."
    fix = (
        f"{left} @ {right}.T  # if {right} lies the other way"
        if inner == columns
        else f"print({left}.shape, {right}.shape)"
    )
    return card(
        "matrix-shapes",
        f"`{left}` of shape ({rows}, {inner}) and `{right}` of shape ({inner_b}, {columns}) do not multiply",
        why,
        fix,
        s.needed(),
    )


def _batched(s: Situation, m: re.Match[str]) -> Explanation | None:
    left, right, (a, b) = operands(s)
    shapes = f" Their shapes are {tuple(a.shape)} and {tuple(b.shape)}." if a is not None and b is not None else ""
    why = f"The last dimension on the left must be as long as the one before the last on the right.{shapes}"
    fix = f"{left} @ {right}.transpose(-2, -1)  # if {right} lies the other way"
    return card("matrix-shapes", f"`{left}` and `{right}` do not multiply", why, fix, s.needed(), bool(shapes))


def _channels(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, layer = layer_at_work(s)
    own = name or "the convolution"
    why = f"`{own}` was made for {m[2]} channels, and dimension 1 of its input, of shape ({m[1]}), has {m[3]}."
    made = type(layer).__name__ if layer is not None else "Conv2d"
    fix = f"nn.{made}({m[3]}, ...)  # for `{own}`, if the input is right"
    sizes = m[1].split(", ")
    if m[2] in sizes[2:]:
        given = written(argument(s.node, 0)) or "the input"
        fix = f"# if the channels are last: {given}.movedim(-1, 1)\n" + fix
    return card("channels", f"`{own}` expects {m[2]} channels and got {m[3]}", why, fix, s.needed())


def _rank(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, _ = layer_at_work(s)
    own = name or m[3]
    why = (
        f"`{own}` takes inputs of {m[1]} dimensions (one sample) or {m[2]} (a batch: samples, channels, then "
        f"the rest); this has shape ({m[4]})."
    )
    fix = "x = x.unsqueeze(0)  # adds the dimension that is missing: channels of one sample, or a batch of one"
    return card("channels", f"`{own}` got an input of shape ({m[4]})", why, fix, s.needed(), bool(name))


def _sizes(s: Situation, m: re.Match[str]) -> Explanation | None:
    left, right, (a, b) = operands(s)
    if s.within("nn/functional.py") is not None and s.within("functional.py", "broadcast_tensors") is not None:
        left, right = written(argument(s.node, 0)) or "the predictions", written(argument(s.node, 1)) or "the targets"
    shapes = (
        f" `{left}` has shape {tuple(a.shape)}, `{right}` {tuple(b.shape)}." if a is not None and b is not None else ""
    )
    why = (
        f"Elementwise operations need equal sizes, or a 1 that can be stretched. Counted from 0, dimension "
        f"{m[3]} has {m[1]} on one side and {m[2]} on the other.{shapes}"
    )
    fix = f"print({left}.shape, {right}.shape)  # then unsqueeze, view or transpose one of them"
    if left in ("the left side", "the predictions") or right in ("the right side", "the targets"):
        fix = "# print the shapes of both sides, then unsqueeze, view or transpose one of them"
    return card(
        "shapes",
        f"the shapes of `{left}` and `{right}` do not fit: {m[1]} and {m[2]} in dimension {m[3]}",
        why,
        fix,
        s.needed(),
        bool(shapes),
    )


def _view(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or "the tensor"
    method = called(s.node) or "view"
    value: Any = s.here.value(receiver(s.node)) if s.here is not None else None
    known = is_a(value, torch.Tensor)
    shape = f" of shape {tuple(value.shape)}" if known else ""
    count = "1 element" if m[2] == "1" else f"{m[2]} elements"
    why = (
        f"`{owner}`{shape} has {count}, and {method} can only lay out anew what is there: [{m[1]}] needs another "
        f"number of elements."
    )
    rows, _, columns = m[1].partition(", ")
    # A row for each sample is meant where the rows are as many as there are or as it makes, or each is as long.
    samples = str(value.shape[0]) if known and value.dim() > 1 else "-1"
    long = str(value[0].numel()) if known and value.dim() > 1 and len(value) else ""
    by_rows = m[1].count(",") == 1 and (rows in ("-1", samples) or columns == long)
    fix = f"print({owner}.shape)  # and look where the numbers are too many, or too few, before this line"
    if by_rows:
        fix = f"{owner}.flatten(1)  # one row for each sample, whatever its size"
    return card(
        "element-count",
        f"`{owner}` has {count}, which {'does' if m[2] == '1' else 'do'} not fill [{m[1]}]",
        why,
        fix,
        s.needed(),
        by_rows,
    )


def _joined(s: Situation, m: re.Match[str]) -> Explanation | None:
    parts = written(argument(s.node, 0)) or "the tensors"
    why = (
        f"cat joins along one dimension ({m[1]}); in all others the sizes must be equal. Tensor number {m[4]} "
        f"has {m[3]} where {m[2]} is expected."
    )
    fix = f"print([t.shape for t in {parts}])  # or join along another dimension: dim=1"
    return card(
        "joined-shapes", f"cat got tensors whose sizes differ outside of dimension {m[1]}", why, fix, s.needed()
    )


def _recurrent(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, layer = layer_at_work(s)
    own = name or "the layer"
    given = layer_input(s)
    shape = f" (shape {tuple(given.shape)})" if given is not None else ""
    why = f"`{own}` was made for vectors of {m[1]} numbers, and the last dimension of its input{shape} has {m[2]}."
    fix = (
        f"nn.{type(layer).__name__ if layer is not None else 'LSTM'}({m[2]}, ...)  # for `{own}`, if the input is right"
    )
    return card("input-shape", f"`{own}` has input_size={m[1]}, but its input ends in {m[2]}", why, fix, s.needed())


def _normalised(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, layer = layer_at_work(s)
    given = layer_input(s)
    if given is None or layer is None:
        return None
    shape = tuple(given.shape)
    if is_a(layer, torch.nn.LayerNorm):
        own, got = str(layer.normalized_shape), f"ends in {shape[-len(layer.normalized_shape) :]}"
        code, fix = "input-shape", f"nn.LayerNorm({shape[-1]})  # for `{name}`, if the input is right"
    else:
        own, got, code = f"{m[2]} channels", f"has {m[1]} of them in dimension 1", "channels"
        fix = f"nn.{type(layer).__name__}({m[1]})  # for `{name}`, if the input is right"
    why = f"`{name}` was made for {own}; its input, of shape {shape}, {got}."
    return card(code, f"`{name}` was made for {own} and got an input of shape {shape}", why, fix, s.needed())


def _norm(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, _ = layer_at_work(s)
    own = name or "batch norm"
    why = (
        f"In training `{own}` takes mean and variance over a batch. With one value for each channel (input "
        f"{shape_in(m[1])}) there is no variance."
    )
    fix = (
        "DataLoader(..., drop_last=True)  # if it is the last batch, of one sample\nmodel.eval()  # if this is "
        "not training"
    )
    return card("batch-norm-one-value", f"`{own}` got one value for each channel, while training", why, fix, s.needed())


def _ctc_lengths(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = f"log_probs of ctc_loss has {m[1]} time steps (its first dimension), and input_lengths contains {m[2]}."
    fix = f"# input_lengths: at most {m[1]} for each sample; time comes first in log_probs"
    return card("target-shape", f"input_lengths contains {m[2]}, but there are {m[1]} steps", why, fix, s.needed())


def _weight(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = f"Class weights come one for each class: there are {m[1]} classes, and the weight has shape {shape_in(m[2])}."
    fix = f"weight = torch.ones({m[1]})  # then your own numbers"
    return card("weight-shape", f"the class weight has shape {shape_in(m[2])} for {m[1]} classes", why, fix, s.needed())


RULES = (
    Rule(RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", _matrices),
    Rule(
        RuntimeError,
        r"Expected size for first two dimensions of batch2 tensor|inconsistent tensor size|size mismatch, got",
        _batched,
    ),
    Rule(RuntimeError, r"expected input\[(.*?)\] to have (\d+) channels, but got (\d+) channels", _channels),
    Rule(
        RuntimeError,
        r"Expected (\d)D \(unbatched\) or (\d)D \(batched\) input to (\w+), but got input of size: \[(.*?)\]",
        _rank,
    ),
    Rule(
        RuntimeError,
        r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)",
        _sizes,
    ),
    Rule(RuntimeError, r"shape '\[(.*?)\]' is invalid for input of size (\d+)", _view),
    Rule(
        RuntimeError,
        r"except in dimension (\d+)\. Expected size (\d+) but got size (\d+) for tensor number (\d+)",
        _joined,
    ),
    Rule(RuntimeError, r"input\.size\(-1\) must be equal to input_size\. Expected (\d+), got (\d+)", _recurrent),
    Rule(RuntimeError, r"running_mean should contain (\d+) elements not (\d+)", _normalised),
    Rule(RuntimeError, r"Given normalized_shape=\[.*?\], expected input with shape", _normalised),
    Rule(ValueError, r"Expected more than 1 value per channel when training, got input size (.*)", _norm),
    Rule(RuntimeError, r"Expected input_lengths to have value at most (\d+), but got value (\d+)", _ctc_lengths),
    Rule(
        RuntimeError,
        r"weight tensor should be defined either for all (\d+) classes or no classes .* shape: (\[.*?\])",
        _weight,
    ),
)
