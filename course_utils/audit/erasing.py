"""Lines that write by chance into a whole store: a mask of zeros, or noise, in what the next round reads again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from course_utils.audit.inplace import Write, methods_called
from course_utils.audit.mentions import arguments, functions_named, parameters
from course_utils.audit.source import calls, taken_apart, text_at
from course_utils.explain.source import called

_CHANCE = re.compile(
    r"^(rand\w*|random|bernoulli_?|normal_?|standard_normal|uniform|choice|integers|multinomial|permutation|dropout\w*)$"
)
# What noise is added to, where these are its name or that of the function, is data; anything else may be a state.
_STIRRED = re.compile(r"nois|aug|jitter|perturb|corrupt|\bdata|inputs?\b|features?\b|images?\b|imgs?\b|train", re.I)
_VIEWS = frozenset({"view", "reshape", "squeeze", "unsqueeze", "detach", "t", "transpose", "permute", "flatten"})
_WRITES = frozenset({"mul_", "add_", "sub_", "masked_fill_", "index_fill_", "masked_scatter_"})
_FILLS = r"\.(copy_|zero_|fill_|normal_|uniform_|random_|set_|bernoulli_)\(|\[(:|\.\.\.)\] ="
_DEEP = 3


def chance_write(scope: ast.AST, root: str, file: str, known: Mapping[str, Any]) -> Write | None:
    """Return the line that writes by chance into what `root` stands for: in a loop, or in a function that it calls.

    None where any line around it fills the store anew, or puts back what was there.
    """
    text = ast.unparse(scope)
    if re.search(rf"(?<![\w.]){re.escape(root)}({_FILLS})|out={re.escape(root)}\b", text):
        return None
    return next(_found(scope, root, file, known, _DEEP), None)


def _found(scope: ast.AST, root: str, file: str, known: Mapping[str, Any], deep: int) -> Iterator[Write]:
    nodes = list(ast.walk(scope))
    names = _aliases(nodes, root)
    chance = by_chance(nodes)
    computed = _computed(nodes) - chance - names
    masks = {
        ast.unparse(to) for it in nodes if isinstance(it, ast.Assign) and _is_mask(it.value, set())
        for to in it.targets
    }  # fmt: skip
    if not _puts_back(nodes, names):
        for node in nodes:
            name = _written(node, chance, computed)
            if name in names and (_erases(node, masks) or _STIRRED.search(f"{name} {getattr(scope, 'name', '')}")):
                yield Write(node.lineno, name, frozenset({root}), file)  # type: ignore[attr-defined]
    for node in nodes if deep else ():
        if not isinstance(node, ast.Call):
            continue
        value = known.get(ast.unparse(node.func))
        if _drops_in_place(value) and node.args and _viewed(node.args[0]) in names:
            made = [it for it in calls(file, r"Dropout\w*$") if "inplace=True" in text_at(it)]
            yield Write(made[0].line if made else node.lineno, _viewed(node.args[0]), frozenset({root}), file)
        for function, place, parts in _called(node, value, file):
            for inner in _handed_in(node, function, names):
                yield from _found(function, inner, place, {**known, **parts}, deep - 1)


def _aliases(nodes: list[ast.AST], root: str) -> set[str]:
    """Return the names that share the memory of a root, and are never bound to anything else."""
    found = {root}
    others: set[str] = set()
    for _ in range(2):
        for node in nodes:
            for to in node.targets if isinstance(node, ast.Assign) else ():
                for target, value in zip(taken_apart(to), taken_apart(node.value), strict=False):  # type: ignore[attr-defined]
                    if isinstance(target, ast.Name):
                        shares = _viewed(value) in found
                        (found if shares else others).add(target.id)
    return found - others | ({root} if root not in others else set())


def _viewed(node: ast.expr) -> str:
    """Return the text of what an expression is a view of, or itself."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            node = node.func.value
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant | ast.Name):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if not all(isinstance(it, ast.Slice | ast.Constant) for it in parts):
                return ""
            node = node.value
        elif isinstance(node, ast.Attribute) and node.attr in ("data", "T"):
            node = node.value
        else:
            return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else ""


def by_chance(nodes: list[ast.AST]) -> set[str]:
    """Return the names that hold random numbers, or are computed from some."""
    found: set[str] = set()
    for _ in range(2):
        for node in nodes:
            if isinstance(node, ast.Assign) and has_chance(node.value, found):
                found |= {it.id for to in node.targets for it in taken_apart(to) if isinstance(it, ast.Name)}
    return found


