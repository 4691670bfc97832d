"""What the cells of a notebook reach for besides their task: a look at their syntax trees.

Nothing is run, and nothing is proved: it says where a person should look.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from course_utils.grading.controller import machinery
from course_utils.grading.controller.standing import (
    Names,
    Walked,
    bound,
    is_call_of,
    is_self,
    names_of,
    passed_on,
    path_of,
    used,
    walked,
)

MAX_LOOKED = 100_000  # characters of all cells together, looked at in half a second; right ones have a tenth of it
TOO_LONG = "more code than is looked at"
COMPUTED = "a computed name"

_WORD = re.compile(r"[^\W\d]\w*")
_FIELD = re.compile(r"\{([^{}]*+)\}")  # of a text that is formatted; possessive, as no text is to make it slow
_PART = re.compile(r"(?<=\w\.)\w+")  # of something that a text names
# `%%time`, `%timeit f(x)`: the code stays. `%matplotlib inline`, `!pip list`, `?f`: the line goes.
_MAGIC = re.compile(r"^([ \t]*)(?:%%?(time|timeit|capture)\b|(%%?)(\w+)|[!?])[^\S\n]?([^\n]*)$", re.MULTILINE)
_MAGICS = frozenset(
    ("matplotlib", "load_ext", "reload_ext", "autoreload", "config", "precision", "pip", "ask", "explain", "audit")
)


@dataclass(frozen=True)
class Looked:
    """What a cell reaches for, by the names that stand there, none for most.

    `beside` is by what it takes numbers out of PyTorch's operations, `binds` are the names that it binds at its top,
    `uses` those that it reads and binds nowhere.
    """

    reaches: frozenset[str]
    beside: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()


def look(sources: Sequence[str]) -> list[Looked]:
    """Look at the cells of one notebook, and return what was found in each. Raises nothing."""
    trees: list[ast.Module | frozenset[str]] = []
    left = MAX_LOOKED
    for source in sources:
        left -= len(source)
        trees.append(_tree(source) if left >= 0 else frozenset({TOO_LONG}))
    nodes = [tree if isinstance(tree, frozenset) else walked(tree) for tree in trees]
    names = names_of([tree for tree in nodes if isinstance(tree, list)])
    return [_found(tree, names) if isinstance(tree, list) else Looked(tree) for tree in nodes]


def _found(tree: Walked, names: Names) -> Looked:
    reaches = frozenset(_looked(tree, names))
    top, _ = tree[0]
    binds = frozenset(name for part in ast.iter_child_nodes(top) if isinstance(part, ast.stmt) for name in bound(part))
    return Looked(reaches - machinery.BESIDE, reaches & machinery.BESIDE, binds, used(tree))


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
            return frozenset(magics | set(_looked(walked(tree), Names())))
        return tree
    words = set(_WORD.findall(unicodedata.normalize("NFKC", source)))
    strong = machinery.CALLS | machinery.BY_NAME | machinery.MODULES
    return frozenset(word for word in words if word in strong or machinery.telling(word)) | magics


def _looked(tree: Walked, names: Names) -> Iterator[str]:
    """Yield what a tree reaches for."""
    for node, parent in tree:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if not machinery.importable(alias.name))
        elif isinstance(node, ast.ImportFrom):
            module = node.module or "."
            wanted = [(f"{module}.{alias.name}", alias.name) for alias in node.names]
            yield from (name for _, name in wanted if name in machinery.BESIDE)
            yield from (path for path, name in wanted if node.level or not machinery.importable(module, name))
        elif isinstance(node, ast.alias):
            if _renames(node.asname or "", parent, names):
                yield f"{node.asname} ="
        elif isinstance(node, ast.Attribute):
            yield from _attribute(node, node.value, node.attr, isinstance(node.ctx, ast.Load), parent, names)
        elif isinstance(node, ast.Name):
            yield from _name(node, parent, names)
        elif isinstance(node, ast.Call):
            yield from _call(node, names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            for base in node.bases if isinstance(node, ast.ClassDef) else ():
                yield from (f"a subclass of {path}" for path in _told_bases(base, names))
            if node.name in machinery.OVERRIDES or (isinstance(parent, ast.ClassDef) and _replaces(node.name)):
                yield node.name
            elif not isinstance(parent, ast.ClassDef) and _renames(node.name, parent, names):
                yield f"{node.name} ="
        elif isinstance(node, ast.Constant) and node.value in machinery.SLOTS and node in names.parts:
            continue
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not isinstance(parent, ast.Expr):
            parts = node.value.split(".") if len(node.value) < 200 else []
            parts += [part for field in _fields(node.value) for part in _WORD.findall(field)]
            parts += _PART.findall(node.value)
            yield from (part for part in parts if machinery.telling(part))
        elif isinstance(node, ast.MatchClass):
            yield from (name for name in node.kwd_attrs if machinery.telling(name) or machinery.private(name))


def _fields(text: str) -> Iterator[str]:
    """Yield what a text takes parts of, where it is formatted."""
    return (field for field in _FIELD.findall(text) if "." in field or "[" in field)


def _attribute(node: ast.AST, of: ast.expr, name: str, read: bool, parent: ast.AST, names: Names) -> Iterator[str]:
    """Yield what is told by a part of something that is read, or else written: `of`.`name`."""
    own = (
        (is_self(of) and not names.odd)
        or (isinstance(of, ast.Name) and of.id in names.classes)
        or is_call_of(of, "super")
    )
    path = path_of(of, names)
    if path and isinstance(node, ast.Attribute):
        yield from _value(node, f"{path}.{name}", parent, names)
    if (name in machinery.BESIDE and not own) or path.partition(".")[0] == "numpy":
        yield name if name in machinery.BESIDE else "numpy"
    if machinery.special(name):
        shown = (
            name == "__class__" and isinstance(parent, ast.Attribute) and parent.attr in ("__name__", "__qualname__")
        )
        if not shown and not is_call_of(of, "super") and machinery.telling(name):
            yield name
    elif (
        name in machinery.FRAMES
        or (name in machinery.MODULES | machinery.NODES and name not in names.own)
        or _private(name, own, names)
    ):
        yield f"{path}.{name}" if path else name
    if path:
        top = path.partition(".")[0]
        held = machinery.is_module(path) or top in ("torch", "course_utils")
        if held and not machinery.importable(path, name):
            yield f"{path}.{name}"
        elif not read and not path.startswith("torch.backends"):
            yield f"{path}.{name} ="
        elif name == "forward":
            yield f"{path}.forward"
    elif not read and name in machinery.METHODS and not own:
        yield f".{name} ="
    elif (
        isinstance(of, ast.Call)
        and is_call_of(of, "type")
        and len(of.args) == 1
        and name not in ("__name__", "__qualname__", "__module__")
    ):
        yield f"type(...).{name}"


def _private(name: str, own: bool, names: Names) -> bool:
    its_own = name in names.own or (own and name not in machinery.torchs_own())
    return machinery.private(name) and not its_own


def _name(node: ast.Name, parent: ast.AST, names: Names) -> Iterator[str]:
    called = isinstance(parent, ast.Call) and (parent.func is node or _undoes(parent, names))
    given_on = node.id in machinery.BY_NAME and not called
    if given_on or node.id in machinery.CALLS or (machinery.special(node.id) and machinery.telling(node.id)):
        yield node.id
    elif not isinstance(node.ctx, ast.Load) and _renames(node.id, parent, names):
        yield f"{node.id} ="
    elif node.id in names.modules and node.id not in names.classes and isinstance(node.ctx, ast.Load):
        yield from _value(node, names.modules[node.id], parent, names)
        if names.modules[node.id].startswith("numpy."):
            yield "numpy"


def _value(node: ast.expr, path: str, parent: ast.AST, names: Names) -> Iterator[str]:
    """Yield what is told by a module, or a function that finds parts by names, where it is passed on as a value."""
    if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node):
        return
    named = isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) and parent.value is node
    if (
        machinery.is_module(path)
        and path not in machinery.PARTLY
        and isinstance(node, ast.Name)
        and node.id in names.others
    ):
        return
    if path in machinery.PARTLY or (passed_on(path) and not (named and machinery.is_module(path))):
        known = machinery.importable(path) and path not in machinery.PARTLY and machinery.is_module(path)
        yield f"{path} passed on" if known else path


def _call(node: ast.Call, names: Names) -> Iterator[str]:
    """Yield what is told by a call that names a part by a text."""
    if _undoes(node, names):
        node = ast.Call(node.args[0], node.args[1:], [])
    function = node.func
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    called = path_of(function, names).rpartition(".")[2] or called
    if called == "type" and len(node.args) == 3:
        yield from (f"a subclass of {path}" for path in _told_bases(node.args[1], names))
        if _puts_names_together(node.args[2]):
            yield f"type with {COMPUTED}"
    if called == "super" and node.args and not _own_super(node, names):
        yield "super of another's"
    if called == "wraps":  # it copies what else it is given names of
        yield from ([f"wraps with {COMPUTED}"] if len(node.args) > 1 or node.keywords else [])
        return
    if called not in machinery.BY_NAME or (isinstance(function, ast.Attribute) and is_call_of(function.value, "super")):
        return
    of_object = isinstance(function, ast.Attribute) and not path_of(function.value, names)
    unbound = called.startswith("__") and not (of_object and len(node.args) < 2 + (called == "__setattr__"))
    given = node.args[unbound : unbound + 1] if called.startswith("__") else node.args
    given = given if called in machinery.FIRST else node.args[1:2]
    for argument in given or [node]:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            read = called in ("getattr", "attrgetter", "methodcaller", "__getattr__")
            of = argument if called in machinery.FIRST else node.args[0]
            for part in argument.value.split("."):
                yield from _attribute(node, of, part, read, node, names)
        elif (called != "methodcaller" or argument is node.args[0]) and not _begins_freely(argument, node, names):
            yield f"{called} with {COMPUTED}"


def _undoes(node: ast.Call, names: Names) -> bool:
    """Say whether a call has a stack of what is to be undone set a part of something in the end, by a name that stands
    there: `stack.callback(setattr, module, "training", True)`.
    """
    function = node.func
    return (
        isinstance(function, ast.Attribute)
        and (function.attr == "callback" and isinstance(function.value, ast.Name) and function.value.id in names.stacks)
        and len(node.args) > 2
        and isinstance(node.args[0], ast.Name)
        and isinstance(node.args[2], ast.Constant)
    )


def _begins_freely(argument: ast.expr, node: ast.Call, names: Names) -> bool:
    """Say whether a name of a part is put together from a beginning that none that is told has: `f"weight{number}"`."""
    first = argument.values[0] if isinstance(argument, ast.JoinedStr) and argument.values else None
    known = isinstance(first, ast.Constant) and machinery.begins_none(str(first.value))
    return known and argument is not node.args[0] and not path_of(node.args[0], names)


def _own_super(node: ast.Call, names: Names) -> bool:
    first = node.args[0]
    return isinstance(first, ast.Name) and first.id in names.classes and all(map(is_self, node.args[1:]))


def _puts_names_together(given: ast.expr) -> bool:
    """Say whether the parts of a class are called by what is only computed there."""
    keys = given.keys if isinstance(given, ast.Dict) else []
    return any(not isinstance(key, ast.Constant | ast.Name) for key in keys)


def _told_bases(bases: ast.AST, names: Names) -> Iterator[str]:
    """Yield the classes of tensors among these bases, and those that write where a name of a subclass says."""
    parts = bases.elts if isinstance(bases, ast.Tuple | ast.List) else [bases]
    for part in parts:
        path = path_of(part, names) if isinstance(part, ast.expr) else ""
        if path and (machinery.is_tensor(path) or path.startswith("contextlib.redirect_")):
            yield path


def _renames(name: str, parent: ast.AST, names: Names) -> bool:
    """Say whether a name like `__name__` is bound, and not as a part of a class: code is told by such names."""
    return machinery.special(name) and name not in machinery.TOLD and parent not in names.parts


def _replaces(name: str) -> bool:
    return machinery.special(name) and machinery.telling(name)
