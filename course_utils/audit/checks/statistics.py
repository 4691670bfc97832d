"""Averaged models that are evaluated with statistics of batch norm which are not theirs."""

from __future__ import annotations

import ast
import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import AveragedModel

from course_utils.audit.book import sampled
from course_utils.audit.causes import average_updates
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Pass
from course_utils.audit.lines import Spot, frames, names_in
from course_utils.audit.reading import scopes_of
from course_utils.audit.source import function_around

_WEIGHTS = 4  # of a model are compared with those of its copy
_FOLLOWS = 0.5  # cosine of the ways that a copy and its model have gone from the first values
_LOOKS = 30
_MOST = 64
_TRAINS = re.compile(r"\b(backward|step|update_parameters)\(")


@dataclass
class _Copy:
    """What a model that no optimizer holds was like when it was last evaluated."""

    weights: list[torch.Tensor]
    statistics: list[torch.Tensor]


class Statistics(Check):
    """Calls in evaluation of models that follow another one, and whether their batch norms followed, too."""

    codes: ClassVar = ("stale-statistics",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._first: dict[int, tuple[weakref.ref[nn.Module], list[torch.Tensor]]] = {}  # by a trained model's key
        self._seen: set[int] = set()
        self._fitted: dict[int, tuple[weakref.ref[nn.Module], int, int]] = {}  # calls in training: averages, passes
        self._copies: dict[int, _Copy] = {}
        self._set: dict[int, Spot | None] = {}
        self._looks: dict[int, int] = {}
        self._told: dict[tuple[Spot | None, str], list[Any]] = {}

    def mode_set(self, module: Any, training: bool, spot: Spot | None) -> None:
        if not training and len(self._set) < _MOST:
            self._set[id(module)] = _given_at(module) or spot

    def pass_begins(self, event: Pass) -> None:
        for model in list(self.book.models.values()) if event.accumulate else ():
            if model.key not in self._seen and len(self._seen) < _MOST:
                self._seen.add(model.key)
                module = model.ref()
                if module is not None and _norms(module):
                    self._first[model.key] = weakref.ref(module), _weights(module)

    def called(self, event: Call) -> None:
        module = event.module
        if event.training:
            if event.active and not event.grad and len(self._fitted) < _MOST:
                self._fitted[id(module)] = weakref.ref(module), _averages(module), self.clock.passes
            return
        if not event.asleep or not self.clock.steps or self._looks.get(event.model.key, 0) >= _LOOKS:
            return
        self._looks[event.model.key] = self._looks.get(event.model.key, 0) + 1
        norms = _norms(module)
        if not norms or self.book.trained(module):
            return
        if isinstance(module, AveragedModel):
            if _is_mean(module) and _averages(module) > 1 and not self._is_fitted(module):
                self._tell(event, "mean")
        elif all(map(_is_born, norms)):
            if self._follows(module):
                self._tell(event, "born")
        else:
            self._compare(event, norms)

    def _is_fitted(self, module: AveragedModel) -> bool:
        """Say whether the averaged model was run in training mode since its weights were last averaged."""
        mine, inner = self._fitted.get(id(module)), self._fitted.get(id(module.module))
        if mine is not None and mine[0]() is module and mine[1] == _averages(module):
            return True
        return inner is not None and inner[0]() is module.module and inner[2] == self.clock.passes

    def _follows(self, module: nn.Module) -> bool:
        """Say whether a model's weights went the way of those of a trained one, from where that began."""
        mine = _weights(module)
        for reference, first in self._first.values():
            other = reference()
            if other is None or other is module or type(other) is not type(module) or not self.book.trained(other):
                continue
            now = _weights(other)
            if [it.shape for it in now] != [it.shape for it in mine]:
                continue
            way = torch.cat([b - a for a, b in zip(first, now, strict=True)])
            own = torch.cat([b - a for a, b in zip(first, mine, strict=True)])
            length = float(way.norm() * own.norm())
            if length > 0 and float(way @ own) > _FOLLOWS * length and any(map(_counted, _norms(other))):
                return True
        return False

    def _compare(self, event: Call, norms: list[_BatchNorm]) -> None:
        """Find out whether the weights moved since the last evaluation, and the statistics did not."""
        now = _Copy(
            _weights(event.module), [it.detach().clone() for norm in norms if (it := norm.running_mean) is not None]
        )
        last, self._copies[event.model.key] = self._copies.get(event.model.key), now
        if last is None or len(last.weights) != len(now.weights):
            return
        moved = not all(map(torch.equal, last.weights, now.weights))
        if moved and all(map(torch.equal, last.statistics, now.statistics)) and self._follows(event.module):
            self._tell(event, "kept")

    def _tell(self, event: Call, kind: str) -> None:
        spot = self._set.get(id(event.module)) or _given_at(event.module) or (event.spots[0] if event.spots else None)
        told = self._told.setdefault((spot, kind), [0, event.model.name or "the averaged model"])
        told[0] += 1

    def found(self) -> Iterator[Found]:
        updates = average_updates(scopes_of(self.recorder)) if self._told else []
        for (spot, kind), (times, name) in self._told.items():
            if kind == "kept" and times < 2:
                continue
            yield self.say(
                "stale-statistics",
                # Statistics that nobody copies are missing where the weights are mixed.
                updates[0] if len(updates) == 1 and kind != "mean" else spot,
                f"{name} is evaluated with statistics of batch norm that {_WORDS[kind]}",
                "Its weights are an average, and were never run over data. In evaluation batch norm shifts and scales "
                "by the statistics that it has, and these belong to other weights.",
                f"torch.optim.swa_utils.update_bn(loader, {name})  # before eval()"
                if kind == "mean"
                else "copy the buffers, too: for a, b in zip(copy.buffers(), model.buffers()): a.copy_(b)",
                certain=kind == "born",
                times=times,
                names=(name,),
            )


def _given_at(module: nn.Module) -> Spot | None:
    """Return the line that gives a model to the functions that run: the first outwards that is not in one of those.

    A function that measures any model knows of no average; the line that gives it one does. One that also trains does.
    """
    for frame in frames():
        spot, code = Spot(frame.f_code.co_filename, frame.f_lineno), frame.f_code
        scope = function_around(spot)
        if scope is None or isinstance(scope, ast.Module) or _TRAINS.search(ast.unparse(scope)):
            return spot
        known = names_in(frame)
        if all(known.get(name) is not module for name in code.co_varnames[: code.co_argcount]):
            return spot
    return None


_WORDS = {
    "mean": "are the last trained model's, and not those of the averaged weights",
    "born": "are still those that it was made with: mean 0, variance 1",
    "kept": "stand still while its weights move",
}


def _norms(module: nn.Module) -> list[_BatchNorm]:
    return [part for part in module.modules() if isinstance(part, _BatchNorm) and part.running_mean is not None]


def _weights(module: nn.Module) -> list[torch.Tensor]:
    """Return samples of the first weights of a model, those of norms left out."""
    found = [it for it in module.parameters() if it.dim() > 1 and it.is_floating_point()]
    return [sampled(it) for it in found[:_WEIGHTS]]


def _averages(module: nn.Module) -> int:
    return int(module.n_averaged) if isinstance(module, AveragedModel) else 0


def _is_mean(module: AveragedModel) -> bool:
    """Say whether it is the mean of what it was given, and not a moving average, and takes no buffers in."""
    functions = [getattr(module, name, None) for name in ("avg_fn", "multi_avg_fn")]
    return not module.use_buffers and all(
        it is None or "swa" in getattr(it, "__qualname__", "").lower() for it in functions
    )


def _is_born(norm: _BatchNorm) -> bool:
    mean, variance = norm.running_mean, norm.running_var
    return mean is not None and variance is not None and not bool(mean.any()) and not bool((variance - 1).any())


def _counted(norm: _BatchNorm) -> bool:
    return norm.running_mean is not None and bool(norm.running_mean.any())
