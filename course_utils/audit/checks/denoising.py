"""A model that is to take noise away, and whose target has it: the clean values are overwritten, or never asked for."""

from __future__ import annotations

import ast
import linecache
import re
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.followed import Followed
from course_utils.audit.lines import Spot
from course_utils.audit.source import statement, tree_of
from course_utils.explain.source import names_of
from course_utils.graph.alive import tensors_in

_DRAWS = frozenset({"randn", "randn_like", "normal", "rand", "rand_like", "bernoulli", "randint", "empty_like"})
_TURNS = frozenset({"lt", "gt", "le", "ge", "__lt__", "__gt__", "__le__", "__ge__", "__invert__", "round", "floor"})
_ADDS = frozenset({"add", "__add__", "__radd__", "sub", "__sub__", "lerp", "add_", "__iadd__", "sub_", "__isub__"})
_SCALES = frozenset({"mul", "__mul__", "__rmul__", "div", "__truediv__", "neg", "mul_", "__imul__", "__rsub__"})
_HIDES = frozenset({"masked_fill", "masked_fill_", "where"})
_KEEPS = frozenset(
    {
        *("clamp", "clip", "clamp_", "view", "reshape", "flatten", "unsqueeze", "squeeze", "to", "float", "clone"),
        *("contiguous", "detach", "cpu", "double", "expand", "transpose", "permute"),
    }
)
_DROPS = frozenset({"dropout", "dropout2d", "alpha_dropout"})
_LAYERS = frozenset({"linear", "conv1d", "conv2d", "conv3d", "matmul", "__matmul__"})
_LOSSES = frozenset(
    {
        *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
        *("binary_cross_entropy", "binary_cross_entropy_with_logits"),
    }
)
_SIZES = frozenset({"pow", "__pow__", "square", "abs", "norm"})
_TASK = re.compile(r"de-?nois|corrupt|inpaint", re.IGNORECASE)
_CLEAN = re.compile(r"^clean|_clean", re.IGNORECASE)
_NOISED = re.compile(r"(^|_)(noisy|noised|corrupted|occluded|damaged)(_|\d|$)", re.IGNORECASE)
# Tasks whose target has noise on purpose: another draw of it, or one that the input does not show.
_BY_NOISE = re.compile(
    r"\bSURE\b|\bstein|diverg|noise2|n2[nsv]\b|blind|noisier|total_?variation|\btv\b|fidelity|consisten", re.IGNORECASE
)
_TIMES, _MOST = 3, 256


