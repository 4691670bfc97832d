"""Right answers as programs: what an answer is made of, without what it does not use."""

import ast
import symtable
from dataclasses import dataclass

from course_utils.checks.judges.lesson_11_build_your_own import ORDER
from tests.answers import RIGHT, source_of
from tests.mutation import engines
from tests.mutation.folding import specialised

ANSWER = "ANSWER"  # the name that the answer has in its program


@dataclass(frozen=True)
class Program:
    """A right answer by itself: the imports and definitions that it uses, and `ANSWER = ...` as the last line."""

    exercise: str
    number: int
    tree: ast.Module


def programs(exercise: str) -> list[Program]:
    """Return a program for each right answer to an exercise, in order."""
    if exercise in ORDER:
        return [_engine(exercise, number, tree) for number, tree in enumerate(engines.trees())]
    module = ast.parse(source_of(exercise))
    right = next(node.value for node in reversed(module.body) if "RIGHT" in _defined(node))
    entries = _flat(right)
    if len(entries) != len(RIGHT[exercise]):  # some are made in a loop
        entries = [ast.Subscript(right, ast.Constant(number), ast.Load()) for number in range(len(RIGHT[exercise]))]
    return [Program(exercise, number, _program(module, entry)) for number, entry in enumerate(entries)]


def _engine(exercise: str, number: int, tree: ast.Module) -> Program:
    *body, made = tree.body
    answer = ast.Assign([ast.Name(ANSWER, ast.Store())], made.value)
    return Program(exercise, number, ast.parse(ast.unparse(ast.fix_missing_locations(ast.Module([*body, answer], [])))))


def _flat(display: ast.expr) -> list[ast.expr]:
    """Return the entries of a list display, those of displays inside it that are starred included."""
    found: list[ast.expr] = []
    for entry in display.elts:
        if isinstance(entry, ast.Starred) and isinstance(entry.value, ast.Tuple | ast.List):
            found += _flat(entry.value)
        else:
            found.append(entry)
    return found


def _program(module: ast.Module, entry: ast.expr) -> ast.Module:
    wanted, kept = _used(entry), set()
    while True:
        found = [n for n, node in enumerate(module.body) if n not in kept and _defined(node) & wanted]
        if not found:
            break
        kept.update(found)
        for n in found:
            wanted |= _used(module.body[n])
    body = [module.body[n] for n in sorted(kept)]
    for n, node in enumerate(body):
        called = isinstance(entry, ast.Call) and isinstance(entry.func, ast.Name) and isinstance(node, ast.FunctionDef)
        if called and node.name == entry.func.id:
            body[n] = specialised(node, entry)
    answer = ast.Assign([ast.Name(ANSWER, ast.Store())], entry)
    # By way of text, so that the programs share no node and a change to one is a change to no other.
    return ast.parse(ast.unparse(ast.fix_missing_locations(ast.Module([*body, answer], []))))


def _used(node: ast.AST) -> set[str]:
    """Return the names of the module that a part of it refers to."""
    tables = [symtable.symtable(ast.unparse(ast.fix_missing_locations(node)), "<answer>", "exec")]
    used = {symbol.get_name() for symbol in tables[0].get_symbols() if symbol.is_referenced()}
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return used


def _defined(node: ast.stmt) -> set[str]:
    """Return the names that a line of a module gives a meaning to."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {it.id for target in targets if target for it in ast.walk(target) if isinstance(it, ast.Name)}