def has_chance(node: ast.AST, chance: set[str]) -> bool:
    return any(
        (isinstance(it, ast.Call) and _CHANCE.match(called(it)) is not None)
        or (isinstance(it, ast.Name) and it.id in chance)
        for it in ast.walk(node)
    )


def _erases(node: ast.AST, masks: set[str]) -> bool:
    """Say whether a write takes values away, by a mask or by a zero: noise may move on what is meant to walk."""
    zero = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and not node.value.value
    return zero or _is_mask(node, masks)


def _is_mask(node: ast.AST, masks: set[str]) -> bool:
    return any(
        isinstance(it, ast.Compare)
        or (isinstance(it, ast.Call) and re.search(r"bernoulli|dropout", called(it)) is not None)
        or (isinstance(it, ast.Name) and it.id in masks)
        for it in ast.walk(node)
    )


def _written(node: ast.AST, chance: set[str], computed: set[str]) -> str:
    """Return the text of what a statement or call writes into by chance; "" where it does no such thing."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        if has_chance(target.slice, chance) and _is_plain(node.value, computed):
            return _owner(target)
    elif isinstance(node, ast.AugAssign):
        index = node.target.slice if isinstance(node.target, ast.Subscript) else ast.Constant(0)
        if (has_chance(node.value, chance) or has_chance(index, chance)) and _is_plain(node.value, computed):
            return _owner(node.target)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        given = [*node.args, *(it.value for it in node.keywords)]
        if called(node) in _WRITES and any(has_chance(it, chance) for it in given):
            return _owner(node.func.value) if all(_is_plain(it, computed) for it in given) else ""
        inside = [it for it in node.keywords if it.arg == "inplace" and ast.unparse(it.value) == "True"]
        if inside and called(node).endswith("dropout") and node.args:
            return _owner(node.args[0])
        if called(node).endswith("dropout_") and node.args:
            return _owner(node.args[0])
    return ""


def _owner(node: ast.expr) -> str:
    """Return the text of what an index belongs to: a store may be an entry of a dictionary."""
    while isinstance(node, ast.Subscript) and not (
        isinstance(node.slice, ast.Constant) and type(node.slice.value) is str
    ):
        node = node.value
    return _viewed(node)


def _computed(nodes: list[ast.AST]) -> set[str]:
    """Return the names that are bound to anything but a constant."""
    lines = [it for it in nodes if isinstance(it, ast.Assign) and not isinstance(it.value, ast.Constant)]
    return {it.id for line in lines for to in line.targets for it in taken_apart(to) if isinstance(it, ast.Name)}


def _is_plain(node: ast.expr, computed: set[str]) -> bool:
    """Say whether a value is made of numbers and chance, and of nothing that a model or a gradient gave."""
    return not any(
        (isinstance(it, ast.Name) and it.id in computed) or (isinstance(it, ast.Attribute) and it.attr == "grad")
        for it in ast.walk(node)
    )


def _puts_back(nodes: list[ast.AST], names: set[str]) -> bool:
    """Say whether a line gives rows of a store values that a name holds: what was there before, or new rows."""
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            value = node.value
            if _owner(node.targets[0]) in names and isinstance(value, ast.Name | ast.Subscript):
                return True
    return False


def _drops_in_place(value: Any) -> bool:
    """Say whether a module begins with a dropout that writes into its input."""
    while isinstance(value, nn.Sequential) and len(value):
        value = value[0]
    return isinstance(value, _DropoutNd) and value.inplace


def _called(call: ast.Call, value: Any, file: str) -> Iterator[tuple[ast.FunctionDef, str, dict[str, Any]]]:
    """Yield the functions that a call runs, as far as is known, each with its file and the parts of its object."""
    if value is None or hasattr(value, "__code__"):
        for function in functions_named(file, called(call)):
            yield function, file, {}
        return
    for part in value.modules() if isinstance(value, nn.Module) else [value]:
        inner = part._modules if isinstance(part, nn.Module) else {}
        for function, place in methods_called(part):
            yield function, place, {f"self.{name}": it for name, it in inner.items()}


def _handed_in(call: ast.Call, function: ast.FunctionDef, names: set[str]) -> set[str]:
    """Return what some names are called in a function that is given them, or their owner, or that reads them itself."""
    own, pairs = parameters(function), list(arguments(function, call))
    found = set()
    for name in names:
        for parameter, value in pairs:
            text = _viewed(value)
            if text and (name == text or name.startswith((f"{text}.", f"{text}["))):
                found.add(parameter + name[len(text) :])
        base = re.split(r"[.\[]", name)[0]
        bound = {it.id for it in ast.walk(function) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)}
        if base not in own and base not in bound and base != "self":
            found.add(name)
    return found