class Denoising(Check):
    """Noise that a step puts into its input, and whether the target is the same tensor."""

    codes: ClassVar = ("noise-copied",)
    functions: ClassVar = _DRAWS | _TURNS | _ADDS | _SCALES | _HIDES | _KEEPS | _DROPS | _LAYERS | _LOSSES | _SIZES

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._count = 0
        self._born: list[int] = [0]  # by the number of a draw, how many passes came before it
        # What is noise alone, what holds noise, and differences to be squared; each with the number of its draw.
        self._noise: Followed[int] = Followed(_MOST)
        self._noised: Followed[int] = Followed(_MOST)
        self._apart: Followed[int] = Followed(_MOST)
        self._fed: OrderedDict[tuple[int, int], int] = OrderedDict()  # by memory and size: the draw in a layer's input
        # By the line of a loss: the draws of noise that were in its target and in what a layer was given.
        self._copied: dict[Spot, set[int]] = {}
        self._others = 0  # comparisons with something else: what the noise is taken from

    def function(self, event: Op) -> None:
        name, out = event.name, event.out
        if name in _DRAWS:
            if isinstance(out, torch.Tensor) and out.dim() and name != "empty_like":
                self._count += 1
                self._born.append(self.clock.passes)
                self._noise.keep(out, self._count)
            return
        if not self._noise and not self._noised and name not in _DROPS:
            return
        if name in _LOSSES:
            self._compare(event.argument(0, "input"), event.argument(1, "target"), event.spot)
        elif name in _LAYERS:
            draw = self._noised.of(event.args[0] if event.args else None)
            if draw:
                self._fed[event.args[0].data_ptr(), event.args[0].numel()] = draw
                if len(self._fed) > _MOST:
                    self._fed.popitem(last=False)
        elif name in _SIZES:
            draw = self._apart.of(event.args[0] if event.args else None)
            if draw and event.spot is not None:
                self._copied.setdefault(event.spot, set()).add(draw)
        elif isinstance(out, torch.Tensor):
            self._hand_on(event, out)

    def _hand_on(self, event: Op, out: torch.Tensor) -> None:
        """Say what comes out of a function: noise, something with noise in it, or a difference from such."""
        if out.requires_grad:
            sides = (*event.args, None, None)[:2]
            if event.name in ("sub", "__sub__") and all(isinstance(it, torch.Tensor) for it in sides):
                for wanted, own in (sides, sides[::-1]):
                    draw = self._is_copied(own, wanted)
                    if draw:
                        self._apart.keep(out, draw)
            return
        if event.name in _DROPS:
            if bool(event.argument(2, "training", True)) and out is not event.args[0]:
                self._count += 1
                self._born.append(self.clock.passes)
                self._noised.keep(out, self._count)
            return
        tensors = [it for it in tensors_in((*event.args, *event.kwargs.values())) if it.dim()]
        noise = [draw for draw in map(self._noise.of, tensors) if draw]
        noised = [draw for draw in map(self._noised.of, tensors) if draw]
        others = len(tensors) - len(noise)
        if noised and event.name not in _TURNS:
            self._noised.keep(out, noised[0])
        elif event.name in _ADDS and len({self._born[draw] for draw in noise}) > 1:
            self._noised.keep(out, max(noise))  # points that were drawn once, and noise that a step adds
        elif noise and (not others or event.name in _TURNS):
            self._noise.keep(out, noise[0])
        elif noise and event.name in _ADDS | _SCALES | _HIDES:
            self._noised.keep(out, noise[0])

    def _compare(self, one: Any, other: Any, spot: Spot | None) -> None:
        draw = self._is_copied(one, other)
        if draw and spot is not None:
            self._copied.setdefault(spot, set()).add(draw)

    def _is_copied(self, own: Any, wanted: Any) -> int:
        """Return the draw of noise in a target that a layer was given as it is; 0 for any other target."""
        if not isinstance(own, torch.Tensor) or not isinstance(wanted, torch.Tensor):
            return 0
        if not own.requires_grad or wanted.requires_grad or own.shape != wanted.shape:
            return 0
        draw = self._noised.of(wanted)
        self._others += not draw
        return draw if draw and self._fed.get((wanted.data_ptr(), wanted.numel())) == draw else 0

    def found(self) -> Iterator[Found]:
        for spot, copied in self._copied.items():
            often = len(copied) >= _TIMES and self._others < len(copied)
            if not often or not self.clock.steps or not _takes_noise_away(spot):
                continue
            yield self.say(
                "noise-copied",
                spot,
                "the target is the corrupted input itself: the same noise is in both",
                "What the model is given and what it is compared with are one tensor. The best answer is a copy, noise "
                "and all: nothing in the loss asks for the clean values.",
                "noisy = corrupt(x)\nloss = F.mse_loss(model(noisy), x)  # x keeps its name, and stays as it was",
                certain=False,
                times=len(copied),
            )


@lru_cache(maxsize=64)
def _takes_noise_away(spot: Spot) -> bool:
    """Say whether words tell that a model is to undo a corruption: those of a file, or what a loss's line calls."""
    text = "".join(linecache.getlines(spot.file))
    if _BY_NOISE.search(text):
        return False
    tree, line = tree_of(spot.file), statement(spot)
    names = {it.id for it in ast.walk(tree) if isinstance(it, ast.Name)} if tree is not None else set()
    told = _TASK.search(text) is not None or any(map(_CLEAN.search, names))
    return told or any(map(_NOISED.search, names_of(line)))
