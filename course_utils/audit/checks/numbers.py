"""Where NaN or infinity began."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, Step, before, number_of, saved_value
from course_utils.audit.lines import Spot
from course_utils.graph.saved import kept
from course_utils.graph.trace import ACCUMULATE, GraphTooLarge, LiveNode, node_name

_LARGE = 1e6
_EVERY = 20


@dataclass(frozen=True)
class _Origin:
    spot: Spot | None
    words: str
    why: str
    certain: bool = True


class Numbers(Check):
    """The first pass with a loss or a gradient that is not finite, if a step used it."""

    codes: ClassVar = ("nan-began",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._origin: _Origin | None = None
        self._risk: _Origin | None = None
        self._began: int | None = None  # the pass whose loss was not finite first
        self._used = 0
        self._has_poles = False
        self._step = 0
        self._first = self._last = 0.0
        self._pass_spot: Spot | None = None

    def pass_begins(self, event: Pass) -> None:
        if self._used or not event.outputs or not isinstance(event.outputs[0], torch.Tensor):
            return
        self._pass_spot = event.spot
        loss = event.outputs[0].detach()
        if not loss.is_floating_point():
            return
        if _is_finite(loss):
            if loss.numel() == 1 and not event.scaled:
                self._last = abs(float(loss))
                self._first = self._first or self._last
            self._risk = self._risky(event) if event.accumulate and self._is_worth_it(event) else None
        elif self._origin is None and not event.scaled:
            self._began = event.number
            self._origin = self._find(event)

    def step_begins(self, event: Step) -> None:
        if self._used or not event.fresh:
            return
        if self._began is not None and any(self._began in slot.content for slot in event.fresh):
            self._used += 1
            self._step = self.clock.steps + 1
            return
        for slot in (event.fresh[0], event.fresh[-1]):
            tensor = slot.tensor
            grad = None if tensor is None else tensor.grad
            if grad is not None and not grad.is_sparse and not _is_finite(grad):
                self._used += 1
                self._step = self.clock.steps + 1
                self._origin = self._origin or self._risk
                return

    def _is_worth_it(self, event: Pass) -> bool:
        """Say whether to look for poles: in the full tier always, later if any operation that has one was seen."""
        return self.recorder.operations is not None or self._has_poles or event.number % _EVERY == 1

    def _nodes(self, event: Pass) -> list[LiveNode]:
        try:
            return sorted(event.graph.inner, key=number_of)
        except GraphTooLarge:
            return []

    def _risky(self, event: Pass) -> _Origin | None:
        """Return the first operation at a point where its derivative is infinite."""
        risky = [node for node in self._nodes(event) if node_name(node) in _POLES]
        self._has_poles = bool(risky)
        for node in risky:
            why = _at_a_pole(node)
            if why:
                return _Origin(self._line(node, event), why, _POLE)
        return None

    def _find(self, event: Pass) -> _Origin | None:
        """Return the first operation of a graph whose result is not finite."""
        for node in self._nodes(event):
            why = _at_a_pole(node)
            if why and not why.startswith(("sqrt", "a norm", "std")):
                return _Origin(self._line(node, event), why, _INFINITE)
            for name, _, tensor in kept(node):
                if tensor is None or not tensor.is_floating_point() or bool(torch.isfinite(tensor).all()):
                    continue
                if name in ("result", "output", "result1", "result2"):
                    return _Origin(
                        self._line(node, event), f"{_plain(node)} gives a result that is not finite", _INFINITE
                    )
                return self._from_input(node, event, name)
        return None

    def _from_input(self, node: LiveNode, event: Pass, name: str) -> _Origin:
        at = {"other": 1, "mat1": 1, "mat2": 2, "weight": 1}.get(name, 0)
        if node_name(node) in ("MmBackward0", "BmmBackward0"):
            at = {"self": 0, "mat2": 1}.get(name, 0)
        maker = before(node, at)
        if maker is None:
            return _Origin(self._line(node, event), "the data holds NaN or infinity", _DATA)
        if node_name(maker) == ACCUMULATE:
            return _Origin(self._line(node, event), "a parameter is not finite any more", _DIVERGED, certain=False)
        return _Origin(self._line(maker, event), f"{_plain(maker)} gives a result that is not finite", _INFINITE)

    def _line(self, node: LiveNode, event: Pass) -> Spot | None:
        return self.recorder.lines.of(number_of(node)) or event.spot

    def found(self) -> Iterator[Found]:
        if not self._used:
            return
        origin = self._origin
        grown = self._first and self._last > _LARGE * self._first
        why = origin.why if origin else "The operation could not be told: nothing that it saved shows it."
        if grown:
            why += (
                f" Before that the loss had grown from {self._first:.3g} to {self._last:.3g}: the steps are too large."
            )
        yield self.say(
            "nan-began",
            (origin.spot if origin else None) or self._pass_spot,
            f"NaN or infinity came in at step {self._step}: {origin.words if origin else 'in this pass'}",
            why,
            _FIXES.get(why, "x.clamp_min(1e-8)  # keep away from the point where it is not finite"),
            certain=origin is not None and origin.certain and not grown,
        )


_POLE = (
    "The loss is an ordinary number, but the derivative at this value is infinite. The gradient became NaN, a step "
    "used it, and the parameters are lost."
)
_INFINITE = "Everything after it is NaN or infinite as well. A step used such gradients, and the parameters are lost."
_DATA = "A batch came in with it. Every parameter that took part is NaN after the step."
_DIVERGED = "An earlier step made it so."
_FIXES = {_DATA: "assert x.isfinite().all()  # and clean the data"}


def _is_finite(tensor: torch.Tensor) -> bool:
    """Say whether all entries are finite: one sum tells, as a rule, many times as fast as a look at each."""
    return math.isfinite(float(tensor.sum())) or bool(torch.isfinite(tensor).all())


def _plain(node: LiveNode) -> str:
    return node_name(node).removesuffix("0").removesuffix("Backward").lower()


def _at_a_pole(node: LiveNode) -> str:
    """Say what is wrong where an operation stands at a point without a finite value or derivative; "" elsewhere."""
    name = node_name(node)
    rule = _POLES.get(name)
    if rule is None:
        return ""
    attribute, test, words = rule
    value = saved_value(node, attribute)
    if value is None or not value.is_floating_point():
        return ""
    if name == "PowBackward0":
        exponent = node._saved_exponent
        if not isinstance(exponent, int | float) or exponent >= 1 or exponent == 0:
            return ""
    return words if bool(test(value).any()) else ""


_POLES: dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor], str]] = {
    "LogBackward0": ("self", lambda x: x <= 0, "log() gets 0 or less"),
    "Log2Backward0": ("self", lambda x: x <= 0, "log2() gets 0 or less"),
    "Log10Backward0": ("self", lambda x: x <= 0, "log10() gets 0 or less"),
    "Log1PBackward0": ("self", lambda x: x <= -1, "log1p() gets -1 or less"),
    "SqrtBackward0": ("result", lambda x: (x == 0) | x.isnan(), "sqrt() gets 0 or less"),
    "RsqrtBackward0": ("result", lambda x: ~x.isfinite(), "rsqrt() gets 0 or less"),
    "ReciprocalBackward0": ("result", lambda x: ~x.isfinite(), "1 / x gets 0"),
    "DivBackward0": ("other", lambda x: x == 0, "a division by 0"),
    "PowBackward0": ("self", lambda x: x == 0, "0 is raised to a power below 1"),
    "ExpBackward0": ("result", lambda x: x.isinf(), "exp() overflows"),
    "StdBackward0": ("result", lambda x: x == 0, "std() of equal numbers is 0"),
    "AcosBackward0": ("self", lambda x: x.abs() >= 1, "acos() gets 1 or -1"),
    "AsinBackward0": ("self", lambda x: x.abs() >= 1, "asin() gets 1 or -1"),
}
