"""Data mixed with noise by two weights whose squares are to sum to 1: the root that one of them lacks."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.followed import Followed
from course_utils.audit.lines import Spot, frames, names_in

_DRAWS = frozenset({"randn", "randn_like", "normal", "normal_"})
_PRODUCTS = frozenset({"mul", "__mul__", "__rmul__"})
_SUMS = frozenset({"add", "__add__", "__radd__"})
_VALUES, _TIMES = 4, 2  # different weights, and sums, before something is said
_ROWS = 8  # of a batch, to say that weights fall with the step
_MOST, _LOOKS = 64, 40
_NEAR, _EDGE = 1e-4, 0.01

_WHY = (
    "Noise of variance 1 that is multiplied by w has the variance w * w. The two variances sum to 1 when the squares "
    "of the weights do, as those of sqrt(k) and sqrt(1 - k): "
)
_HEADLINES = {
    "noise": (
        "the noise is multiplied by 1 - k and the data by the root of k: the noise's root is missing",
        _WHY + "with 1 - k itself there is less noise at each step than the schedule says.",
    ),
    "data": (
        "the data are multiplied by k and the noise by the root of 1 - k: the data's root is missing",
        _WHY + "with k itself the data fade sooner than the schedule says.",
    ),
    "both": (
        "data and noise are multiplied by k and 1 - k, a product of many steps' shares: both roots are missing",
        _WHY + "with k and 1 - k themselves there is too little of both.",
    ),
    "swapped": (
        "the weights of data and noise are swapped: at later steps there is less noise",
        "The product of the shares that each step leaves falls with the step. Its root belongs to the data, and the "
        "root of the rest to the noise: here the first steps are almost noise alone.",
    ),
}


@dataclass
class _Mixed:
    """What the sums of one line were made of, by kind: how often, and with how many different weights."""

    times: dict[str, int] = field(default_factory=dict)
    weights: dict[str, set[float]] = field(default_factory=dict)
    looks: int = 0
    others: bool = False  # the line also mixed in another way


class Noising(Check):
    """Compares the weights of sums of two products, of which one is noise."""

    codes: ClassVar = ("noise-weights",)
    functions: ClassVar = _DRAWS | _PRODUCTS | _SUMS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._noise: Followed[bool] = Followed(_MOST)
        self._products: Followed[tuple[Any, bool]] = Followed(_MOST)  # the weight, and whether of noise
        self._lines: dict[Spot, _Mixed] = {}

    def function(self, event: Op) -> None:
        out = event.out
        if not isinstance(out, torch.Tensor) or out.dim() < 2:
            return
        if event.name in _DRAWS:
            self._noise.keep(out, True)
        elif event.name in _PRODUCTS and len(event.args) == 2:
            self._product(out, *event.args)
        elif event.name in _SUMS and len(event.args) == 2:
            one, other = map(self._products.of, event.args)
            if one is not None and other is not None and one[1] is not other[1]:
                data, noise = (one[0], other[0]) if other[1] else (other[0], one[0])
                self._sum(event.spot, data, noise)

    def _product(self, out: torch.Tensor, one: Any, other: Any) -> None:
        """Keep a product of a tensor and of a weight for each row, or for all of it."""
        for weight, thing in ((one, other), (other, one)):
            if isinstance(thing, torch.Tensor) and thing.shape == out.shape and _is_weight(weight, out):
                kept = weight.detach() if isinstance(weight, torch.Tensor) else weight
                self._products.keep(out, (kept, self._noise.of(thing) is True))
                return

    def _sum(self, spot: Spot | None, data: Any, noise: Any) -> None:
        if spot is None or (spot not in self._lines and len(self._lines) > _MOST):
            return
        mixed = self._lines.setdefault(spot, _Mixed())
        if mixed.looks >= _LOOKS:
            return
        mixed.looks += 1
        a, b = (torch.as_tensor(it, dtype=torch.float64, device="cpu").flatten() for it in (data, noise))
        inner = (a > _EDGE) & (a < 1 - _EDGE) & (b > _EDGE) & (b < 1 - _EDGE) if a.shape == b.shape else a.bool()[:0]
        if not bool(inner.any()):
            return
        kind, falls = _kind(a[inner], b[inner]), _falls(b)
        if kind == "":
            mixed.others = True
        elif kind != "right" or falls:
            kind = "swapped" if kind == "right" else kind
            mixed.times[kind] = mixed.times.get(kind, 0) + 1
            mixed.weights.setdefault(kind, set()).update(round(it, 5) for it in b[inner][:_LOOKS].tolist())

    def found(self) -> Iterator[Found]:
        for spot, mixed in self._lines.items():
            for kind, times in mixed.times.items():
                known = kind in ("noise", "data") or _is_schedule(spot.file)
                if mixed.others or len(mixed.times) > 1 or not known or times < _TIMES:
                    continue
                if len(mixed.weights[kind]) >= _VALUES:
                    headline, why = _HEADLINES[kind]
                    fix = "k.sqrt() * x + (1 - k).sqrt() * noise"
                    yield self.say("noise-weights", spot, headline, why, fix, certain=False, times=times)


def _is_weight(thing: Any, out: torch.Tensor) -> bool:
    """Say whether a factor is a number, or has one for each row."""
    if isinstance(thing, torch.Tensor):
        return not thing.requires_grad and thing.numel() in (1, out.shape[0]) and thing.is_floating_point()
    return isinstance(thing, float)


def _kind(a: torch.Tensor, b: torch.Tensor) -> str:
    """Return what the weights of data and of noise are to each other; "" for anything else."""
    sums = {"right": a * a + b * b, "noise": a * a + b, "data": a + b * b, "both": a + b}
    return next((kind for kind, it in sums.items() if bool(((it - 1).abs() < _NEAR).all())), "")


def _falls(noise: torch.Tensor) -> bool:
    """Say whether the weights of noise fall where whole numbers grow that a running frame has one of for each."""
    if noise.numel() < _ROWS:
        return False
    for frame, _ in zip(frames(), range(2), strict=False):
        for value in names_in(frame).values():
            if not isinstance(value, torch.Tensor) or value.dtype != torch.int64 or value.shape != noise.shape:
                continue
            order = value.cpu().argsort()
            steps, way = value.cpu()[order].diff(), noise[order].diff()
            if int((steps > 0).sum()) >= _VALUES and bool((way[steps > 0] < 0).all()):
                return bool((way[steps == 0].abs() < _NEAR).all())
    return False


def _is_schedule(file: str) -> bool:
    """Say whether a file makes the weights as a product of what each step leaves, from the first step on."""
    text = "".join(linecache.getlines(file))
    return "cumprod" in text and "flip" not in text
