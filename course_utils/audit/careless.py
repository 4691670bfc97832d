"""What drops numbers in evaluation as well: dropout that was not told the mode, or that eval() does not reach."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torch import nn

from course_utils.audit.classes import assigned_anywhere, parts_of_ones_own
from course_utils.audit.expressions import assigned_value
from course_utils.audit.lines import Spot
from course_utils.audit.loops import loops_at
from course_utils.audit.mentions import names_read, own, ran
from course_utils.audit.modes import depends_on_mode
from course_utils.audit.shuffles import own_lines
from course_utils.audit.source import around, blocks_of, statement
from course_utils.explain.source import called, names_of

# Functions of torch.nn.functional that drop unless they are told not to, and at which place they are told.
_TOLD = {"dropout": 2, "dropout1d": 2, "dropout2d": 2, "dropout3d": 2}
_FROM = ("F", "functional", "nn.functional", "torch.nn.functional")
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_COLLECTS = frozenset({"append", "extend", "add", "add_", "update", "stack", "cat", "concat", "insert", "put"})
_ATTENTION = "scaled_dot_product_attention"

FUNCTION, ATTENTION, MADE, UNREACHED = "function", "attention", "made", "unreached"


def careless_calls(module: nn.Module, spots: Iterable[Spot]) -> Iterator[tuple[Spot, str]]:
    """Yield the lines that drop whatever the mode, in what ran for a call of a model, each with its kind."""
    owners = {(file, node.lineno) for _, node, file in parts_of_ones_own(module)}
    for file, scope in ran(spots):
        if not isinstance(scope, ast.FunctionDef) or scope.name == "__init__":
            continue
        for line in own(scope):
            outside = [node for node in around(Spot(file, line.lineno)) if node is not line]
            owner = next((node for node in outside if isinstance(node, ast.ClassDef)), None)
            asks = any(isinstance(node, ast.If) and "training" in ast.unparse(node.test) for node in outside)
            if asks or (owner is not None and (file, owner.lineno) not in owners):
                continue
            for call in _calls_of(line):
                kind = _kind(call, Spot(file, line.lineno))
                if kind:
                    yield Spot(file, call.func.end_lineno or call.lineno), kind


def _calls_of(line: ast.stmt) -> Iterator[ast.Call]:
    yield from (part for part in _parts_of(line) if isinstance(part, ast.Call))


def _kind(call: ast.Call, spot: Spot) -> str:
    name = called(call)
    keys = {word.arg: word.value for word in call.keywords}
    if None in keys:
        return ""  # what a dictionary may tell it
    if isinstance(call.func, ast.Call):
        return MADE if _is_dropout(call.func) else ""
    if isinstance(call.func, ast.Name) and _is_dropout(assigned_value(spot, name)) and _is_local(spot, name):
        return MADE
    if not isinstance(call.func, ast.Attribute):
        return ""
    if name == _ATTENTION:
        return ATTENTION if _drops(keys.get("dropout_p"), spot) else ""
    if name not in _TOLD or ast.unparse(call.func.value) not in _FROM:
        return ""
    told = "training" in keys or len(call.args) > _TOLD[name]
    given = call.args[1] if len(call.args) > 1 else keys.get("p")
    return FUNCTION if not told and (given is None or _drops(given, spot)) else ""


def _drops(value: ast.expr | None, spot: Spot) -> bool:
    """Say whether a probability is above zero whatever the mode, as its expression says."""
    if isinstance(value, ast.Name):
        value = assigned_value(spot, value.id) or value
    if isinstance(value, ast.Constant):
        return isinstance(value.value, float) and value.value > 0
    return isinstance(value, ast.Attribute) and not ast.unparse(value).endswith("training")


def _is_dropout(value: ast.expr | None) -> bool:
    name = called(value)
    return isinstance(value, ast.Call) and "Dropout" in name and name[0].isupper()


def _is_local(spot: Spot, name: str) -> bool:
    """Say whether the function around a line binds a name itself: a module of the file may be put to sleep."""
    scope = next((node for node in reversed(around(spot)) if isinstance(node, ast.FunctionDef)), None)
    bound = [part for part in ast.walk(scope) if isinstance(part, ast.Name) and part.id == name] if scope else []
    return any(isinstance(part.ctx, ast.Store) for part in bound)


def unreached(module: nn.Module) -> Iterator[tuple[Spot, str]]:
    """Yield the lines that keep parts in plain lists or dicts: parts in training mode, of a model in evaluation."""
    for part in module.modules():
        for name, value in vars(part).items():
            inside = list(value.values()) if isinstance(value, dict) else value
            if name.startswith("_") or not isinstance(inside, list | tuple):
                continue
            modules = [one for it in inside if isinstance(it, nn.Module) for one in it.modules()]
            spot = assigned_anywhere(type(part), f"self.{name}")
            if spot is not None and any(it.training and depends_on_mode(it) for it in modules):
                yield spot, UNREACHED


def are_pooled(places: Iterable[Spot]) -> bool:
    """Say whether what the calls of a line give is collected, or added up: as of passes that are to vary.

    The rest of `places` are the callers' lines. A loop alone, which shows one result after the other, pools nothing.
    """
    for spot in places:
        line, loops = statement(spot), loops_at(spot)
        if line is None or any(isinstance(it, _COMPREHENSIONS) for it in _parts_of(line)) or _collects(line, set()):
            return True
        lines = [it for it in own_lines(loops[-1]) if it.lineno >= line.lineno] if loops else []
        given = set(_bound(line))
        for it in lines:
            if _collects(it, given):
                return True
            if names_read(it) & given:
                given |= set(_bound(it))
    return False


def _collects(line: ast.stmt, names: set[str]) -> bool:
    """Say whether a line adds up, collects or writes to places what it computes, of some names if any are given."""
    if names and not names_read(line) & names:
        return False
    places = isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Subscript)
    return places or isinstance(line, ast.AugAssign) or any(called(it) in _COLLECTS for it in _parts_of(line))


def _bound(line: ast.stmt) -> Iterator[str]:
    for target in line.targets if isinstance(line, ast.Assign) else ():
        yield from names_of(target)


def _parts_of(line: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts of a statement, of a block those of its head."""
    inner = set(map(id, blocks_of(line)))
    for root in ast.iter_child_nodes(line):
        if id(root) not in inner:
            yield from ast.walk(root)


WORDS = {
    FUNCTION: (
        "dropout goes on in evaluation: F.dropout was not told the mode",
        "F.dropout drops by default. Unlike nn.Dropout it does not know whether its model is in evaluation.",
        "F.dropout(x, p, training=self.training)",
    ),
    ATTENTION: (
        "attention goes on dropping in evaluation: dropout_p does not depend on the mode",
        "scaled_dot_product_attention is a function: it drops whenever dropout_p is above 0, and does not know "
        "whether its model is in evaluation.",
        "dropout_p=self.dropout if self.training else 0.0",
    ),
    MADE: (
        "a dropout layer is made for each call, and is in training mode whenever the model is not",
        "A new module begins in training mode. eval() of the model was called before this one was made, and reaches "
        "only what the model has as its parts.",
        "self.drop = nn.Dropout(p)  # in __init__, and self.drop(x) here",
    ),
    UNREACHED: (
        "parts in a plain list stay in training mode when the model is put into evaluation",
        "train() and eval() reach what the model has as its parts. A list or dict of Python's is none, so what drops "
        "in training drops in evaluation, too.",
        "nn.ModuleList([...])  # or nn.ModuleDict: registers them",
    ),
}
