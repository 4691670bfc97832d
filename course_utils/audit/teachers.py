"""Models that are trained no more, and whose answers are a target: in training mode they answer by chance."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from course_utils.audit.book import Model, sampled
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Load, Pass
from course_utils.audit.flow import feeds_a_pass
from course_utils.audit.lines import Spot, name_of
from course_utils.audit.mentions import names_read
from course_utils.audit.source import blocks_of, bound_at, function_around

_LOSS = re.compile(r"loss|kl|entropy|mse|mae|bce|nll|l1|huber|criter|diverg|distan|cosine|distil", re.IGNORECASE)
_SIZE = re.compile(r"loss|\*\* ?2|pow\(|square|abs\(|norm\(", re.IGNORECASE)

_TIMES = 5  # so many passes must have come between its answers
_MOST = 3  # parameters of which samples are kept


@dataclass
class _Asked:
    """A model in training mode that gives results without a graph, and what it was when it was first asked."""

    model: Model
    name: str  # as it was called where it was asked
    spot: Spot
    spots: tuple[Spot, ...]
    parts: tuple[str, ...]
    values: list[torch.Tensor]
    received: int
    last: int = -1  # after how many passes it was asked last
    times: int = 0  # asked with a pass since the time before
    again: int = 0  # asked twice between two passes, as where several answers are averaged


class Teachers:
    """Part of a check: hears of calls and modes, and says which teacher was not put into evaluation."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._asked: dict[tuple[int, Spot], _Asked] = {}
        self._taught: dict[int, int] = {}  # by a model's key: the last pass that reached it
        self._meant: dict[int, int] = {}  # by a module's id: after how many passes it was put into training mode
        self._filled: set[int] = set()  # ids of modules that were given a state that no known model has

    def pass_ended(self, event: Pass) -> None:
        if event.accumulate:
            self._taught.update(
                dict.fromkeys((it.owner for it in event.received if it.owner is not None), event.number)
            )

    def mode_set(self, module: torch.nn.Module, training: bool) -> None:
        if training:
            self._meant[id(module)] = self._check.clock.passes

    def loaded(self, event: Load) -> None:
        known = {it.tensor.data_ptr() for it in self._check.book.live() if it.tensor is not None and it.is_parameter}
        given = [it for it in event.state.values() if isinstance(it, torch.Tensor)]
        if given and not any(it.data_ptr() in known for it in given):
            self._filled.add(id(event.module))

    def called(self, event: Call) -> None:
        if not event.training or not event.active or event.recorded is not None or not event.spots:
            return
        spot = event.spots[0]
        asked = self._asked.get((event.model.key, spot))
        if asked is None:
            name = name_of(event.module) or event.model.name or "the teacher"
            now = _values(event.module), _received(event.model)
            asked = _Asked(event.model, name, spot, event.spots, event.active, *now)
            self._asked[event.model.key, spot] = asked
        passes = self._check.clock.passes
        asked.again += asked.last == passes
        asked.times += asked.last not in (-1, passes)
        asked.last = passes

    def found(self) -> Iterator[Found]:
        for asked in self._asked.values():
            module = asked.model.ref()
            if module is not None and asked.times >= _TIMES and self._is_teacher(asked, module):
                yield self._said(asked)

    def _is_teacher(self, asked: _Asked, module: torch.nn.Module) -> bool:
        """Say whether a model was trained or loaded, never changes while it is asked, and gives a target."""
        taught = self._taught.get(asked.model.key, 0)
        loaded = id(module) in self._filled and not taught and id(module) not in self._meant
        trained = asked.received >= 2 and self._meant.get(id(module), 0) < taught
        values = _values(module)
        still = len(values) == len(asked.values) and all(map(torch.equal, values, asked.values))
        alone = _received(asked.model) == asked.received and not asked.again
        return (
            (loaded or trained)
            and still
            and alone
            and self._check.clock.passes > taught + _TIMES
            and _is_target(asked.spot)
            and feeds_a_pass(asked.spots)
        )

    def _said(self, asked: _Asked) -> Found:
        name = asked.name
        return self._check.say(
            "eval-in-train",
            asked.spot,
            f"{name} gives targets in training mode, and is trained no more",
            f"{', '.join(part or name for part in asked.parts[:3])} behaves as in training here: dropout drops, and "
            f"batch norm takes the batch's statistics. What {name} has learned is not what it answers. Neither "
            "no_grad() nor freezing changes that.",
            f"{name}.eval()  # once, before its answers are used",
            times=asked.times + 1,
            names=(name,),
        )


def _values(module: torch.nn.Module) -> list[torch.Tensor]:
    return [sampled(it) for it in list(module.parameters())[:_MOST]]


def _received(model: Model) -> int:
    return sum(slot.received for slot in model.slots)


def _is_target(spot: Spot) -> bool:
    """Say whether a loss puts something against the result at a line, or takes it away: as it is, or as classes."""
    scope = function_around(spot)
    lines = [node for node in (ast.walk(scope) if scope is not None else ()) if isinstance(node, ast.stmt)]
    names = {bound_at(spot)}
    for line in lines:
        if isinstance(line, ast.Assign) and names & names_read(line.value) and _only_shaped(line.value):
            names |= {it.id for it in line.targets if isinstance(it, ast.Name)}
    for line in lines:
        for node in ast.walk(line) if not blocks_of(line) else ():
            if isinstance(node, ast.Call) and _LOSS.search(ast.unparse(node.func)):
                against = [*node.args[1:], *(word.value for word in node.keywords)]
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _SIZE.search(ast.unparse(line)):
                against = [node.right]
            else:
                continue
            if any(names & names_read(it) for it in against):
                return True
    return False


def _only_shaped(value: ast.expr) -> bool:
    """Say whether a value goes through functions and methods of PyTorch's only, and through no other model."""
    calls = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)]
    return all(isinstance(it, ast.Attribute) and not ast.unparse(it).startswith("self.") for it in calls)
