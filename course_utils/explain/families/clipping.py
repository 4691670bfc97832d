"""A clipping of gradients that was given no parameter: a generator that is used up, or one of nothing."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.families.held_optimizers import makes_optimizer
from course_utils.explain.naming import argument, targets
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import FUNCTIONS, LOOPS, Source, called, walk, written

_WHOLE = frozenset(("list", "tuple", "set", "sum", "max", "min", "sorted", "dict", "len", "extend"))


def _nothing(s: Situation, m: re.Match[str]) -> Explanation | None:
    calls = [it for it in ast.walk(s.line_tree) if called(it).startswith("clip_grad")] if s.line_tree else []
    given = argument(calls[0], 0, "parameters") if len(calls) == 1 else None
    shown = written(given) or "what it was given"
    headline = f"nothing was clipped: `{shown}` gives no parameter"
    why = (
        "A generator gives its parameters once. Whatever goes through it first uses it up, and the next finds nothing."
    )
    if not isinstance(given, ast.Name | ast.Attribute):
        why = f"`{shown}` is made in this line, and there is nothing in it."
        if given is None or not _fresh(given):
            why = f"`{shown}` had nothing to give: no parameter is in it, or what it goes through is used up."
        fix = "# clip the parameters of the model that learns: model.parameters()"
        return card("clip-of-nothing", headline, why, fix, s.needed(), given is not None and _fresh(given))
    source = s.here.source if s.here is not None else s.sources.of(s.file)
    made, use = _made_and_used(s, source, given) if source is not None else (None, None)
    if source is None or made is None or made.value is None:
        fix = f"list({shown})  # where {shown} is made: a list can be gone through again and again"
        return card("clip-of-nothing", headline, why, fix, s.needed(), False)
    fix = f"{shown} = list({ast.unparse(made.value)})  # a list can be gone through again and again"
    places = [source.place("a generator made here", made)]
    sure = False
    if use is not None:
        places.append(source.place("used up here", use))
        why = f"`{shown}` is a generator, which gives its parameters once. Line {use.lineno} went through it before."
        sure = _filled(s, made.value, use)
    return card("clip-of-nothing", headline, why, fix, [*places, *s.needed()], sure)


def _fresh(given: ast.expr) -> bool:
    """Return whether an expression makes its generator from a model, and from no name that may be used up."""
    return isinstance(given, ast.Call) and called(given) == "parameters" and isinstance(given.func, ast.Attribute)


def _made_and_used(s: Situation, source: Source, given: ast.expr) -> tuple[ast.Assign | None, ast.expr | None]:
    """Return the one line that makes a generator, and what uses it up before the clipping, whatever branch is taken."""
    name = written(given)
    line = s.line_tree
    if line is None:
        return None, None
    scope = source.scope(line)
    bound = [it for it in walk(scope) if isinstance(it, ast.stmt) and name in targets(it)]
    if (
        not bound
        and isinstance(scope, FUNCTIONS)
        and name not in {it.arg for it in ast.walk(scope.args) if isinstance(it, ast.arg)}
    ):
        scope = source.tree
        bound = [it for it in walk(scope) if isinstance(it, ast.stmt) and name in targets(it)]
    made = bound[0] if len(bound) == 1 else None
    if not isinstance(made, ast.Assign) or len(made.targets) != 1 or not _gives_once(made.value):
        return None, None
    if source.scope(line) is not scope or (
        source.loop(made) is not None and source.loop(made) is not source.loop(line)
    ):
        return made, None
    reads = [it for it in walk(scope) if isinstance(it, ast.expr) and written(it) == name and it.lineno > made.lineno]
    reads = [it for it in reads if not isinstance(getattr(it, "ctx", None), ast.Store)]
    if not reads:
        return made, None
    first = reads[0]
    always = all(
        isinstance(it, ast.stmt | ast.expr | ast.comprehension | ast.keyword | ast.Module | ast.withitem)
        and not isinstance(it, ast.If | ast.Try | ast.While | ast.IfExp | ast.BoolOp | ast.Lambda | ast.Match)
        for it in source.around(first)
        if it not in source.around(made)
    )
    before = (first.end_lineno or 0) < line.lineno
    return made, first if before and always and _uses_up(source, first) else None


def _gives_once(value: ast.expr) -> bool:
    once = ("parameters", "filter", "map", "chain", "from_iterable", "zip", "iter")
    return isinstance(value, ast.GeneratorExp) or called(value) in once


def _uses_up(source: Source, read: ast.expr) -> bool:
    """Return whether what a generator is read for goes through all of it."""
    around = list(source.around(read))
    outer = around[0]
    if isinstance(outer, LOOPS):
        return isinstance(outer, ast.For) and outer.iter is read and not any(
            isinstance(it, ast.Break | ast.Return | ast.Raise) for it in ast.walk(outer))  # fmt: skip
    if isinstance(outer, ast.keyword):
        outer = around[1]
    if isinstance(outer, ast.comprehension):
        comprehension = around[1]
        if isinstance(comprehension, ast.ListComp | ast.SetComp | ast.DictComp):
            return True
        outer = around[2] if isinstance(comprehension, ast.GeneratorExp) else outer
    return called(outer) in _WHOLE or makes_optimizer(outer)


def _filled(s: Situation, value: ast.expr, use: ast.expr) -> bool:
    """Return whether it is sure that there was something in a generator: an optimizer refuses none."""
    source = s.here.source if s.here is not None else s.sources.of(s.file)
    if any(makes_optimizer(outer) for outer in (source.around(use) if source is not None else ())):
        return True
    owner = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None
    module = s.here.value(owner) if s.here is not None and owner is not None else None
    return is_a(module, torch.nn.Module) and next(iter(torch.nn.Module.parameters(module)), None) is not None


RULES = (Rule(Warning, r"^`parameters` is an empty generator, no gradient clipping", _nothing),)
