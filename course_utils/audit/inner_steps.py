"""Learning to learn: the loss after the inner steps, and the weights and rows that it is computed with."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.expressions import assigned_value
from course_utils.audit.lines import Spot
from course_utils.audit.loops import loops_at
from course_utils.audit.mentions import own, parts
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.audit.source import blocks_of, function_around, statement, taken_apart
from course_utils.explain.source import called, names_of

_DATA = r"(x|y|inputs?|targets?|labels?|images?|data|rows)s?"
_QUERY = re.compile(rf"(^|_)(qry|query|queries)(_|$)|^{_DATA}_?q(ry|uery)?$|^q(ry|uery)?_?{_DATA}$", re.I)


def outer_losses(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the losses after inner steps that nothing of the steps is in, or that are of the rows of the steps."""
    for file, scope in scopes:
        yield from _on_support(file, scope)
        yield from _by_the_slow(file, scope)


def loss_after(spot: Spot) -> Spot | None:
    """Return the first line, after one that takes a gradient, whose loss is computed as that one's was."""
    scope, inner = function_around(spot), differentiated(spot)
    calls = {called(it) for it in ast.walk(inner)} - {"", "grad"} if inner is not None else set()
    end = getattr(statement(spot), "end_lineno", None) or spot.line
    later = [it for it in own(scope) if it.lineno > end and not blocks_of(it)] if scope is not None else []
    found = [it for it in later if any(called(part) in calls for part in ast.walk(it)) and not _takes_gradient(it)]
    return Spot(spot.file, min(it.lineno for it in found)) if found else None


def _takes_gradient(line: ast.stmt) -> bool:
    return any(called(it) == "grad" for it in ast.walk(line))


def differentiated(spot: Spot) -> ast.expr | None:
    """Return what a line takes the gradient of, as it is computed."""
    found = statement(spot)
    call = next((it for it in ast.walk(found) if called(it) == "grad"), None) if found is not None else None
    given = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return assigned_value(spot, given.id) if isinstance(given, ast.Name) else given


def _on_support(file: str, scope: ast.AST) -> Iterator[Told]:
    """Yield the outer losses beside which rows that are called a query are made, and never read."""
    slopes = [it for it in own(scope) if not blocks_of(it) and _takes_gradient(it)]
    if not slopes:
        return
    bound = [it for it in ast.walk(scope) if isinstance(it, ast.Name)]
    read = {it.id for it in bound if isinstance(it.ctx, ast.Load)}
    unread = sorted({it.id for it in bound if isinstance(it.ctx, ast.Store) and _QUERY.search(it.id)} - read)
    spot = Spot(file, slopes[0].lineno)
    outer, inner = loss_after(spot), differentiated(spot)
    line = statement(outer) if outer is not None else None
    if not unread or outer is None or line is None or inner is None or not _has_pass(scope):
        return
    functions = {it.func.id for it in ast.walk(inner) if isinstance(it, ast.Call) and isinstance(it.func, ast.Name)}
    if (names_of(inner) & names_of(line)) - functions - {"F", "torch", "nn"}:
        yield Told(
            "adaptation-unmeasured",
            outer,
            f"the loss after the inner step is one of the rows that the step was made with: nothing reads "
            f"{' and '.join(unread[:2])}",
            "What is to be learned are weights from which a step on some rows helps on others. Measured on the rows of "
            "the step itself, the step has only to remember them.",
            f"the same loss, of {', '.join(unread[:2])}",
            tuple(unread),
        )


def _has_pass(scope: ast.AST) -> bool:
    return any(called(it) in ("backward", "step") for it in parts(scope)) or any(
        isinstance(it, ast.Return) and it.value is not None for it in parts(scope)
    )


def _by_the_slow(file: str, scope: ast.AST) -> Iterator[Told]:
    """Yield the losses of a model of which a copy was trained just before, and is read by nothing after that."""
    lines = sorted(own(scope), key=lambda it: it.lineno)
    for copy in lines:
        value = copy.value if isinstance(copy, ast.Assign) else None
        if not isinstance(value, ast.Call) or called(value) != "deepcopy" or not isinstance(copy, ast.Assign):
            continue
        names = [it.id for it in taken_apart(copy.targets[0]) if isinstance(it, ast.Name)]
        slow = ast.unparse(value.args[0]) if value.args else ""
        step = _last_step(lines, names[0], copy.lineno) if len(names) == 1 else None
        if step is None or any(names[0] in names_of(it) for it in lines if it.lineno > step and not blocks_of(it)):
            continue
        loops = loops_at(Spot(file, copy.lineno))  # one copy for each task
        end = (loops[-1].end_lineno or 0) if loops else 0
        after = [it for it in lines if step < it.lineno <= end and not blocks_of(it) and _asks(it, slow)]
        passes = [it for it in lines if it.lineno > step and any(called(part) == "backward" for part in ast.walk(it))]
        if after and passes:
            yield Told(
                "adaptation-unmeasured",
                Spot(file, after[0].lineno),
                f"this loss is one of {slow}, and nothing reads {names[0]}, the copy that the inner steps have trained",
                f"{names[0]} is made anew for each task, trained and thrown away. The gradient is that of {slow} as it "
                "was before: nothing of what was learned within the task is in it.",
                f"loss = criterion({names[0]}(query_x), query_y)  # and its gradients for {slow}",
                (names[0], slow),
            )


def _last_step(lines: list[ast.stmt], copy: str, after: int) -> int | None:
    """Return the last line that makes a step with an optimizer of a copy's parameters, or of several copies'."""
    holders = {
        name
        for it in lines
        if isinstance(it, ast.Assign) and it.lineno > after and f"{copy}.parameters()" in ast.unparse(it.value)
        for to in it.targets
        for name in names_of(to)
    }
    steps = [
        it.lineno
        for it in lines
        if isinstance(it, ast.Expr) and called(it.value) == "step" and names_of(it.value) & holders
    ]
    return max(steps, default=None)


def _asks(line: ast.stmt, model: str) -> bool:
    return any(isinstance(it, ast.Call) and ast.unparse(it.func) == model for it in ast.walk(line))
