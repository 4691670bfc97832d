"""Where a script makes the members of an ensemble alike: one seed for each, or copies of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import functions_named, parts
from course_utils.audit.reading import Scopes
from course_utils.explain.source import called, names_of

_SEEDS = frozenset({"manual_seed", "seed_everything", "set_seed"})
_POOLS = frozenset({"stack", "cat", "sum", "mean", "std", "var", "array", "median", "concatenate"})


def made_alike(scopes: Scopes) -> Spot | None:
    """Return the line that makes alike what a script keeps in a list and asks together; None where there is none."""
    asked = {name for _, scope in scopes for name in _asked_together(scope)}
    for file, scope in scopes if asked else ():
        for node in parts(scope):
            if isinstance(node, ast.Assign):
                names = {_last(it) for it in node.targets}
                made = [it for it in ast.walk(node.value) if isinstance(it, ast.ListComp | ast.GeneratorExp)]
                spot = next(iter(_in_comprehension(file, made[0])), None) if made and names & asked else None
            elif isinstance(node, ast.For):
                spot = next(iter(_in_loop(file, node, asked)), None)
            else:
                continue
            if spot is not None:
                return spot
    return None


def _last(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _asked_together(scope: ast.AST) -> Iterator[str]:
    """Yield the names of what is called one after the other, and the results of which are pooled."""
    for node in parts(scope):
        if isinstance(node, ast.Call) and called(node) in _POOLS:
            for it in ast.walk(node):
                if isinstance(it, ast.ListComp | ast.GeneratorExp) and _calls(
                    it.elt, names_of(it.generators[0].target)
                ):
                    yield _last(it.generators[0].iter)
        elif isinstance(node, ast.For):
            own = names_of(node.target)
            for it in ast.walk(node):
                adds = isinstance(it, ast.AugAssign) or called(it) == "append"
                if adds and _calls(it, own) and "loss" not in ast.unparse(it):
                    yield _last(node.iter)


def _calls(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(it, ast.Call) and ast.unparse(it.func).partition(".")[0] in names for it in ast.walk(node))


def _in_comprehension(file: str, made: ast.ListComp | ast.GeneratorExp) -> Iterator[Spot]:
    if called(made.elt) == "deepcopy":
        yield Spot(file, made.elt.lineno)
    yield from _seeded_within(file, made.elt)


def _in_loop(file: str, loop: ast.For, asked: set[str]) -> Iterator[Spot]:
    """Yield the lines of a loop over members, or of one that puts each into their list, that make them alike."""
    own = names_of(loop.target)
    nodes = [it for line in loop.body for it in ast.walk(line)]
    goes_through = names_of(loop.iter) & asked
    fills = any(
        called(it) == "append" and isinstance(it.func, ast.Attribute) and _last(it.func.value) in asked  # type: ignore[attr-defined]
        for it in nodes
    )
    for it in nodes if goes_through or fills else ():
        if not isinstance(it, ast.Call):
            continue
        loads = called(it) == "load_state_dict" and goes_through and names_of(it.func) & own
        copies = called(it) == "deepcopy" and fills and not names_of(it) & own
        seeds = called(it) in _SEEDS and fills and not names_of(*it.args) & own
        if loads or copies or seeds:
            yield Spot(file, it.lineno)
        elif fills:
            yield from _seeded_within(file, it)


def _seeded_within(file: str, call: ast.expr) -> Iterator[Spot]:
    """Yield the lines that set a seed to a number of their own, in the function of the file that is called."""
    for function in functions_named(file, called(call)) if called(call) else ():
        for it in parts(function):
            if isinstance(it, ast.Call) and called(it) in _SEEDS and it.args and isinstance(it.args[0], ast.Constant):
                yield Spot(file, it.lineno)
