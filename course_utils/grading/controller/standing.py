"""What the names in the cells of a notebook stand for: modules, and what hands out parts by a name."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from course_utils.grading.controller import machinery

Walked: TypeAlias = list[tuple[ast.AST, ast.AST]]  # a tree's nodes, each with its parent

_STACK = "contextlib.ExitStack"
MAX_ALIASES = 9  # an alias of an alias, and so on


@dataclass
class Names:
    """What the cells of one notebook call things: they share a namespace.

    `modules` are the names under which imports stand ("F": "torch.nn.functional"), `classes` those of the notebook's
    own classes, `others` those that stand for something else, too, `own` the names that these classes give to their
    parts, `stacks` those that stand for an ExitStack alone. In `odd` notebooks a function that is no method has a
    parameter called `self`.
    """

    modules: dict[str, str] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    stacks: set[str] = field(default_factory=set)
    odd: bool = False
    parts: set[ast.AST] = field(default_factory=set)  # of assignments in the bodies of classes

    def bind(self, name: str, path: str) -> None:
        """Have a name stand for what has this path. Of two the one is kept that is to be followed."""
        if not passed_on(self.modules.get(name, "")):
            self.modules[name] = path


def walked(tree: ast.Module) -> Walked:
    """Return all nodes of a tree, each with the one that it is in, as `ast.walk` comes by them."""
    nodes: Walked = [(tree, tree)]
    for node, _ in nodes:  # the list grows as it is gone through
        nodes += [(child, node) for child in ast.iter_child_nodes(node)]
    return nodes


def names_of(trees: Sequence[Walked]) -> Names:
    """Return what the names in these trees stand for."""
    names = Names()
    given: list[ast.Assign | ast.AnnAssign | ast.NamedExpr] = []
    stored: Counter[str] = Counter()
    entered: list[tuple[str, ast.expr]] = []
    for tree in trees:
        for node, _ in tree:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                given.append(node)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    names.bind(alias.asname or top, alias.name if alias.asname else top)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    wanted = [alias.name] if alias.name != "*" else machinery.handed_out(node.module or "")
                    for name in wanted:
                        names.bind(alias.asname or name, f"{node.module}.{name}")
            elif isinstance(node, ast.Module | ast.FunctionDef | ast.If | ast.Try | ast.With | ast.For):
                functions = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.FunctionDef)]
                taken = [it.arg for part in functions for it in (*part.args.posonlyargs, *part.args.args)]
                names.odd |= "self" in taken or "cls" in taken
            elif isinstance(node, ast.arg):
                stored[node.arg] += 1
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stored[node.id] += 1
            elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
                entered.append((node.optional_vars.id, node.context_expr))
            elif isinstance(node, ast.ClassDef):
                names.classes.add(node.name)
                own = [part for part in node.body if isinstance(part, ast.Assign | ast.AnnAssign)]
                names.parts |= {part for statement in own for part in ast.walk(statement)}
                names.own |= {part for statement in node.body for part in bound(statement)}
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
                names.own.add(node.attr)
    names.others |= set(stored)
    names.classes -= {name for name, path in names.modules.items() if passed_on(path)}
    names.own -= machinery.torchs_own() | machinery.observers_own()
    for _ in range(MAX_ALIASES):
        before = len(names.modules)
        for assignment in given:
            names.modules |= dict(_aliases(assignment, names))
        if len(names.modules) == before:
            break
    stacks = Counter(name for name, of in entered if isinstance(of, ast.Call) and path_of(of.func, names) == _STACK)
    names.stacks |= {name for name, times in stacks.items() if stored[name] == times}
    return names


def _aliases(node: ast.Assign | ast.AnnAssign | ast.NamedExpr, names: Names) -> Iterator[tuple[str, str]]:
    """Yield which names an assignment gives to modules, and to classes and functions that are not free."""
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        path = path_of(node.value, names) if node.value is not None else ""
        if path and isinstance(target, ast.Name) and target.id not in names.modules and passed_on(path):
            yield target.id, path


def passed_on(path: str) -> bool:
    """Say whether what has this path is to be followed, or told of, wherever it goes."""
    return machinery.is_module(path) or path.rpartition(".")[2] in machinery.BY_NAME


def bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    for target in targets:
        yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def path_of(node: ast.expr, names: Names) -> str:
    """Return what an expression names of a module ("torch.Tensor"), empty where it names none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in names.modules and node.id not in names.classes:
        return ".".join([names.modules[node.id], *reversed(parts)])
    return ""


def is_self(node: ast.expr) -> bool:
    """Say whether an expression is what methods call the object that they belong to."""
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def is_call_of(node: ast.expr, name: str) -> bool:
    """Say whether an expression calls what has this name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def used(tree: Walked) -> frozenset[str]:
    """Return the names that a tree reads, and binds nowhere."""
    nodes = [node for node, _ in tree]
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    own = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    return frozenset(read - own - {node.arg for node in nodes if isinstance(node, ast.arg)})
