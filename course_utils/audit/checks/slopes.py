"""A penalty on the length of a slope that is not taken over each sample: over one axis of it, or the whole batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, derivative_of
from course_utils.audit.followed import Followed
from course_utils.audit.lines import Spot
from course_utils.graph.trace import node_name

_NORMS = frozenset({"norm", "linalg_norm", "linalg_vector_norm"})
_SQUARES = frozenset({"pow", "__pow__", "square", "mul", "__mul__"})
_TOTALS = frozenset({"sum", "add", "__add__", "__radd__", "clamp", "clamp_min"})  # of squares, with a small number
_ROOTS = frozenset({"sqrt", "pow", "__pow__"})
_VIEWS = frozenset({"view", "reshape", "flatten", "squeeze", "unsqueeze"})
_LESS = frozenset({"sub", "__sub__", "rsub", "__rsub__", "mse_loss"})
_TIMES = 2
_MOST = 64


class _Slope(NamedTuple):
    """What became of a derivative: by how many samples, which power of it, and the line of its length."""

    samples: int
    kind: str  # "slope", "square" or "length"
    spot: Spot | None
    axes: int  # of the derivative


class Slopes(Check):
    """Follows the derivative of scores, one for each sample, into its length and the number taken from that."""

    codes: ClassVar = ("slope-axis",)
    functions: ClassVar = _NORMS | _SQUARES | _TOTALS | _ROOTS | _VIEWS | _LESS | {"grad"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._known: Followed[_Slope] = Followed(_MOST)
        self._times: Counter[tuple[Spot, bool]] = Counter()
        self._right: set[Spot] = set()

    def function(self, event: Op) -> None:
        if event.name == "grad":
            self._taken(event)
        elif self._known and event.args:
            known = next((it for it in map(self._known.of, event.args[:2]) if it is not None), None)
            if known is not None:
                self._on(event, known)

    def _taken(self, event: Op) -> None:
        taken = derivative_of(event)
        if taken is None or taken.slope.grad_fn is None:
            return
        by = taken.by
        rows = by.shape[0] if by.dim() > 1 and not isinstance(by, torch.nn.Parameter) else 0
        if rows > 1 and _scores(taken.out) == rows:
            self._known.keep(taken.slope, _Slope(rows, "slope", None, by.dim()))

    def _on(self, event: Op, known: _Slope) -> None:
        name, out, kind = event.name, event.out, known.kind
        if not isinstance(out, torch.Tensor):
            return
        if name in _NORMS and kind == "slope":
            self._known.keep(out, known._replace(kind="length", spot=event.spot))
        elif name in _LESS and kind == "length":
            self._compared(event, known)
        elif name in _VIEWS and (out.shape[:1] == (known.samples,) or out.dim() == 1):
            self._known.keep(out, known)
        elif name in _SQUARES and kind == "slope" and self._known.of(event.args[0]) is known and _is_square(event):
            self._known.keep(out, known._replace(kind="square"))
        elif name == "sum" and kind == "square":
            self._known.keep(out, known._replace(spot=event.spot))
        elif name in _TOTALS and name != "sum" and kind == "square" and known.spot is not None:
            self._known.keep(out, known)
        elif name in _ROOTS and kind == "square" and known.spot is not None and not _is_square(event):
            self._known.keep(out, known._replace(kind="length"))

    def _compared(self, event: Op, known: _Slope) -> None:
        """Note a length that a number is taken from: of each sample, of parts of one, or of all of them at once."""
        first, second = event.args[0], event.argument(1, "other" if event.name != "mse_loss" else "target")
        length, other = (first, second) if self._known.of(first) is known else (second, first)
        plain = not isinstance(other, torch.Tensor) or (not other.requires_grad and bool((other == other.max()).all()))
        if known.spot is None or not plain:
            return
        if length.numel() == known.samples:
            self._right.add(known.spot)
        elif length.numel() == 1 or (known.axes > 2 and length.numel() % known.samples == 0):
            self._times[known.spot, length.numel() == 1] += 1

    def found(self) -> Iterator[Found]:
        for (spot, whole), times in self._times.items():
            if times >= _TIMES and spot not in self._right:
                over = "the whole batch at once" if whole else "a part of its axes only"
                yield self.say(
                    "slope-axis",
                    spot,
                    f"the length of a slope is taken over {over}, and a number is taken from it",
                    "There is one score for each sample, and the slope of that score is made of all numbers of the "
                    "sample. A penalty that holds its length near a number needs one length for each sample: over "
                    "other axes, something else is held there.",
                    "slope.flatten(1).norm(2, dim=1)  # one length for each sample",
                    certain=False,
                    times=times,
                )


def _scores(out: torch.Tensor) -> int:
    """Return how many scores a derivative is one of, also of their sum."""
    node = out.grad_fn
    if out.dim() == 0 and node is not None and node_name(node) == "SumBackward0":
        return int(torch.Size(node._saved_self_sym_sizes).numel())  # type: ignore[attr-defined]
    return out.numel() if out.dim() else 0


def _is_square(event: Op) -> bool:
    """Say whether an operation squares: by a power, or times the same thing."""
    if event.name in ("pow", "__pow__"):
        return bool(event.argument(1, "exponent") == 2)
    return event.name == "square" or (event.name in ("mul", "__mul__") and event.args[0] is event.argument(1, "other"))
