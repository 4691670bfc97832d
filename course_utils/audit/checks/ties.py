"""Two parameters that were meant as one: a copy in place of a tie, or a tie undone, and each with steps of its own."""

from __future__ import annotations

import ast
import linecache
import re
import weakref
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from course_utils.audit.book import Model, Slot
from course_utils.audit.check import Check, Found
from course_utils.audit.classes import parts_of_ones_own
from course_utils.audit.events import Pass
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import own
from course_utils.audit.source import tree_of
from course_utils.audit.untied import Undone, undone_in

_MEANT = re.compile(r"\b[Tt](ie[ds]?|ying)(?![a-z])|_t(ie[ds]?|ying)(?![a-z])|\b[Ss]har(e|ed|es|ing)(?![a-z])")
_LAYERS = (nn.Embedding, nn.Linear)
_MOST = 12  # layers of one model are compared with each other


@dataclass(frozen=True)
class _Pair:
    """Two layers of one model with weights that were equal, or in one place, before the first pass."""

    model: weakref.ref[nn.Module]
    names: tuple[str, str]
    weights: tuple[weakref.ref[torch.Tensor], weakref.ref[torch.Tensor]]
    one_place: bool
    file: str


class Ties(Check):
    """Compares the weights of embeddings and linear layers when a model is first trained, and at the end."""

    codes: ClassVar = ("tie-broken",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._pairs: list[_Pair] = []
        self._undone: list[Undone] = []
        self._seen: set[int] = set()

    def pass_begins(self, event: Pass) -> None:
        if event.accumulate:
            for model in list(self.book.models.values()):
                if model.key not in self._seen:
                    self._seen.add(model.key)
                    self._compare(model, event.spot)
                    module = model.ref()
                    if module is not None:
                        self._undone += undone_in(module, event.spot.file if event.spot is not None else "")

    def _compare(self, model: Model, spot: Spot | None) -> None:
        module = model.ref()
        layers = [
            (name, part)
            for name, part in (module.named_modules() if module is not None else ())
            if isinstance(part, _LAYERS) and isinstance(part.weight, nn.Parameter) and part.weight.requires_grad
        ]
        embeddings = [it for it in layers if isinstance(it[1], nn.Embedding)]
        for at, (name, one) in enumerate(layers[-_MOST:] if not embeddings else (embeddings + layers[-_MOST:])):
            others = layers[-_MOST:] if embeddings else layers[-_MOST:][at + 1 :]
            for other_name, other in others if not embeddings or isinstance(one, nn.Embedding) else ():
                if module is None or one is other or one.weight is other.weight or name == other_name:
                    continue
                alike = _alike(one.weight, other.weight)
                if alike:
                    weights = weakref.ref(one.weight), weakref.ref(other.weight)
                    file = spot.file if spot is not None else ""
                    self._pairs.append(
                        _Pair(weakref.ref(module), (name, other_name), weights, alike == "one place", file)
                    )

    def found(self) -> Iterator[Found]:
        yield from self._copied()
        yield from self._bound_anew()

    def _bound_anew(self) -> Iterator[Found]:
        held = self.book.held()
        for undone in self._undone:
            slots = self._trained([it() for it in undone.weights], held)
            if not slots:
                continue
            tied, to = undone.tie.tied, undone.tie.to
            yield self.say(
                "tie-broken",
                undone.line,
                f"{tied} was tied to {to} in line {undone.tie.spot.line}, and is a parameter of its own since",
                "To tie is to give one parameter two names. Whoever binds one of them to a new parameter, or puts a "
                "new layer in its place, unties the two, and from then on each learns for itself.",
                f"self.{tied} = self.{to}  # once more, after what replaced it; or write in place, as nn.init does",
                certain=False,
                about={slot.key for slot in slots},
                names=(tied, to),
            )

    def _trained(self, weights: Sequence[torch.Tensor | None], held: Set[int]) -> list[Slot]:
        """Return what is known of weights, if each is there, held by an optimizer and reached by a pass; or nothing."""
        slots = [self.book.find(it) for it in weights if it is not None]
        known = [it for it in slots if it is not None and it.key in held and it.received]
        return known if len(known) == len(weights) else []

    def _copied(self) -> Iterator[Found]:
        held = self.book.held()
        for pair in self._pairs:
            module, one, other = pair.model(), pair.weights[0](), pair.weights[1]()
            if module is None or one is None or other is None:
                continue
            slots, line = self._trained([one, other], held), _statement(module, pair)
            if line is None or not slots:
                continue
            both = " and ".join(f"{name}.weight" for name in pair.names)
            meant = _says_so(module, line)
            about = {slot.key for slot in slots}
            if pair.one_place and self._is_uneven(one):
                yield self.say(
                    "tie-broken",
                    line,
                    f"{both} are two parameters on one memory: each step of the optimizer moves it twice",
                    "Each of both has a gradient of its own, the half of what the shared weight should get, and a "
                    "moment of its own in the optimizer. A weight that is shared is one parameter with two names.",
                    f"self.{pair.names[1]}.weight = self.{pair.names[0]}.weight  # the parameter itself",
                    certain=False,
                    about=about,
                    names=both.split(" and "),
                )
            elif not pair.one_place and _alike(one, other) is None:
                yield self.say(
                    "tie-broken",
                    line,
                    f"{both} were equal at the start and drift apart: one is a copy of the other, and not tied to it",
                    "This line copies the numbers. From the first step on each learns from its own gradient, so there "
                    "are twice as many parameters, and what one learns does not reach the other.",
                    f"self.{pair.names[1]}.weight = self.{pair.names[0]}.weight  # the parameter itself",
                    level="likely" if meant else "note",
                    certain=False,
                    about=about,
                    names=both.split(" and "),
                )

    def _is_uneven(self, weight: torch.Tensor) -> bool:
        """Say whether two updates of one weight differ from one with both gradients: not so for plain SGD."""
        for trainer in self.book.trainers.values():
            optimizer = trainer.ref()
            for group in optimizer.param_groups if optimizer is not None else ():
                if any(it is weight for it in group["params"]):
                    return not isinstance(optimizer, torch.optim.SGD) or bool(group["weight_decay"])
        return False


def _alike(one: torch.Tensor, other: torch.Tensor) -> str | None:
    """Say whether two weights lie in one place, or have the same numbers, also transposed. Constants count for none."""
    one, other = one.detach(), other.detach()
    if one.dim() != 2 or other.dim() != 2 or one.device != other.device or one.numel() < 4:
        return None
    if one.data_ptr() == other.data_ptr() and one.shape == other.shape:
        return "one place"
    for turned in (other, other.t()):
        if one.shape == turned.shape and bool(one[0, 0] == turned[0, 0]) and torch.equal(one, turned):
            return "equal" if bool((one != one[0, 0]).any()) else None
    return None


def _statement(module: nn.Module, pair: _Pair) -> Spot | None:
    """Return the line that names both weights, in a class of the model or in the file of the loop."""
    texts = [f"{name.rpartition('.')[2]}.weight" for name in pair.names]
    scopes: dict[Any, str] = {node: file for _, node, file in parts_of_ones_own(module)}
    tree = tree_of(pair.file) if pair.file else None
    if tree is not None:
        scopes[tree] = pair.file
    for scope, file in scopes.items():
        for line in _statements(scope):
            if isinstance(line, ast.Assign | ast.Expr) and all(text in ast.unparse(line) for text in texts):
                return Spot(file, line.lineno)
    return None


def _statements(scope: ast.AST) -> Iterator[ast.stmt]:
    for node in own(scope):
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _statements(node)


def _says_so(module: nn.Module, line: Spot) -> bool:
    """Say whether the class around a line, or what stands near it, speaks of tying or sharing."""
    first, last = line.line - 4, line.line + 1
    for _, node, file in parts_of_ones_own(module):
        if file == line.file and node.lineno <= line.line <= (node.end_lineno or 0):
            first, last = min(first, node.lineno - 2), max(last, node.end_lineno or 0)
    text = "".join(linecache.getline(line.file, at) for at in range(max(1, first), last + 1))
    return bool(_MEANT.search(text) or re.search(r"\bTied[A-Z]|[a-z]Tied\b", text))
