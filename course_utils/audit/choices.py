"""How a script chooses its best: which way it compares a metric, and which way the metric becomes better."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from course_utils.audit.directions import Direction, direction
from course_utils.audit.expressions import assigned_value
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.source import blocks_of, taken_apart
from course_utils.explain.source import called

_BEST = re.compile(r"best|optimal|(^|_)record", re.IGNORECASE)
_NOT_BEST = re.compile(r"worst|lowest|highest|largest|smallest|delta|adv|attack|pert|example", re.IGNORECASE)
_KEEPS = re.compile(r"state_dict\(|deepcopy\(|\bsave\w*\(|_save\w*\(|(patience|wait|counter|bad_epochs|stale)\w* = 0")
_MODELS = re.compile(r"model|net|state|epoch|lr|rate|ckpt|checkpoint|weights|config|param|run|fold|loss", re.IGNORECASE)
_OTHER = re.compile(r"gap|diff|drop|delta|reduc|improv|crease|time|std|var|change")  # of a metric, and none itself
_MARGIN = re.compile(r"delta|tol|eps|margin|threshold", re.IGNORECASE)
_PICKS = {"min": "<", "argmin": "<", "nanargmin": "<", "max": ">", "argmax": ">", "nanargmax": ">"}


@dataclass(frozen=True)
class Choice:
    """A line that keeps what compares as smaller ("<") or as larger (">"), of a metric that goes one way."""

    spot: Spot
    metric: str
    best: str
    keeps: str
    better: Direction
    kept: tuple[int, int]  # the lines that run when something is kept; (0, 0) where none say so
    is_model: bool  # a model's state is kept, or a count of epochs without a better one begins anew
    saves: bool = False  # a state_dict is made there, and nothing else lets these lines run

    @property
    def is_worst(self) -> bool:
        return self.keeps == (">" if self.better == "falls" else "<")


def choices(file: str, scope: ast.AST) -> Iterator[Choice]:
    """Yield the comparisons with a best value, and the choices of a best entry, in some code that ran."""
    for node in parts(scope):
        if isinstance(node, ast.If):
            every = list(ast.walk(node.test))
            for test in every if not any(isinstance(it, ast.Not) for it in every) else ():
                if isinstance(test, ast.Compare):
                    yield from _compared(file, test, node)
        elif isinstance(node, ast.Assign):
            if isinstance(node.value, ast.Compare) and _BEST.search(ast.unparse(node.targets[0])):
                yield from _compared(file, node.value, None)
            for call in (it for it in ast.walk(node.value) if isinstance(it, ast.Call)):
                yield from _picked(file, call, node)


def _compared(file: str, test: ast.Compare, block: ast.If | None) -> Iterator[Choice]:
    if len(test.ops) != 1 or not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return
    keeps = "<" if isinstance(test.ops[0], ast.Lt | ast.LtE) else ">"
    metric, best = test.left, _bare(test.comparators[0])
    if is_best(_bare(metric)) and not is_best(best):
        metric, best, keeps = test.comparators[0], _bare(metric), "<>"[keeps == "<"]
    if not is_best(best) or is_best(_bare(metric)):
        return
    name, body = ast.unparse(best), block.body if block is not None else []
    if block is not None and not binds(body, name):
        if not binds(block.orelse, name):
            return
        body, keeps = block.orelse, "<>"[keeps == "<"]
    spot = Spot(file, test.lineno)
    better = _direction(spot, metric, best)
    if better:
        text = "\n".join(map(ast.unparse, body))
        lines = (body[0].lineno, body[-1].end_lineno or body[-1].lineno) if body else (0, 0)
        is_model = block is None or _KEEPS.search(text) is not None
        saves = block is not None and block.test is test and "state_dict(" in text
        yield Choice(spot, ast.unparse(metric), name, keeps, better, lines, is_model, saves)


def _picked(file: str, call: ast.Call, node: ast.Assign) -> Iterator[Choice]:
    """Yield what takes the smallest or the largest of several: `best = models[argmin(losses)]`."""
    target = ast.unparse(node.targets[0])
    keeps = _PICKS.get(called(call) or "")
    if keeps is None or not _BEST.search(target) or _NOT_BEST.search(target):
        return
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    own = [owner] if owner is not None and ast.unparse(owner) not in ("np", "torch", "numpy") else []
    given = [*own, *call.args[:2], *(it.value for it in call.keywords if it.arg == "key")]
    found = [direction(part) for part in given]
    told = {it for it in found if it is not None}
    if any(_OTHER.search(ast.unparse(part)) for part in given):
        return
    if len(told) == 1 and (better := told.pop()):
        is_model = better == "rises" or _MODELS.search(target) is not None
        metric = given[-1].body if isinstance(given[-1], ast.Lambda) else given[-1]
        yield Choice(Spot(file, call.lineno), ast.unparse(metric), target, keeps, better, (0, 0), is_model)


def _direction(spot: Spot, metric: ast.expr, best: ast.expr) -> Direction:
    """Return how a metric becomes better, as its name, its computation and that of the best say; nothing if unsure."""
    made = assigned_value(spot, ast.unparse(metric)) if isinstance(metric, ast.Name) else None
    if made is not None and any(isinstance(it, ast.USub) for it in ast.walk(made)):
        return ""
    if _OTHER.search(ast.unparse(metric)):
        return ""
    named = [direction(metric), direction(best)]
    told = {it for it in (*named, direction(made) if made is not None else None) if it}
    return told.pop() if len(told) == 1 and "" not in named else ""


def _bare(node: ast.expr) -> ast.expr:
    """Return a value without the margin that is added to it or taken away."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        margin = isinstance(node.right, ast.Constant) or _MARGIN.search(ast.unparse(node.right))
        return node.left if margin else node
    return node


def is_best(node: ast.expr) -> bool:
    """Say whether an expression is a variable that is called the best of something."""
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return False
    text = ast.unparse(node)
    return _BEST.search(text) is not None and _NOT_BEST.search(text) is None


def binds(body: list[ast.stmt], name: str) -> bool:
    """Say whether some statements give a name a new value."""
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        bound = [it for target in targets for it in taken_apart(target)]
        if any(ast.unparse(it) == name for it in bound) or binds(blocks_of(node), name):
            return True
    return False


def first_value(file: str, scope: ast.AST, name: str) -> float | None:
    """Return the number that a name begins with, where all numbers that it is given are one."""
    found = set()
    for node in parts(scope):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            value: ast.expr | None = None
            if ast.unparse(target) == name and isinstance(node, ast.Assign):
                value = node.value
            elif isinstance(target, ast.Tuple) and isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
                value = next((it for part, it in pairs if ast.unparse(part) == name), None)
            number = _number(value) if value is not None else None
            if number is not None:
                found.add(number)
    return found.pop() if len(found) == 1 else None


def _number(value: ast.expr) -> float | None:
    text = re.sub(r"float\('(-?)\+?inf(inity)?'\)|(-?)(np|math|torch)\.inf", r"\1\3inf", ast.unparse(value))
    try:
        return float(text)
    except ValueError:
        return None
