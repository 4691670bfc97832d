"""What losses are given: targets of another shape, dtype or range."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.naming import argument, named
from course_utils.explain.reading import MISSING, is_a
from course_utils.explain.rules import Rule, card, shape_in
from course_utils.explain.situation import Situation
from course_utils.explain.source import operand, target_name, written
from course_utils.graph.memory import dtype_name


class Given:
    """What a loss function of PyTorch's was given, with the learner's names for it."""

    def __init__(self, s: Situation) -> None:
        self.function = ""
        self.tensors: dict[str, torch.Tensor | None] = {"input": None, "target": None}
        for frame in reversed(s.torch_frames):
            if frame.f_code.co_filename.endswith("functional.py") and "target" in frame.f_locals:
                self.function = frame.f_code.co_name
                for name in ("input", "target", "weight"):
                    value = frame.f_locals.get(name)
                    self.tensors[name] = value if is_a(value, torch.Tensor) else None
                break
        self.input, self.target = self.tensors["input"], self.tensors["target"]
        self.names = {name: self._name(s, name, at) for at, name in enumerate(("input", "target"))}

    def _name(self, s: Situation, name: str, position: int) -> str:
        tensor = self.tensors[name]
        known = named(s, lambda other: other is tensor) if tensor is not None else ""
        if known and s.here is not None and (s.here.statement is None or known in written(s.here.statement, 500)):
            return known
        node = argument(s.node, position, name)
        return written(node) or known or ("the predictions" if name == "input" else "the targets")

    def shape(self, name: str) -> str:
        tensor = self.tensors[name]
        return "" if tensor is None else str(tuple(tensor.shape))

    def dtype(self, name: str) -> str:
        tensor = self.tensors[name]
        return "" if tensor is None else dtype_name(tensor.dtype)


def _broadcast(s: Situation, m: re.Match[str]) -> Explanation | None:
    target, given = shape_in(m[1]), shape_in(m[2])
    loss = _call(s)
    pred, true = written(argument(loss, 0, "input")), written(argument(loss, 1, "target"))
    sides = f"`{pred}` has shape {given} and `{true}` {target}"
    if not pred or not true:
        sides = f"The predictions have shape {given} and the targets {target}"
    why = (
        f"{sides}. Elementwise they are stretched over each other: each "
        "prediction is compared with targets that are not its own, and what is learned tends to their mean."
    )
    own = target_name(true, "")
    fix = f"# give both one shape: {true}.view_as({pred})" if pred and true else "# give both one shape before the loss"
    if own and pred and not (s.here is not None and isinstance(s.here.scope, ast.Lambda)):
        fix = f"{own} = {own}.view_as({pred})"
    if not _same_count(target, given):
        why, fix = f"{sides}: they do not have one target for each prediction.", "# give both one shape before the loss"
    return card(
        "target-broadcast", f"predictions of shape {given} meet targets of shape {target}", why, fix, s.needed()
    )


def _same_count(a: str, b: str) -> bool:
    def count(shape: str) -> int:
        total = 1
        for number in re.findall(r"\d+", shape):
            total *= int(number)
        return total

    return count(a) == count(b)


def _call(s: Situation) -> ast.AST | None:
    """Return the call of the failing line; of a warning, the innermost call with two arguments."""
    if s.node is not None:
        return s.node
    calls = (
        [it for it in ast.walk(s.line_tree) if isinstance(it, ast.Call) and len(it.args) >= 2] if s.line_tree else []
    )
    return calls[0] if calls else None


def _target_size(s: Situation, m: re.Match[str]) -> Explanation | None:
    target, given = shape_in(m[1]), shape_in(m[2])
    it = Given(s)
    pred, true = it.names["input"], it.names["target"]
    why = f"This loss compares element by element. `{pred}` has shape {given}, `{true}` has shape {target}."
    own = target_name(true, "target")
    fix = f"{own} = {own}.view_as({pred})" if _same_count(target, given) else f"# bring {true} to shape {given}"
    if _same_count(target, given) and given.endswith(", 1)"):
        fix += f"\n{operand(pred)}.squeeze(-1)  # or this, for the predictions"
    return card("target-shape", f"`{true}` has shape {target}, `{pred}` has shape {given}", why, fix, s.needed())


def _probabilities(s: Situation, m: re.Match[str]) -> Explanation | None:
    it = Given(s)
    true, pred = it.names["target"], it.names["input"]
    why = (
        f"`{true}` has the shape of `{pred}`, {it.shape('target')}, so it is read as a probability for each class, "
        f"and those are floating point. It is {it.dtype('target')}."
    )
    own = target_name(true, "target")
    fix = (
        f"{own} = {own}.float()  # if it is one-hot, or holds probabilities\n{own} = {own}.argmax(dim=1)  "
        f"# one-hot: the numbers of the classes"
    )
    return card("target-shape", f"`{true}` has the shape of the predictions, but holds integers", why, fix, s.needed())


def _out_of_bounds(s: Situation, m: re.Match[str]) -> Explanation | None:
    it = Given(s)
    true, pred, bad = it.names["target"], it.names["input"], int(m[1])
    classes = it.input.shape[1 if it.input.dim() > 1 else 0] if it.input is not None and it.input.dim() else 0
    why = f"`{pred}` has scores for {classes} classes, numbered 0 to {classes - 1}. `{true}` contains {bad}."
    own = target_name(true, "target")
    fix = (
        f"{own} = {own} - 1  # if your classes are numbered from 1\nnn.Linear(..., {bad + 1})  # or a model "
        f"with more classes"
    )
    if bad < 0:
        fix = f"F.cross_entropy({pred}, {true}, ignore_index={bad})  # if {bad} marks what is to be left out"
    return card(
        "target-range",
        f"`{true}` contains class {bad}, but there are {classes} classes",
        why,
        fix,
        s.needed(),
        bool(classes),
    )


def _multi_target(s: Situation, m: re.Match[str]) -> Explanation | None:
    it = Given(s)
    true, shape = it.names["target"], it.shape("target")
    if it.function not in ("cross_entropy", "nll_loss", ""):
        why = f"`{it.function}` takes one target for each sample, in one dimension; `{true}` has shape {shape}."
        fix = f"{operand(true)}.squeeze(1)" if shape.endswith(", 1)") else f"# bring {true} to one dimension"
        headline = f"`{true}` has shape {shape}, where one target for each sample is expected"
        return card("target-shape", headline, why, fix, s.needed())
    why = f"Class numbers come one for each sample, in one dimension; `{true}` has shape {shape}."
    own = target_name(true, "target")
    fix = f"{own} = {own}.squeeze(1)" if shape.endswith(", 1)") else f"{own} = {own}.argmax(dim=1)  # if it is one-hot"
    headline = f"`{true}` has shape {shape}, where one class number for each sample is expected"
    return card("target-shape", headline, why, fix, s.needed())


def _spatial(s: Situation, m: re.Match[str]) -> Explanation | None:
    it = Given(s)
    true, shape, own = it.names["target"], it.shape("target"), target_name(it.names["target"], "target")
    scores = it.shape("input")
    why = f"The scores have shape {scores}: one class for each place. So targets have no channels; `{true}` is {shape}."
    fix = f"{own} = {own}.squeeze(1)" if it.target is not None and it.target.shape[1:2] == (1,) else ""
    fix = fix or f"{own} = {own}.argmax(dim=1)  # if it is one-hot"
    return card("target-shape", f"`{true}` has shape {shape}: one dimension too many", why, fix, s.needed())


def _batch_sizes(s: Situation, m: re.Match[str]) -> Explanation | None:
    it = Given(s)
    true, pred = it.names["target"], it.names["input"]
    why = f"`{pred}` has {m[1]} samples (shape {it.shape('input')}), `{true}` has {m[2]} (shape {it.shape('target')})."
    fix = "# look where samples are lost or added: view(), reshape, a slice of one and not of the other"
    return card("target-shape", f"`{pred}` has {m[1]} samples, `{true}` has {m[2]}", why, fix, s.needed())


def _class_dimension(s: Situation, m: re.Match[str]) -> Explanation | None:
    it = Given(s)
    true, pred = it.names["target"], it.names["input"]
    why = (
        f"The classes of `{pred}`, of shape {it.shape('input')}, are in dimension 1, right after the samples. "
        f"So `{true}` should have shape ({m[1]}); it has ({m[2]})."
    )
    fix = (
        f"{pred} = {pred}.movedim(-1, 1)  # if the classes are last\n{pred}.flatten(0, -2), {true}.flatten()  # or this"
    )
    headline = f"`{true}` has shape ({m[2]}), where `{pred}` asks for ({m[1]})"
    if it.input is not None and it.target is not None and it.target.shape == it.input.shape[:-1]:
        why = (
            f"The classes are looked for in dimension 1 of `{pred}`, of shape {it.shape('input')}. By the shape of "
            f"`{true}`, {it.shape('target')}, they are in the last one."
        )
        fix = f"{operand(pred)}.movedim(-1, 1)  # the classes to dimension 1"
        headline = f"the classes of `{pred}` are not in dimension 1"
    return card("target-shape", headline, why, fix, s.needed())


def _unit_range(s: Situation, m: re.Match[str]) -> Explanation | None:
    it = Given(s)
    pred = it.names["input"]
    bad = it.input if it.input is not None else MISSING
    nan = is_a(bad, torch.Tensor) and bool(bad.isnan().any())
    if nan:
        why = (
            f"`{pred}` contains NaN: something before the loss divided by zero, took a log or a root of a "
            f"negative, or overflowed."
        )
        fix = "torch.autograd.set_detect_anomaly(True)  # and find the first NaN"
        return card("target-unit-range", f"`{pred}` contains NaN, so it is no probability", why, fix, s.needed())
    why = (
        f"binary_cross_entropy takes probabilities. `{pred}` goes beyond 0 to 1, as the raw scores (logits) of "
        f"a layer do."
    )
    fix = f"F.binary_cross_entropy_with_logits({pred}, {it.names['target']})  # takes the scores; no sigmoid before it"
    return card(
        "target-unit-range",
        f"`{pred}` is not between 0 and 1: scores instead of probabilities",
        why,
        fix,
        s.needed(),
        is_a(bad, torch.Tensor),
    )


def _unit_target(s: Situation, m: re.Match[str]) -> Explanation | None:
    it = Given(s)
    true = it.names["target"]
    why = f"binary_cross_entropy takes targets from 0 to 1; `{true}` goes beyond that."
    own = target_name(true, "target")
    fix = (
        f"{own} = {own} - 1  # if your classes are numbered 1 and 2\n{own} = ({own} > 0).float()  # if "
        f"they are -1 and 1"
    )
    return card("target-unit-range", f"`{true}` is not between 0 and 1", why, fix, s.needed())


def _weights(s: Situation, m: re.Match[str]) -> Explanation | None:
    """A weight for the classes of a binary loss, of which there are others."""
    function = "binary_cross_entropy_with_logits"
    given, target = (s.given("nn/functional.py", function, it) for it in ("input", "target"))
    for name in ("pos_weight", "weight"):
        weight = s.given("nn/functional.py", function, name)
        if not is_a(weight, torch.Tensor) or not is_a(given, torch.Tensor) or not is_a(target, torch.Tensor):
            continue
        if given.shape == target.shape and weight.dim() and weight.shape[-1] not in (1, given.shape[-1]):
            shape, classes = tuple(weight.shape), given.shape[-1]
            why = f"{name} has one number for each class, in the last dimension of the predictions: {classes} of them."
            fix = f"# {name} of shape ({classes},), or (1,) for one number for all"
            headline = f"{name} has shape {shape}, and the predictions end in {classes}"
            return card("weight-shape", headline, why, fix, s.needed())
    return None


RULES = (
    Rule(RuntimeError, r"must match the size of tensor b", _weights, "nn/functional.py"),
    Rule(
        Warning,
        r"Using a target size \((.*?)\) that is different to the input size \((.*?)\)\. This will likely",
        _broadcast,
    ),
    Rule(ValueError, r"Target size \((.*?)\) must be the same as input size \((.*?)\)", _target_size),
    Rule(ValueError, r"Using a target size \((.*?)\) that is different to the input size \((.*?)\)", _target_size),
    Rule(RuntimeError, r"Expected target size \[(.*?)\], got \[(.*?)\]", _class_dimension),
    Rule(RuntimeError, r"Expected floating point type for target with class probabilities", _probabilities),
    Rule(IndexError, r"Target (-?\d+) is out of bounds", _out_of_bounds),
    Rule(RuntimeError, r"multi-target not supported", _multi_target),
    Rule(RuntimeError, r"only batches of spatial targets supported \(3D tensors\) but got targets of", _spatial),
    Rule(ValueError, r"Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\)", _batch_sizes),
    Rule(RuntimeError, r"all elements of input should be between 0 and 1", _unit_range),
    Rule(RuntimeError, r"all elements of target should be between 0 and 1", _unit_target),
)
