"""Parameters that are trained outside of their module, and a module that is asked as it was made."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from course_utils.audit.book import sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Load
from course_utils.audit.lines import Spot
from course_utils.audit.source import tree_of
from course_utils.explain.source import called

_MANY = 20  # calls with other parameters, after which they count as trained


@dataclass
class _Module:
    """How one module was called: with other parameters, and with its own."""

    own: torch.Tensor | None = None  # a sample of its own, at its first call with them
    elsewhere: int = 0  # calls with other parameters, with gradients
    asked: bool = False  # with other parameters and without gradients: somebody uses what was trained
    spot: Spot | None = None  # of the first call with its own after many with others
    times: int = 0
    trained: bool = False


class Functional(Check):
    """Calls of a module with other parameters than its own, as `torch.func.functional_call` makes them."""

    codes: ClassVar = ("trained-elsewhere",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._modules: dict[int, _Module] = {}
        self._loaded: set[int] = set()

    def called(self, event: Call) -> None:
        weight = next((it for it in event.module.parameters() if it.numel() > 1), None)
        if weight is None:
            return
        known = self._modules.setdefault(event.model.key, _Module())
        if not isinstance(weight, nn.Parameter):
            known.elsewhere += event.grad
            known.asked |= not event.grad
            return
        known.trained |= event.recorded is not None
        if known.elsewhere + self.book.transformed[id(event.module)] < _MANY:
            return
        known.elsewhere += self.book.transformed.pop(id(event.module), 0)
        now = sampled(weight)
        if known.own is None:
            known.own, known.spot = now, event.spots[0]
        known.trained |= not torch.equal(known.own, now) or id(event.module) in self._loaded
        known.times += 1

    def loaded(self, event: Load) -> None:
        self._loaded.add(id(event.module))

    def found(self) -> Iterator[Found]:
        for known in self._modules.values():
            if known.spot is None or known.asked or known.trained or _writes_back(known.spot.file):
                continue
            yield self.say(
                "trained-elsewhere",
                known.spot,
                "the module is asked with the parameters that it was made with, and others were trained",
                f"functional_call used other parameters {known.elsewhere} times and left the module's own as they "
                "were: what is measured here has not learnt anything.",
                "functional_call(model, params, (inputs,))  # or model.load_state_dict(params) first",
                certain=False,
                times=known.times,
            )


def _writes_back(file: str) -> bool:
    """Say whether a file writes to parameters by hand anywhere."""
    tree = tree_of(file)
    every = list(ast.walk(tree)) if tree else []
    calls = {called(part) for part in every if isinstance(part, ast.Call)}
    stores = (part.attr for part in every if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store))
    return bool(calls & {"copy_", "set_", "setattr", "vector_to_parameters"}) or "data" in stores
