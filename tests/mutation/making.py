"""Every mutant of an exercise's right answers, each with a name that stays."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from course_utils.checks.judges.lesson_11_build_your_own import ORDER
from tests.mutation.engines import stage_of
from tests.mutation.expressions import of_expressions
from tests.mutation.sources import ANSWER, Program, programs
from tests.mutation.statements import of_statement, swaps
from tests.mutation.words import of_words

# A changed expression is named by what is around it where it is shorter than this, and cut where it is longer.
SHORTEST, LONGEST = 14, 60
_UNTOUCHED = ("annotation", "returns", "decorator_list", "bases")


@dataclass(frozen=True)
class Mutant:
    """A right answer with one thing changed, under a key that names the function and the change."""

    exercise: str
    key: str
    source: str


@dataclass(frozen=True)
class _Change:
    """One field of a program's tree with another value. `shown` is the node that it is named by."""

    where: tuple[str, ...]
    node: ast.AST
    field: str
    value: object
    shown: ast.AST | str
    instead: ast.AST | str | None = None  # what stands there then, where it is not `shown` itself, changed inside


@dataclass(frozen=True)
class _Place:
    """Where a walk through a program is."""

    where: tuple[str, ...] = ()
    shown: ast.AST | None = None
    names: tuple[str, ...] = ()


def mutants(exercise: str) -> list[Mutant]:
    """Return the mutants of all right answers to an exercise. What several answers share is changed once.

    Of the engines of lesson 11, those in what is about this stage.
    """
    if exercise not in ORDER:
        return mutants_of(programs(exercise))
    return [replace(it, exercise=exercise) for it in _of_engines() if stage_of(it.key) == exercise]


@cache
def _of_engines() -> list[Mutant]:
    """Return the mutants of whole engines, which take half a minute to make."""
    return mutants_of(programs(ORDER[0]))


def mutants_of(right: list[Program]) -> list[Mutant]:
    """Return the mutants of right answers to one exercise."""
    found: list[Mutant] = []
    numbers: Counter[str] = Counter()
    seen = {"\n".join(map(ast.unparse, program.tree.body)) for program in right}
    shared: set[str] = set()
    for program in right:
        for part in _parts(program):
            text = ast.unparse(part)
            if text not in shared:
                shared.add(text)
                found += _of_part(program, part, seen, numbers)
    return found


def _parts(program: Program) -> Iterator[ast.stmt]:
    """Yield the parts of a program that are changed: functions, classes, values; an answer if more than a name."""
    for part in program.tree.body:
        named = isinstance(part, ast.Assign) and isinstance(part.value, ast.Name)
        if not isinstance(part, ast.Import | ast.ImportFrom) and not named:
            yield part


def _of_part(program: Program, part: ast.stmt, seen: set[str], numbers: Counter[str]) -> Iterator[Mutant]:
    module = ast.Module([part], [])
    before, after = _around(program.tree, part)
    for change in list(_changes(module, _Place())):
        if change.node is module:
            continue  # a definition as a whole: nothing would be tried
        where = ".".join(change.where).replace(ANSWER, f"RIGHT[{program.number}]")
        old = _text(change.shown)
        held = getattr(change.node, change.field)
        setattr(change.node, change.field, change.value)
        source = before + ast.unparse(ast.fix_missing_locations(part)) + after
        new = _text(change.shown if change.instead is None else change.instead)
        setattr(change.node, change.field, held)
        if source in seen or not _compiles(source):
            continue
        seen.add(source)
        key = f"{where}: {' -> '.join(_cut(old, new))}"
        numbers[key] += 1
        yield Mutant(program.exercise, f"{key} #{numbers[key]}" if numbers[key] > 1 else key, source)


def _around(tree: ast.Module, part: ast.stmt) -> tuple[str, str]:
    place = tree.body.index(part)
    texts = [ast.unparse(it) for it in tree.body]
    return "".join(f"{it}\n" for it in texts[:place]), "".join(f"\n{it}" for it in texts[place + 1 :])


