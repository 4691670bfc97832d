"""Bounds between two classes, for probabilities or for scores, and the axis along which a class is picked."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.outputs import Output, Values, output_behind, values_in
from course_utils.audit.reading import Asked, Scopes, Seen, Told
from course_utils.explain.source import called

_SCORED = frozenset({"BCEWithLogitsLoss", "binary_cross_entropy_with_logits", "MultiLabelSoftMarginLoss"})
_OTHERS = frozenset({"MSELoss", "mse_loss", "L1Loss", "l1_loss", "HuberLoss", "BCELoss", "HingeEmbeddingLoss"})
_CLASSES = frozenset({"CrossEntropyLoss", "cross_entropy", "NLLLoss", "nll_loss"})
LINEAR = frozenset({"AddmmBackward0", "MmBackward0", "ConvolutionBackward0", "MvBackward0", "UnsafeViewBackward0"})
_PROBABLE = frozenset({"sigmoid", "expit"})
_ORDERS = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)


def bounds(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the bounds that do not fit what a model gives."""
    losses = _losses(scopes)
    for file, scope in scopes:
        values = values_in(scope, scopes)
        for node in parts(scope):
            for given, bound in _bounded(node, values, scope):
                found = output_behind(given, values, file)
                asked = seen.at(file, found.made) if found is not None else None
                if found is None or asked is None:
                    continue
                told = _misplaced(node, file, bound, _kind(found, seen.outputs(asked), losses))  # type: ignore[arg-type]
                yield from [told] if told is not None else []


def _kind(found: Output, gave: set[tuple[int, str]], losses: set[str]) -> str:
    """Return whether an output holds scores or probabilities of two classes; "" where that is not sure."""
    last = {name for _, name in gave}
    if found.squashed & _PROBABLE and len(found.squashed) == 1:
        return "probabilities"
    if found.squashed == {"softmax"} and last <= LINEAR and losses & _SCORED and not losses & (_OTHERS | _CLASSES):
        return "shares"
    if found.squashed or not last:
        return ""
    if last == {"SigmoidBackward0"}:
        return "probabilities"
    return "scores" if last <= LINEAR and losses & _SCORED and not losses & _OTHERS else ""


def _misplaced(node: ast.expr, file: str, bound: float | None, kind: str) -> Told | None:
    """Return what is wrong with a bound; None for one that fits. `bound` is None where numbers are rounded."""
    if kind == "scores" and bound in (0.5, None):
        what = "rounded" if bound is None else "compared with 0.5"
        return Told(
            "bound-misplaced",
            Spot(file, node.lineno),
            f"scores are {what} as if they were probabilities",
            "The loss takes scores, and applies the sigmoid itself: the model gives none. A probability above 0.5 is a "
            "score above 0. Scores between 0 and 0.5 count for the wrong class, and what is measured is not what was "
            "trained.",
            "predicted = scores > 0  # or torch.sigmoid(scores) > 0.5",
        )
    if kind == "shares" and bound in (0.5, None):
        return Told(
            "bound-misplaced",
            Spot(file, node.lineno),
            "a softmax shares 1 among the columns, and the loss asks of each column by itself",
            "BCE with logits takes the sigmoid of each score: several columns can hold at once. Of shares that add up "
            "to 1, one alone can be above 0.5.",
            "predicted = torch.sigmoid(scores) > 0.5",
        )
    if kind == "probabilities" and bound == 0:
        return Told(
            "bound-misplaced",
            Spot(file, node.lineno),
            "probabilities are compared with 0: each of them is larger",
            "A sigmoid gives numbers between 0 and 1, and never one below 0. Above a bound of 0 every row counts for "
            "the same class.",
            "predicted = probabilities > 0.5  # or scores > 0, before the sigmoid",
        )
    return None


def _bounded(node: ast.AST, values: Values, scope: ast.AST) -> Iterator[tuple[ast.expr, float | None]]:
    """Yield what is compared with a number, with that; what is rounded, with None."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _ORDERS):
        sides = (node.left, node.comparators[0])
        for given, other in (sides, sides[::-1]):
            bound = _number(other, values, scope)
            if bound is not None:
                yield given, bound
    elif called(node) in ("gt", "ge") and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        bound = _number(node.args[-1], values, scope) if node.args else None
        if bound is not None:
            yield (node.args[0] if len(node.args) == 2 else node.func.value), bound
    elif called(node) in ("round", "round_", "rint") and isinstance(node, ast.Call):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if not node.keywords and (owner is None or ast.unparse(owner) in ("torch", "np")) and len(node.args) == 1:
            yield node.args[0], None
        elif owner is not None and not node.args and not node.keywords:
            yield owner, None


def _number(node: ast.expr, values: Values, scope: ast.AST) -> float | None:
    """Return the number that an expression is, or that its name stands for."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.Name) and isinstance(scope, ast.FunctionDef) and node.id not in values:
        own = scope.args.args[len(scope.args.args) - len(scope.args.defaults) :]
        given = {it.arg: value for it, value in zip(own, scope.args.defaults, strict=True)}
        return _number(given[node.id], {}, scope) if node.id in given else None
    made = values.get(node.id, []) if isinstance(node, ast.Name) else []
    only = made[0] if len(made) == 1 else None
    return _number(only.value, {}, scope) if only is not None else None


def _losses(scopes: Scopes) -> set[str]:
    """Return the names of losses that what ran mentions."""
    wanted = _SCORED | _OTHERS | _CLASSES
    found = set()
    for _, scope in scopes:
        for node in parts(scope):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
            found |= {name} & wanted
    return found


def class_axes(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the lines that pick a class along the rows, or a single one for a whole batch."""
    if not _losses(scopes) & _CLASSES:
        return
    for file, scope in scopes:
        values = values_in(scope, scopes)
        for node in parts(scope):
            if not isinstance(node, ast.Call) or called(node) not in ("argmax", "max"):
                continue
            given, axis = picked_along(node)
            found = output_behind(given, values, file) if given is not None else None
            asked = seen.at(file, found.made) if found is not None else None
            if found is not None and asked is not None and _is_rows(asked, seen, axis, called(node)):
                yield _along_rows(Spot(file, node.lineno), axis)


def _is_rows(asked: Asked, seen: Seen, axis: str, name: str) -> bool:
    """Say whether all outputs have rows and classes, there were several rows, and the axis is not that of classes."""
    gave = seen.outputs(asked)
    wrong = axis == "0" or (axis == "" and name == "argmax")
    return bool(gave) and {axes for axes, _ in gave} == {2} and asked.axes >= 2 and asked.rows > 1 and wrong


def picked_along(node: ast.Call) -> tuple[ast.expr | None, str]:
    """Return what a call picks from, and the text of the axis."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    free = owner is None or ast.unparse(owner) in ("torch", "np", "numpy")
    given = (node.args[0] if node.args else None) if free else owner
    rest = node.args[1:] if free else node.args
    named = next((it.value for it in node.keywords if it.arg in ("dim", "axis")), rest[0] if rest else None)
    return given, ast.unparse(named) if named is not None else ""


def _along_rows(spot: Spot, axis: str) -> Told:
    what = "the largest of each column is picked" if axis else "one largest number is picked of all rows and classes"
    return Told(
        "class-axis",
        spot,
        f"{what}, where each row has a class of its own",
        "Scores have a row for each sample and a column for each class. Along axis 0 the samples compete, and without "
        "an axis all numbers do: what comes out are places of rows, and no classes.",
        "predicted = scores.argmax(dim=1)",
    )
