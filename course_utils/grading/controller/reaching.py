"""What the cells of a notebook reach for besides their task: a look at their syntax trees.

Nothing is run, and nothing is proved: it says where a person should look.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from course_utils.grading.controller import machinery

MAX_LOOKED = 100_000  # characters of all cells together, looked at in half a second; right ones have a tenth of it
TOO_LONG = "more code than is looked at"
COMPUTED = "a computed name"

_WORD = re.compile(r"[^\W\d]\w*")
# `%%time`, `%timeit f(x)`: the code stays. `%matplotlib inline`, `!pip list`, `?f`: the line goes.
_MAGIC = re.compile(r"^([ \t]*)(?:%%?(time|timeit|capture)\b|(%%?)(\w+)|[!?])[^\S\n]?([^\n]*)$", re.MULTILINE)
_MAGICS = frozenset(
    ("matplotlib", "load_ext", "reload_ext", "autoreload", "config", "precision", "pip", "ask", "explain", "audit")
)


@dataclass
class Names:
    """What the cells of one notebook call things: they share a namespace.

    `modules` are the names under which imports stand ("F": "torch.nn.functional"), `classes` those of the notebook's
    own classes, `own` the names with a leading underscore that these classes give to their parts.
    """

    modules: dict[str, str] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Looked:
    """What a cell reaches for, by the names that stand there, none for most; and the names that it binds at its top."""

    reaches: frozenset[str]
    binds: frozenset[str] = frozenset()


def look(sources: Sequence[str]) -> list[Looked]:
    """Look at the cells of one notebook, and return what was found in each. Raises nothing."""
    trees: list[ast.Module | frozenset[str]] = []
    left = MAX_LOOKED
    for source in sources:
        left -= len(source)
        trees.append(_tree(source) if left >= 0 else frozenset({TOO_LONG}))
    names = _names(tree for tree in trees if isinstance(tree, ast.Module))
    return [
        Looked(frozenset(_looked(tree, names)), frozenset(name for part in tree.body for name in _bound(part)))
        if isinstance(tree, ast.Module)
        else Looked(tree)
        for tree in trees
    ]


def _tree(source: str) -> ast.Module | frozenset[str]:
    """Parse a cell, or else its lines that are for Python. Of what is none, return the telling words in it."""
    magics: set[str] = set()

    def without(match: re.Match[str]) -> str:
        indent, timing, percent, magic, rest = match.groups()
        if timing:
            return "" if match[0].lstrip().startswith("%%") else f"{indent}{rest}"
        if percent and magic not in _MAGICS:
            magics.add(f"%{magic}")
        return f"{indent}pass"

    for text in (source, _MAGIC.sub(without, source)):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if magics and text is not source:
            return frozenset(magics | set(_looked(tree, Names())))
        return tree
    words = set(_WORD.findall(unicodedata.normalize("NFKC", source)))
    strong = machinery.CALLS | machinery.BY_NAME | machinery.MODULES
    return frozenset(word for word in words if word in strong or machinery.telling(word)) | magics


def _names(trees: Iterable[ast.Module]) -> Names:
    names = Names()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    names.modules[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom):
                names.modules |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.ClassDef):
                names.classes.add(node.name)
                names.own |= {part for statement in node.body for part in _bound(statement)}
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                names.own.add(node.attr)
    names.own -= machinery.torchs_own()
    return names


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    for target in targets:
        yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _looked(tree: ast.Module, names: Names) -> Iterator[str]:
    """Yield what a tree reaches for."""
    waiting: list[tuple[ast.AST, ast.AST]] = [(tree, tree)]
    while waiting:
        node, parent = waiting.pop()
        waiting += [(child, node) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if not machinery.importable(alias.name))
        elif isinstance(node, ast.ImportFrom):
            module = node.module or "."
            wanted = ((f"{module}.{alias.name}", alias.name) for alias in node.names)
            yield from (path for path, name in wanted if node.level or not machinery.importable(module, name))
        elif isinstance(node, ast.Attribute):
            yield from _attribute(node, node.value, node.attr, isinstance(node.ctx, ast.Load), parent, names)
        elif isinstance(node, ast.Name):
            yield from _name(node, parent, names)
        elif isinstance(node, ast.Call):
            yield from _call(node, names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node.name in machinery.OVERRIDES or (isinstance(parent, ast.ClassDef) and _replaces(node.name)):
                yield node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not isinstance(parent, ast.Expr):
            parts = node.value.split(".") if len(node.value) < 200 else []
            yield from (part for part in parts if machinery.telling(part))
        elif isinstance(node, ast.MatchClass):
            yield from (name for name in node.kwd_attrs if machinery.telling(name) or machinery.private(name))


def _attribute(node: ast.AST, of: ast.expr, name: str, read: bool, parent: ast.AST, names: Names) -> Iterator[str]:
    """Yield what is told by a part of something that is read, or else written: `of`.`name`."""
    own = _is_self(of) or (isinstance(of, ast.Name) and of.id in names.classes) or _is_call_of(of, "super")
    path = _path(of, names)
    if machinery.special(name):
        shown = (
            name == "__class__" and isinstance(parent, ast.Attribute) and parent.attr in ("__name__", "__qualname__")
        )
        if not shown and not _is_call_of(of, "super") and machinery.telling(name):
            yield name
    elif name in machinery.FRAMES or name in machinery.MODULES or _private(name, own, names):
        yield f"{path}.{name}" if path else name
    if path:
        top = path.partition(".")[0]
        if (path in machinery.PARTLY or top in ("torch", "course_utils")) and not machinery.importable(path, name):
            yield f"{path}.{name}"
        elif not read and not path.startswith("torch.backends"):
            yield f"{path}.{name} ="
        elif name == "forward":
            yield f"{path}.forward"
    elif not read and name in machinery.METHODS and not own:
        yield f".{name} ="
    elif (
        isinstance(of, ast.Call)
        and _is_call_of(of, "type")
        and len(of.args) == 1
        and name not in ("__name__", "__qualname__", "__module__")
    ):
        yield f"type(...).{name}"


def _private(name: str, own: bool, names: Names) -> bool:
    its_own = name in names.own or (own and name not in machinery.torchs_own())
    return machinery.private(name) and not its_own


def _name(node: ast.Name, parent: ast.AST, names: Names) -> Iterator[str]:
    passed_on = node.id in machinery.BY_NAME and not (isinstance(parent, ast.Call) and parent.func is node)
    if passed_on or node.id in machinery.CALLS or (machinery.special(node.id) and machinery.telling(node.id)):
        yield node.id
    elif names.modules.get(node.id) in machinery.PARTLY and not isinstance(parent, ast.Attribute):
        yield names.modules[node.id]


def _call(node: ast.Call, names: Names) -> Iterator[str]:
    """Yield what is told by a call that names a part by a text."""
    function = node.func
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if called not in machinery.BY_NAME:
        return
    given = node.args if called in ("attrgetter", "methodcaller") else node.args[1:2]
    for argument in given or [node]:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            read = called in ("getattr", "attrgetter", "methodcaller")
            of = node.args[0] if called in ("getattr", "setattr", "delattr") else argument
            for part in argument.value.split("."):
                yield from _attribute(node, of, part, read, node, names)
        elif called != "methodcaller" or argument is node.args[0]:
            yield f"{called} with {COMPUTED}"


def _replaces(name: str) -> bool:
    return machinery.special(name) and machinery.telling(name)


def _path(node: ast.expr, names: Names) -> str:
    """Return what an expression names of a module ("torch.Tensor"), empty where it names none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in names.modules and node.id not in names.classes:
        return ".".join([names.modules[node.id], *reversed(parts)])
    return ""


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _is_call_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
