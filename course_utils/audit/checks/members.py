"""Members of a list that are one and the same module, where the source asks for several."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from torch import nn

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call
from course_utils.audit.expressions import returned_by
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts, ran
from course_utils.explain.source import called, names_of

_LISTS = ("ModuleList", "Sequential", "ParameterList", "ModuleDict")
_COPIES = ("clones", "clone", "get_clones", "_get_clones", "copies", "make_clones")


class Members(Check):
    """`[Block()] * 3` and its kin in what ran, where a model has one module at several places."""

    codes: ClassVar = ("one-member",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._seen: set[Spot] = set()
        self._kinds: set[str] = set()  # of modules that stand at several places of a model
        self._called: set[str] = set()
        self._looked: set[int] = set()

    def called(self, event: Call) -> None:
        if len(self._seen) < 50:
            self._seen.update(event.spots)
        if event.model.key not in self._looked and len(self._looked) < 50:
            self._looked.add(event.model.key)
            self._called.add(type(event.module).__name__)
            self._kinds.update(type(part).__name__ for part in _at_several_places(event.module))

    def found(self) -> Iterator[Found]:
        told: set[Spot] = set()
        for file, scope in ran(sorted(self._seen)):
            for node in parts(scope):
                spot = Spot(file, getattr(node, "lineno", 0))
                known = self._kinds | (set() if _is_registered(scope, node) else self._called)
                made = next((called(it) for it in _made_once(node) if _classes_of(it, spot) & known), "")
                fix = f"[{made}(...) for _ in range(k)]  # calls it k times"
                if not made and self._kinds and isinstance(scope, ast.FunctionDef) and scope.name in _COPIES:
                    made, fix = _same_again(node), "[copy.deepcopy(module) for _ in range(k)]"
                if made and spot not in told:
                    told.add(spot)
                    yield self._one(spot, made, fix)

    def _one(self, spot: Spot, made: str, fix: str) -> Found:
        return self.say(
            "one-member",
            spot,
            f"all members that this line gives are one and the same: {made}",
            "The module is made once, and the line puts that one at several places. All of them have the same "
            "parameters: there are no more numbers to learn than in one, and for the same input all give the same.",
            fix,
            certain=False,
        )


def _at_several_places(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the parts with parameters that a list, a dict or a Sequential of a model has more than once."""
    for part in module.modules():
        if isinstance(part, nn.ModuleList | nn.ModuleDict | nn.Sequential):
            inside = [it for it in part._modules.values() if it is not None]
            for at, one in enumerate(inside):
                again = any(one is it for it in inside[at + 1 :])
                if again and next(one.parameters(), None) is not None:
                    yield one


def _made_once(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the calls that make one module for several places.

    A module that has a name, and is then put at several places, may be meant to be shared.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(side, ast.List | ast.Tuple) and not (isinstance(other, ast.Constant) and other.value == 1):
                yield from side.elts
    elif isinstance(node, ast.Call) and called(node) == "fromkeys" and len(node.args) == 2:
        yield node.args[1]
    elif isinstance(node, ast.Call) and called(node) == "repeat" and node.args:
        yield node.args[0]


def _same_again(node: ast.AST) -> str:
    """Return the name that a comprehension gives again and again, whatever it goes through."""
    if not isinstance(node, ast.ListComp | ast.GeneratorExp) or not isinstance(node.elt, ast.Name):
        return ""
    own = {name for it in node.generators for name in names_of(it.target)}
    return "" if node.elt.id in own else node.elt.id


def _classes_of(node: ast.expr, spot: Spot) -> set[str]:
    """Return the classes that a call makes an object of: by their name, or by what a function of the file returns."""
    if not isinstance(node, ast.Call):
        return set()
    made = [node, *(it for it in returned_by(spot, node) if isinstance(it, ast.Call))]
    return {name for it in made if (name := called(it))[:1].isupper()}


def _is_registered(scope: ast.AST, node: ast.AST) -> bool:
    """Say whether an expression stands within a module's list: then the model tells what became of it."""
    return any(
        isinstance(part, ast.Call) and called(part) in _LISTS and any(it is node for it in ast.walk(part))
        for part in parts(scope)
    )
