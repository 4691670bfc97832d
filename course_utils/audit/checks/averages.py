"""A copy that is none: the average of a model, updated from the very memory that it is to follow."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.checks.differences import Differences
from course_utils.audit.events import Op
from course_utils.audit.expressions import gone_through, loaded_from, zipped_parameters
from course_utils.audit.lines import Spot, frames, module_at, names_in
from course_utils.audit.source import assigned, statement

_WRITES = frozenset({"add_", "lerp_", "copy_"})


class Averages(Check):
    """Updates of a parameter from itself, by two names for one model, or by a tensor that shares its memory."""

    codes: ClassVar = ("copy-is-itself",)
    functions: ClassVar = _WRITES | Differences.functions

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._times: Counter[tuple[Spot, str, str]] = Counter()
        self._loads: Counter[tuple[Spot, str, str]] = Counter()
        self._shared: Counter[Spot] = Counter()
        self._differences = Differences(self)

    def state_made(self, module: Any, state: Any, spot: Spot | None) -> None:
        self._differences.state_made(module, state, spot)

    def function(self, event: Op) -> None:
        if event.name not in _WRITES:
            self._differences.look(event)
            return
        given = event.args[:2]
        if len(given) < 2 or not isinstance(given[1], torch.Tensor):
            return
        if given[0] is not given[1]:
            if isinstance(given[0], torch.Tensor) and _is_average(event) and given[0].is_set_to(given[1]):
                spot = event.spot if self._is_learned(given[1]) else None
                if spot is not None:
                    self._shared[spot] += 1
            return
        if not isinstance(given[1], torch.nn.Parameter):
            return
        spot, frame = event.spot, next(frames(), None)
        if spot is None or frame is None:
            return
        known = names_in(frame)
        for one, other in zipped_parameters(spot):
            model = module_at(known, one)
            if one != other and model is not None and model is module_at(known, other):
                self._times[spot, one, other] += 1

    def _is_learned(self, tensor: torch.Tensor) -> bool:
        """Say whether a tensor is a parameter, or shares the memory of one: `p.detach()`, `p.data`."""
        address = tensor.data_ptr()
        known = (slot.tensor for slot in self.book.live())
        return isinstance(tensor, torch.nn.Parameter) or any(
            it is not None and it.data_ptr() == address for it in known
        )

    def loads(self, module: torch.nn.Module, state: Any, spot: Spot | None) -> None:
        names, frame = loaded_from(spot) if spot is not None else None, next(frames(), None)
        if spot is None or names is None or frame is None or names[0] == names[1]:
            return
        known = names_in(frame)
        if all(module_at(known, name) is module for name in names):
            self._loads[spot, *names] += 1

    def found(self) -> Iterator[Found]:
        yield from self._differences.found()
        for (spot, one, other), times in self._times.items():
            if times >= 2:
                yield self.say(
                    "copy-is-itself",
                    assigned(spot, one) or assigned(spot, other) or spot,
                    f"{one} and {other} are one model: {one} is no copy",
                    f"An assignment copies nothing. Line {spot.line} computes each parameter from itself: there is no "
                    "average, and the model that is trained is changed instead.",
                    f"{one} = copy.deepcopy({other})",
                    times=times,
                    names=(one, other),
                )
        for spot, times in self._shared.items():
            name = _written(spot)
            if times >= 2:
                yield self.say(
                    "copy-is-itself",
                    assigned(spot, name) or spot,
                    f"{name or 'the average'} shares the memory of the parameters: it is no copy",
                    f"detach() and .data give the same numbers in the same memory. Line {spot.line} mixes each "
                    "parameter with itself: there is no average of earlier weights, and what is written to it is "
                    "written to the model.",
                    f"{(name or 'average').rpartition('.')[2]} = ... parameter.detach().clone() ...",
                    times=times,
                    names=(name,),
                )
        for (spot, one, other), times in self._loads.items():
            yield self.say(
                "copy-is-itself",
                assigned(spot, one) or assigned(spot, other) or spot,
                f"{one} and {other} are one model: {one} is no copy",
                f"An assignment copies nothing. Line {spot.line} loads the model into itself, and between two such "
                f"loads {one} moves with each step of {other}.",
                f"{one} = copy.deepcopy({other})",
                times=times,
                names=(one, other),
            )


def _is_average(event: Op) -> bool:
    """Say whether an operation in place mixes what it writes with something else: lerp_, or add_ of a share."""
    alpha = event.kwargs.get("alpha", 1)
    return event.name == "lerp_" or (event.name == "add_" and isinstance(alpha, float) and 0 < alpha < 1)


def _written(spot: Spot) -> str:
    """Return what a line writes to in place, without its index; for a loop's name, what the loop goes through."""
    found = statement(spot)
    for node in ast.walk(found) if found is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WRITES:
            owner: ast.expr = node.func.value
            while isinstance(owner, ast.Call | ast.Subscript | ast.Attribute) and not _is_own(owner):
                owner = owner.func if isinstance(owner, ast.Call) else owner.value
            return gone_through(spot, ast.unparse(owner))
    return ""


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
