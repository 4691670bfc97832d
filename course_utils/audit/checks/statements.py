"""Lines that change nothing: a method that is named and not called, a result that nobody takes."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Op, Pass, Step
from course_utils.audit.lines import Spot, frames, in_module, is_torch, names_in
from course_utils.audit.mentions import (
    bare_result,
    bare_statements,
    dead_bindings,
    is_shown,
    ran,
    thrown_away,
)
from course_utils.audit.source import function_around
from course_utils.audit.unread import dropped_updates, unread_results, used_up_parameters
from course_utils.explain.source import called

# Methods that are called for what they do. Those of clearing and of passes are other checks' affair.
_METHODS = {
    "step": "no step is made here",
    "train": "the model stays in the mode that it has",
    "eval": "the model stays in the mode that it has",
    "requires_grad_": "nothing is frozen or thawed",
    "detach_": "the graph stays",
    "unscale_": "the gradients stay scaled",
    "update": "the scale stays as it is",
    "remove": "the hook stays",
}

# What gives a new tensor and leaves the old one alone. Nobody calls these for anything else.
_PURE = frozenset(
    {
        *("clamp", "clip", "clamp_min", "clamp_max", "mul", "div", "add", "sub", "neg", "masked_fill", "index_fill"),
        *(
            "to",
            "cuda",
            "float",
            "double",
            "half",
            "type",
            "requires_grad",
            "softmax",
            "log_softmax",
            "sigmoid",
            "relu",
        ),
        *(
            "view",
            "reshape",
            "squeeze",
            "unsqueeze",
            "transpose",
            "permute",
            "flatten",
            "normalize",
            "clone",
            "index_add",
        ),
        *("index_copy", "scatter", "scatter_add", "lerp", "dropout", "tanh", "round", "abs", "sub", "__truediv__"),
        *("true_divide", "divide", "multiply", "__mul__", "__add__", "__sub__"),
        *("gelu", "silu", "elu", "selu", "celu", "mish", "leaky_relu", "prelu", "relu6", "hardtanh", "hardswish"),
        *("softplus", "softsign", "logsigmoid", "dropout1d", "dropout2d", "layer_norm", "group_norm"),
    }
)
_TIMES = 2


class Statements(Check):
    """Expressions that stand alone on a line that ran, and do nothing there."""

    codes: ClassVar = ("no-effect",)
    functions: ClassVar = _PURE

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._seen: set[Spot] = set()
        self._lost: Counter[tuple[Spot, str]] = Counter()

    def pass_begins(self, event: Pass) -> None:
        if event.spot is not None and len(self._seen) < 50:
            self._seen.add(event.spot)

    def step_begins(self, event: Step) -> None:
        if event.spot is not None and len(self._seen) < 50:
            self._seen.add(event.spot)

    def called(self, event: Call) -> None:
        if len(self._seen) < 50:
            self._seen.update(event.spots)

    def function(self, event: Op) -> None:
        spot = event.spot
        if spot is None or not isinstance(event.out, torch.Tensor) or event.kwargs.get("out") is not None:
            return
        value = bare_result(spot)
        if value is None or any(it is event.out for it in event.args):
            return
        # What a line's own text rules out is most of what runs: it is asked first.
        gives, layer = _gives(value, event.name), _is_own_call(value)
        if not (gives or layer) or is_shown(spot):
            return
        if layer and _is_layer(value, spot) if in_module() else gives:
            self._lost[spot, ast.unparse(value)] += 1

    def found(self) -> Iterator[Found]:
        for (spot, text), times in self._lost.items():
            if times >= _TIMES:
                yield self.say(
                    "no-effect",
                    spot,
                    f"{_short(text)} gives a new tensor, and nobody takes it",
                    "It does not change what it is called on. The line computes something and throws it away: "
                    "without it, the training would be the same.",
                    f"x = {_short(text)}  # or, where one exists, the form that writes in place: its name ends in _",
                    times=times,
                )
        told: set[Spot] = set()
        for place, value in bare_statements(sorted(self._seen)):
            words = _said(value)
            if words is not None and place not in told and not is_shown(place):
                told.add(place)
                yield self.say("no-effect", place, *words)
        for file, scope in ran(sorted(self._seen)):
            for place, found in self._bound_for_nobody(file, scope):
                if place not in told:
                    told.add(place)
                    yield found

    def _bound_for_nobody(self, file: str, scope: ast.AST) -> Iterator[tuple[Spot, Found]]:
        """Yield the lines of some code whose results go nowhere, each with what is said of it."""
        for place, name, kind in dead_bindings(file, scope):
            yield place, self._bound(place, name, kind)
        for place, value in thrown_away(file, scope):
            if isinstance(value, ast.BinOp) or called(value) in _PURE:
                yield place, self._computed(place, ast.unparse(value))
        for place, name, text in unread_results(file, scope):
            yield place, self._unread(place, name, text)
        for place, text in dropped_updates(file, scope):
            yield place, self._dropped(place, text)
        for place, name, line in used_up_parameters(file, scope):
            yield place, self._used_up(place, name, line)

    def _used_up(self, spot: Spot, name: str, line: int) -> Found:
        return self.say(
            "no-effect",
            spot,
            f"{name} is a generator: whoever goes through it first uses it up, and line {line} finds nothing in it",
            "parameters() gives each parameter once. A sum or a loop over what is left has no terms, and says so to "
            "nobody.",
            f"{name} = list(...)  # which can be gone through as often as one likes",
        )

    def _unread(self, spot: Spot, name: str, text: str) -> Found:
        return self.say(
            "no-effect",
            spot,
            f"{name} is computed here, and nobody reads it",
            f"{_short(text)} only computes: it writes nowhere. Without the line, the training would be the same, so "
            "what follows it may use what was meant to be replaced.",
            f"# use {name} below, where the other one stands now",
            level="likely",
            certain=False,
        )

    def _dropped(self, spot: Spot, text: str) -> Found:
        return self.say(
            "no-effect",
            spot,
            f"{_short(text)} returns what follows the step, and nobody takes it",
            "The function writes nowhere: it gives new values, and leaves what it was given as it was. The next "
            "gradients are taken at the same weights again.",
            f"... = {_short(text)}  # bind the new values to the names that the next round reads",
        )

    def _computed(self, spot: Spot, text: str) -> Found:
        return self.say(
            "no-effect",
            spot,
            f"{_short(text)} gives a new tensor, and the hook does not return it",
            "What a hook returns takes the place of the gradient. This one returns nothing, so the gradient goes on as "
            "it came: without the line, the training would be the same.",
            f"return {_short(text)}",
        )

    def _bound(self, spot: Spot, name: str, kind: str) -> Found:
        return self.say(
            "no-effect",
            spot,
            f"{name} is bound to another tensor here, and the {kind} stays as it was",
            f"An assignment to a name changes no tensor. The result of this line stands under {name} until the "
            f"{'round' if kind == 'parameter' else 'hook'} ends, and then nowhere.",
            f"{name}.copy_(...)  # under torch.no_grad(); or mul_, add_, lerp_"
            if kind == "parameter"
            else f"return ...  # what a hook returns takes the place of the gradient, and not what {name} stands for",
        )


def _gives(value: ast.expr, name: str) -> bool:
    """Say whether the value of an expression is what a function of this name gives."""
    if isinstance(value, ast.BinOp):
        return True
    return called(value) == name


def _is_own_call(value: ast.expr) -> bool:
    """Say whether an expression calls an attribute of `self`."""
    function = value.func if isinstance(value, ast.Call) else None
    owner = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id == "self"


def _is_layer(value: ast.expr, spot: Spot) -> bool:
    """Say whether a forward calls one of its model's layers, and no method of it."""
    scope, frame = function_around(spot), next(frames(), None)
    if not isinstance(scope, ast.FunctionDef) or scope.name != "forward" or frame is None:
        return False
    function = value.func if isinstance(value, ast.Call) else None
    if not isinstance(function, ast.Attribute):
        return False
    layer = getattr(names_in(frame).get("self"), "_modules", {}).get(function.attr)
    return isinstance(layer, torch.nn.Module) and is_torch(sys.modules[type(layer).__module__].__file__ or "")


def _said(value: ast.expr) -> tuple[str, str, str] | None:
    text = ast.unparse(value)
    if isinstance(value, ast.Attribute) and value.attr in _METHODS:
        return (
            f"{text} is named and not called: {_METHODS[value.attr]}",
            "Without parentheses a method's name stands for the method. Python takes it, does nothing with it, and "
            "says nothing.",
            f"{text}()",
        )
    if not isinstance(value, ast.Compare) or not isinstance(value.left, ast.Attribute) or len(value.ops) != 1:
        return None
    if value.left.attr in ("requires_grad", "training", "grad") and isinstance(value.ops[0], ast.Eq | ast.Is):
        return (
            f"{text} compares, and sets nothing",
            "Two equal signs ask whether both sides are equal. The answer is thrown away, and the attribute stays as "
            "it was.",
            f"{ast.unparse(value.left)} = {ast.unparse(value.comparators[0])}",
        )
    return None


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
