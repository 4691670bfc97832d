"""Weight decay that only biases and gains of norms get, while no matrix does: two groups the wrong way round."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import nn

from course_utils.audit.book import Slot, listed
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Step
from course_utils.audit.lines import Spot
from course_utils.audit.source import assigned, filled, function_around, tree_of

_MANY = 2  # vectors with decay, and matrices without
_GAINS = ("Norm",)  # what a module is named whose vectors are a gain and a bias


class Decaying(Check):
    """Which parameters of an optimizer weight decay pulls to 0."""

    codes: ClassVar = ("decay-on-vectors",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._looked: dict[int, tuple[list[Slot], float] | None] = {}

    def step_begins(self, event: Step) -> None:
        if event.trainer.key not in self._looked:
            optimizer = event.trainer.ref()
            self._looked[event.trainer.key] = self._decayed(optimizer) if optimizer is not None else None

    def _decayed(self, optimizer: torch.optim.Optimizer) -> tuple[list[Slot], float] | None:
        """Return the biases and gains that alone have decay, and how much of it; None where it is not so."""
        kinds = self._kinds()
        decayed: list[Slot] = []
        most, matrices = 0.0, 0
        for group in optimizer.param_groups:
            decay = group.get("weight_decay")
            if not isinstance(decay, int | float):
                return None
            for parameter in group["params"]:
                if not parameter.requires_grad:
                    continue
                kind = kinds.get(id(parameter), "")
                if decay > 0 and parameter.dim() <= 1 and kind in ("bias", "gain"):
                    decayed.append(self.book.slot(parameter))
                    most = max(most, float(decay))
                elif decay > 0:
                    return None
                else:
                    matrices += kind == "matrix"
        return (decayed, most) if min(len(decayed), matrices) >= _MANY else None

    def _kinds(self) -> dict[int, str]:
        """Return what the parameters of all models are, by their ids: biases, gains of norms, matrices of layers."""
        found: dict[int, str] = {}
        for model in self.book.models.values():
            module = model.ref()
            for part in module.modules() if module is not None else ():
                for name, parameter in part.named_parameters(recurse=False):
                    if any(it in type(part).__name__ for it in _GAINS):
                        found[id(parameter)] = "gain"
                    elif "bias" in name:
                        found[id(parameter)] = "bias"
                    elif parameter.dim() >= 2 and not isinstance(part, nn.Embedding):
                        found[id(parameter)] = "matrix"
        return found

    def found(self) -> Iterator[Found]:
        for trainer in self.book.trainers.values():
            seen = self._looked.get(trainer.key)
            if seen is None:
                continue
            slots, decay = seen
            yield self.say(
                "decay-on-vectors",
                _sorted_at(trainer.made) or trainer.made or trainer.spot,
                f"weight decay of {decay:g} pulls on biases and norms only: {listed(slots)}; no matrix has any",
                "Decay is there to keep matrices small. A gain of a norm that is pulled to 0 scales its layer's signal "
                "away, and a bias has little to overfit with. The groups look swapped.",
                "(decay if p.ndim >= 2 else no_decay).append(p)  # matrices with decay, biases and gains without",
                certain=False,
                times=trainer.steps,
                about={trainer.key, *(slot.key for slot in slots)},
                names=[slot.name for slot in slots],
            )


def _sorted_at(made: Spot | None) -> Spot | None:
    """Return the line that puts parameters into the group with decay, as the function that makes the groups says."""
    if made is None:
        return None
    for scope in dict.fromkeys((function_around(made), tree_of(made.file))):
        groups = [it for it in map(_group, ast.walk(scope) if scope is not None else ()) if it is not None]
        named = [given for given, decay in groups if decay is not None and not _is_zero(decay)]
        silent = [given for given, decay in groups if decay is None]
        for given in (named or silent)[:1]:
            spot = Spot(made.file, given.lineno)
            held = given.args[0] if isinstance(given, ast.Call) and len(given.args) == 1 else given
            name = ast.unparse(held)
            written = isinstance(held, ast.Name | ast.Attribute)
            return (filled(spot, name) or assigned(spot, name) if written else None) or spot
    return None


def _group(node: ast.AST) -> tuple[ast.expr, ast.expr | None] | None:
    """Return the parameters of a group that is written out, and its decay if it names one; None for anything else."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        keys = {it.value: value for it, value in pairs if isinstance(it, ast.Constant)}
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "dict":
        keys = {it.arg: it.value for it in node.keywords}
    else:
        return None
    return (keys["params"], keys.get("weight_decay")) if "params" in keys else None


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value