def _changes(node: ast.AST, place: _Place) -> Iterator[_Change]:
    """Yield all changes below a node."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        place = _Place(place.where, place.shown, _locals(node))
    for field, held in ast.iter_fields(node):
        if field in _UNTOUCHED:
            continue
        for index, child in enumerate(held if isinstance(held, list) else [held]):
            if isinstance(child, ast.AST):
                inner = _inside(place, node, field, index, child)
                yield from _of_child(node, field, index, child, inner)
                yield from _changes(child, inner)
        if isinstance(held, list) and held and isinstance(held[0], ast.stmt):
            for index in swaps(held):
                pair = held[index : index + 2]
                value = [*held[:index], *reversed(pair), *held[index + 2 :]]
                yield _Change(place.where, node, field, value, " | ".join(map(_text, pair)), "(swapped)")


def _inside(place: _Place, node: ast.AST, field: str, index: int, child: ast.AST) -> _Place:
    where = place.where
    if isinstance(child, ast.stmt):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            where = (*where, child.name)
        elif not where and isinstance(child, ast.Assign):
            where = (ast.unparse(child.targets[0]),)
        return _Place(where, child, place.names)
    if isinstance(node, ast.Dict) and field == "values" and node.keys[index] is not None:
        return _Place(where, ast.Dict([node.keys[index]], [child]), place.names)
    tells = isinstance(child, ast.expr) and not isinstance(child, ast.Starred) and len(ast.unparse(child)) >= SHORTEST
    return _Place(where, child if tells else place.shown, place.names)


def _of_child(node: ast.AST, field: str, index: int, child: ast.AST, place: _Place) -> Iterator[_Change]:
    held = getattr(node, field)
    if isinstance(child, ast.stmt):
        for new, label in of_statement(child, node, field):
            value = [*held[:index], *new, *held[index + 1 :]] or [ast.Pass()]
            yield _Change(place.where, node, field, value, child, label or new[0])
        made_here = isinstance(node, ast.FunctionDef) and any(isinstance(it, ast.FunctionDef) for it in node.body)
        if isinstance(child, ast.Return) and child.value is not None and not made_here:
            for name in place.names:
                other = ast.Return(ast.Name(name, ast.Load()))
                value = [*held[:index], other, *held[index + 1 :]]
                yield _Change(place.where, node, field, value, child, other)
    elif isinstance(child, ast.expr) and not isinstance(getattr(child, "ctx", None), ast.Store | ast.Del):
        for new in (*of_expressions(child, node, field), *of_words(child, node)):
            value = [*held[:index], new, *held[index + 1 :]] if isinstance(held, list) else new
            instead = new if place.shown is child else None
            if isinstance(place.shown, ast.Dict) and child in place.shown.values:
                instead = ast.Dict(place.shown.keys, [new])
            yield _Change(place.where, node, field, value, place.shown, instead)


def _locals(function: ast.FunctionDef | ast.Lambda) -> tuple[str, ...]:
    """Return the names of a function's own: its parameters and what it assigns, functions inside left out."""
    if isinstance(function, ast.Lambda):
        return ()
    arguments = function.args
    names = [it.arg for it in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        if not isinstance(
            node, ast.FunctionDef | ast.Lambda | ast.ClassDef | ast.ListComp | ast.SetComp | ast.DictComp
        ):
            waiting += ast.iter_child_nodes(node)
    return tuple(name for name in dict.fromkeys(names) if not name.startswith("_"))


def _text(node: ast.AST | str) -> str:
    """Return a line that a node is known by."""
    if isinstance(node, str):
        return node
    lines = ast.unparse(ast.fix_missing_locations(node)).splitlines()
    line = next((it for it in lines if not it.startswith("@")), "")
    return f"{line} ..." if len(lines) > 1 and isinstance(node, ast.stmt) else line


def _cut(old: str, new: str) -> tuple[str, str]:
    """Return two texts without what they share at their ends, where they are long."""
    if new.startswith("("):
        return old if len(old) <= 2 * LONGEST else f"{old[: 2 * LONGEST]}...", new
    if max(len(old), len(new)) <= LONGEST:
        return old, new
    start = _shared(old, new)
    end = min(_shared(old[::-1], new[::-1]), len(old) - start, len(new) - start)
    first, last = max(start - LONGEST // 3, 0), max(end - LONGEST // 3, 0)
    before, after = "..." if first else "", "..." if last else ""
    return tuple(f"{before}{text[first : len(text) - last]}{after}" for text in (old, new))


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _compiles(source: str) -> bool:
    try:
        compile(source, "<mutant>", "exec")
    except SyntaxError:
        return False
    return True
