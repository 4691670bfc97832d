"""Fractions that a conversion to whole numbers turns into zeros, and what is trained on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Op
from course_utils.audit.followed import Followed
from course_utils.audit.lines import Spot
from course_utils.graph.alive import tensors_in

_CASTS = frozenset({"long", "int", "short", "byte", "char", "to", "type", "tensor", "as_tensor"})
_DIVIDES = frozenset({"__floordiv__", "floor_divide", "div", "divide", "__ifloordiv__", "floor_divide_"})
_LOSSES = frozenset(
    {
        *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss"),
        *("binary_cross_entropy", "binary_cross_entropy_with_logits"),
    }
)
_ONWARD = frozenset(
    {
        *("float", "double", "half", "clone", "contiguous", "detach", "cpu", "cuda", "expand", "repeat"),
        *("view", "reshape", "flatten", "unsqueeze", "squeeze", "transpose", "permute", "mul", "__mul__", "__rmul__"),
        *("__truediv__", "sub", "__sub__", "add", "__add__", "__getitem__", "index_select", "stack", "cat"),
        *("split", "chunk", "unbind", "__iter__", "clamp"),
    }
)
_MOST, _SAMPLE, _VALUES = 512, 4096, 8
_NUMBERS = 16  # that were converted at a line, before something is said
_FILLED, _EMPTY = 0.5, 0.02  # shares of what is not 0: at least before, at most afterwards
_TIMES = 3


@dataclass
class _Cast:
    """A line that makes whole numbers: how many, of which values, and what became of them."""

    count: int = 0
    before: int = 0  # that were not 0
    after: int = 0
    values: set[float] = field(default_factory=set)
    looks: int = 0
    used: dict[str, int] = field(default_factory=dict)


class Casting(Check):
    """What is left of fractions that become whole numbers, where these are targets or what a model is given."""

    codes: ClassVar = ("cast-to-zeros",)
    functions: ClassVar = _CASTS | _DIVIDES | _LOSSES | _ONWARD

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._casts: dict[Spot, _Cast] = {}
        self._made: Followed[Spot] = Followed(_MOST)

    def function(self, event: Op) -> None:
        name = event.name
        if name in _LOSSES:
            if self._casts:
                self._use(event.argument(1, "target"), "the target of a loss")
        elif name in _CASTS or name in _DIVIDES:
            given = _fractions(event)
            if given is not None:
                self._convert(given, event)
            elif self._casts:
                self._hand_on(event)
        elif self._casts:
            self._hand_on(event)

    def _convert(self, given: np.ndarray[Any, Any], event: Op) -> None:
        spot = event.spot
        if spot is None or (spot not in self._casts and len(self._casts) >= _MOST):
            return
        cast = self._casts.setdefault(spot, _Cast())
        cast.looks += 1
        if cast.looks <= _MOST:
            out = event.out.detach().reshape(-1)
            cast.count += given.size
            cast.before += int(np.count_nonzero(given))
            cast.after += round(int(torch.count_nonzero(out)) * given.size / out.numel())
            if len(cast.values) < _VALUES:
                cast.values.update(np.unique(given)[:_VALUES].tolist())
        self._made.keep(event.out, spot)

    def _hand_on(self, event: Op) -> None:
        given = [it for it in tensors_in((*event.args, *event.kwargs.values())) if it.numel() > 0]
        spots = [self._made.of(it) for it in given]
        spot = next((it for it in spots if it is not None), None)
        if spot is None:
            return
        # With other numbers beside it, something else comes out; only a mean or a scale may be there.
        large = max(it.numel() for it in given)
        index = event.name in ("__getitem__", "index_select", "stack", "cat")
        if index or all(own or it.numel() * 2 <= large for it, own in zip(given, spots, strict=True)):
            for out in tensors_in((event.out,)):
                if not out.requires_grad:
                    self._made.keep(out, spot)

    def called(self, event: Call) -> None:
        if self._casts:
            self._use(event.given, "what a model is given")

    def _use(self, tensor: Any, words: str) -> None:
        spot = self._made.of(tensor)
        if spot is not None:
            used = self._casts[spot].used
            used[words] = used.get(words, 0) + 1

    def found(self) -> Iterator[Found]:
        for spot, cast in self._casts.items():
            lost = cast.after <= _EMPTY * cast.count and cast.before >= _FILLED * cast.count
            times = max(cast.used.values(), default=0)
            if not lost or cast.count < _NUMBERS or len(cast.values) < _VALUES or times < _TIMES:
                continue
            words = max(cast.used, key=lambda it: cast.used[it])
            yield self.say(
                "cast-to-zeros",
                spot,
                f"of {cast.before} numbers that are not 0 this line leaves {cast.after}: as whole numbers nearly all "
                f"are 0, and they are {words}",
                "A conversion to whole numbers cuts off what stands behind the point, and does not round: 0.93 becomes "
                "0, as 0.07 does. A whole division by the largest value does the same.",
                "x.float() / 255  # for pixels; (p > 0.5).long() for classes; p itself, as a float, for probabilities",
                times=times,
            )


def _fractions(event: Op) -> np.ndarray[Any, Any] | None:
    """Return the numbers, or some of them, that a function makes whole; None where it does something else."""
    out = event.out
    if not isinstance(out, torch.Tensor) or not out.numel() or out.requires_grad or not event.args:
        return None
    given = event.args[0]
    if event.name in _DIVIDES:
        if event.name in ("div", "divide") and event.kwargs.get("rounding_mode") not in ("floor", "trunc"):
            return None
        return _some(given) if isinstance(given, torch.Tensor) else None
    if out.is_floating_point() or out.is_complex() or out.dtype == torch.bool:
        return None
    if isinstance(given, torch.Tensor):
        return _some(given) if given.is_floating_point() else None
    if isinstance(given, np.ndarray):
        return given.reshape(-1)[:: max(1, given.size // _SAMPLE)] if given.dtype.kind == "f" else None
    if isinstance(given, float):
        return np.array([given])
    if isinstance(given, list) and given and isinstance(given[0], float):
        return np.array(given[:_SAMPLE], dtype=float)
    return None


def _some(given: torch.Tensor) -> np.ndarray[Any, Any]:
    flat = given.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // _SAMPLE)].to("cpu", torch.float64).numpy()
