"""Differences of weights with themselves: what was kept of earlier weights is their own memory."""

from __future__ import annotations

import ast
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.expressions import gone_through
from course_utils.audit.lines import Spot
from course_utils.audit.source import assigned, blocks_of, statement

_DISTANCES = frozenset(
    {
        *("sub", "__sub__", "__rsub__", "rsub", "subtract", "lerp", "dist", "pairwise_distance"),
        *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
    }
)
_MOST = 2000
_TIMES = 2


@dataclass(frozen=True)
class _Alias:
    """A tensor that shares the memory of a parameter, as it was when it was made."""

    ref: weakref.ref[torch.Tensor]
    base: weakref.ref[torch.Tensor]
    spot: Spot | None
    version: int  # of the parameter
    of_state: bool  # from a state_dict


@dataclass
class _Line:
    """One line that compares weights: with themselves, after they moved, or with others."""

    made: Spot | None = None
    of_state: bool = False
    moves: set[int] = field(default_factory=set)  # versions of a parameter at which it was compared with itself
    others: bool = False


class Differences:
    """Part of a check: follows what shares the memory of a parameter to where it is subtracted from that parameter."""

    functions: ClassVar = _DISTANCES | {"detach", "data.__get__"}

    def __init__(self, check: Check) -> None:
        self._check = check
        self._aliases: OrderedDict[int, _Alias] = OrderedDict()
        self._lines: dict[Spot, _Line] = {}
        self._first: dict[tuple[Spot, int], int] = {}  # by line and parameter, the version at the first comparison

    def state_made(self, module: Any, state: Any, spot: Spot | None) -> None:
        if self._check.recorder.operations is None or not isinstance(state, dict):
            return
        for name, parameter in module.named_parameters():
            given = state.get(name)
            if isinstance(given, torch.Tensor) and given.is_set_to(parameter):
                self._keep(given, parameter, spot, of_state=True)

    def look(self, event: Op) -> None:
        given = event.args
        if event.name in _DISTANCES:
            one, other = given[0] if given else None, given[1] if len(given) > 1 else None
            if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and one.is_leaf and other.is_leaf:
                self._compare(one, other, event)
        elif isinstance(given[0], torch.nn.Parameter) and isinstance(event.out, torch.Tensor):
            self._keep(event.out, given[0], event.spot)

    def _keep(self, alias: torch.Tensor, base: torch.Tensor, spot: Spot | None, of_state: bool = False) -> None:
        if alias is base or base.is_inference():
            return
        if len(self._aliases) >= _MOST:
            self._aliases.popitem(last=False)
        self._aliases[id(alias)] = _Alias(weakref.ref(alias), weakref.ref(base), spot, base._version, of_state)

    def _alias(self, tensor: torch.Tensor) -> _Alias | None:
        known = self._aliases.get(id(tensor))
        return known if known is not None and known.ref() is tensor else None

    def _compare(self, one: torch.Tensor, other: torch.Tensor, event: Op) -> None:
        aliases = [it for it in map(self._alias, (one, other)) if it is not None]
        weights = [it for it in (one, other) if isinstance(it, torch.nn.Parameter)]
        if one.shape != other.shape or one.dtype != other.dtype or not (aliases or weights):
            return
        base = weights[0] if weights else aliases[0].base()
        if base is None or event.spot is None or base.is_inference():
            return
        line = self._lines.setdefault(event.spot, _Line())
        if not one.is_set_to(other) or one.shape != base.shape or self._is_shared(base):
            line.others = True
        else:
            self._note(line, event.spot, base, aliases, one is other)

    def _note(self, line: _Line, spot: Spot, base: torch.Tensor, aliases: list[_Alias], same: bool) -> None:
        """Note a comparison with itself, of one that was kept while the parameter moved."""
        old = next((it for it in aliases if it.version != base._version), None)
        first = self._first.setdefault((spot, id(base)), base._version)
        if old is not None:
            line.made, line.of_state = old.spot, old.of_state
        elif not same or aliases or first == base._version:
            return
        line.moves.add(base._version)

    def _is_shared(self, parameter: torch.Tensor) -> bool:
        """Say whether a parameter stands in several places on purpose: it is tied, or a part of several models."""
        places = 0
        for model in self._check.book.models.values():
            module = model.ref()
            if module is not None:
                places += sum(it is parameter for _, it in module.named_parameters(remove_duplicate=False))
        return places > 1

    def found(self) -> Iterator[Found]:
        for spot, line in self._lines.items():
            if len(line.moves) < _TIMES or line.others:
                continue
            made = line.made or _taken(spot)
            how = (
                "state_dict() copies nothing: its tensors are the model's own memory."
                if line.of_state
                else "An assignment, detach() and .data copy nothing: they give the same numbers in the same memory."
            )
            yield self._check.say(
                "state-is-alias" if line.of_state else "copy-is-itself",
                made or spot,
                f"line {spot.line} compares the weights with themselves: what was kept of them moved along",
                f"{how} Between this line and line {spot.line} the weights were changed, and both sides are what they "
                "are now: the difference is 0 each time.",
                "{name: value.clone() for name, value in model.state_dict().items()}"
                if line.of_state
                else "old = [p.detach().clone() for p in model.parameters()]",
                certain=made is not None,
                times=len(line.moves),
            )


def _taken(spot: Spot) -> Spot | None:
    """Return the first line that binds one of the two sides which a line compares, also by a loop around it."""
    found = statement(spot)
    sides: list[ast.expr] = []
    for node in ast.walk(found) if found is not None and not blocks_of(found) else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            sides += [node.left, node.right]
        elif isinstance(node, ast.Call):
            sides += node.args[:2]
    names = {side.id for it in sides if isinstance(side := _root(it), ast.Name)}
    made = (assigned(spot, gone_through(spot, name)) for name in sorted(names))
    return min((it for it in made if it is not None and it.line < spot.line), default=None)


def _root(node: ast.expr) -> ast.expr:
    """Return what stands first in an expression: `old` of `old[name].detach()`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node
