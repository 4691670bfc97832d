"""Samples that the distribution's parameters get no gradient from, though they go into the loss."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import ClassVar

import torch

from course_utils.audit.book import listed
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, PassGraph
from course_utils.audit.followed import Followed
from course_utils.audit.lines import Spot, frames, here, is_torch, names_in
from course_utils.audit.source import no_grad_around
from course_utils.graph.alive import tensors_in
from course_utils.graph.trace import walk

_MOST = 256  # so many samples, and what was computed from them without a graph, are followed
_OTHERWISE = frozenset({"detach", "gaussian_nll_loss"})


@dataclass
class _Drawn:
    """One line that draws with `sample()`, and where what it drew entered graphs."""

    leaves: frozenset[int] = frozenset()
    numbers: set[int] = field(default_factory=set)
    passes: int = 0
    call: str = "sample()"


class Samples(Check):
    """Samples of a Normal whose parameters learn from the same loss, drawn without the way back to them."""

    codes: ClassVar = ("sample-cut",)
    functions: ClassVar = frozenset({"*"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lines: dict[Spot, _Drawn] = {}
        self._followed: Followed[Spot] = Followed(_MOST)
        self._scored = False  # a density is trained: then a sample need not carry a gradient

    def function(self, event: Op) -> None:
        if event.name == "normal" and isinstance(event.out, torch.Tensor):
            self._draw(event.out)
            self._draw_directly(event)
        elif self._lines and not self._scored:
            self._follow(event)

    def _draw(self, sample: torch.Tensor) -> None:
        frame, spot = _inside("sample"), here()
        source = names_in(frame).get("self") if frame is not None else None
        if spot is None or not isinstance(source, torch.distributions.Normal):
            return
        learning = [tensor for tensor in (source.loc, source.scale) if tensor.requires_grad]
        if learning and no_grad_around(spot) is None:
            drawn = self._lines.setdefault(spot, _Drawn())
            drawn.leaves |= self.recorder.cuts.behind(learning)
            self._followed.keep(sample, spot)

    def _draw_directly(self, event: Op) -> None:
        """`torch.normal(mean, deviation)`: its node is in the graph, and gives zeros."""
        learning = [it for it in tensors_in((*event.args, *event.kwargs.values())) if it.requires_grad]
        spot = event.spot
        if spot is None or not learning or _inside("sample") is not None or not event.out.requires_grad:
            return
        drawn = self._lines.setdefault(spot, _Drawn(call="torch.normal()"))
        drawn.leaves |= self.recorder.cuts.behind(learning)
        drawn.numbers |= set(range(event.began, event.ended))

    def _follow(self, event: Op) -> None:
        self._scored = event.name == "gaussian_nll_loss" or self._is_scored()
        if event.name in _OTHERWISE or not isinstance(event.out, torch.Tensor):
            return
        for tensor in tensors_in((*event.args, *event.kwargs.values())):
            spot = self._followed.of(tensor)
            if spot is None:
                continue
            if event.out.requires_grad:
                self._lines[spot].numbers |= set(range(event.began, event.ended))
            elif torch.is_grad_enabled():
                self._followed.keep(event.out, spot)

    def _is_scored(self) -> bool:
        """Say whether a density is trained that is not made of a sample itself, as that of a decoder is."""
        frame = _inside("log_prob")
        if frame is None:
            return False
        names = names_in(frame)
        value, made = names.get("value"), [it for it in tensors_in((vars(names.get("self")),)) if it.requires_grad]
        if self._followed.of(value) is not None:
            return True
        if not made:
            return isinstance(value, torch.Tensor) and value.requires_grad
        numbers = PassGraph(walk([it.grad_fn for it in made if it.grad_fn is not None])).numbers
        return not any(drawn.numbers & numbers for drawn in self._lines.values())

    def pass_begins(self, event: Pass) -> None:
        if not self._lines or self._scored or not event.accumulate:
            return
        keys = {self.book.slot(leaf).key for _, leaf in event.graph.leaves}
        for drawn in self._lines.values():
            drawn.passes += bool(drawn.numbers & event.graph.numbers and drawn.leaves & keys)
            drawn.numbers.clear()

    def found(self) -> Iterator[Found]:
        for spot, drawn in self._lines.items():
            if self._scored or drawn.passes < 2:
                continue
            slots = [slot for slot in self.book.live() if slot.key in drawn.leaves]
            yield self.say(
                "sample-cut",
                spot,
                f"{drawn.call} lets no gradient through, and the loss is computed from the sample",
                f"The mean and the deviation come from {listed(slots)}. They learn from the rest of the loss: what "
                "the sample does to it does not reach them.",
                "rsample()  # in place of sample(): the mean plus the deviation times noise, with its graph"
                if drawn.call == "sample()"
                else "mean + deviation * torch.randn_like(deviation)  # the noise alone is drawn",
                certain=False,
                times=drawn.passes,
                about=drawn.leaves,
                names=[slot.name for slot in slots],
            )


def _inside(method: str) -> FrameType | None:
    """Return the frame of a distribution's method that the learner's line has called, if one is running."""
    learners = next(frames(), None)
    found, frame = None, sys._getframe(1)
    while frame is not None and frame is not learners:
        if frame.f_code.co_name == method and is_torch(frame.f_code.co_filename):
            found = found or frame
        frame = frame.f_back  # type: ignore[assignment]
    return found
