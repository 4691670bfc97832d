"""Objectives as a script writes them: scores that are minimised, and weights for hard rows that go to easy ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.bounds import LINEAR
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import functions_named, functions_of, parts
from course_utils.audit.outputs import Values, output_behind, values_in
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.explain.source import called

_OVERLAPS = re.compile(r"(^|_)(dice|iou|jaccard|tversky|f1|fbeta)(_|$|loss)|^(dice|iou|jaccard)", re.I)
_SQUASHES = re.compile(r"sigmoid|softmax|expit|one_hot|clamp|round|argmax|> ?0", re.I)
_SCORES = re.compile(
    r"^((ms_?)?ssim|psnr|(soft_?)?accuracy|pearson(r|_corr\w*)?|(cosine?_?|soft_)?sim(ilarity)?|r2_?score)$", re.I
)
_LIKENESS = frozenset({"cosine_similarity"})
_PROBABILITY = re.compile(r"^(p_?t|pt|p_t|prob_?t|p_true|pt_)$", re.I)
_ON_PURPOSE = re.compile(r"adv|attack|perturb|orthogonal|divers|dissimil|decorrel|negative|repel|unlearn|forget", re.I)
_CROSS = re.compile(r"cross_entropy|nll_loss|(^|_)(ce|bce)(_|$)|criterion", re.I)


def minimised(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the losses that are a score: an overlap or a likeness, and nothing that takes it from 1 or turns it."""
    for file, scope in scopes:
        values = values_in(scope)
        for node in parts(scope):
            if not isinstance(node, ast.Call) or called(node) != "backward" or not isinstance(node.func, ast.Attribute):
                continue
            if _ON_PURPOSE.search(ast.unparse(node.func.value)) or _ON_PURPOSE.search(getattr(scope, "name", "")):
                continue
            for call, spot in _scores(node.func.value, values, file, 3):
                yield Told(
                    "score-minimised",
                    spot,
                    f"{called(call)} is larger the better, and each step makes it smaller",
                    "An optimizer minimises. An overlap or a likeness is a score: as a loss it has to be taken from 1, "
                    "or turned. As it stands the model learns to miss its target.",
                    f"loss = 1 - {called(call)}(...)",
                    (called(call),),
                )


def _scores(node: ast.expr, values: Values, file: str, deep: int) -> Iterator[tuple[ast.Call, Spot]]:
    """Yield the calls of scores that an expression is, or that are a term of it with a plus."""
    if not deep:
        return
    if isinstance(node, ast.Name):
        bound = values.get(node.id, [])
        for it in bound if len(bound) == 1 else ():
            yield from _scores(it.value, it.values, file, deep - 1) if it is not None else ()
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _scores(node.left, values, file, deep)
    elif isinstance(node, ast.Call) and called(node) in ("mean", "sum") and isinstance(node.func, ast.Attribute):
        yield from _scores(node.func.value, values, file, deep)
    elif isinstance(node, ast.Call) and called(node) in _LIKENESS:
        yield node, Spot(file, node.lineno)
    elif isinstance(node, ast.Call) and (method := _forward(node, values, file)) is not None:
        yield from ((node, Spot(file, line)) for line in _plain_overlap(method))
    elif isinstance(node, ast.Call) and _SCORES.search(called(node)):
        functions = list(functions_named(file, called(node)))
        if len(functions) == 1 and _is_plain_score(functions[0]):
            yield node, Spot(file, node.lineno)
    elif isinstance(node, ast.Call) and _OVERLAPS.search(called(node)):
        functions = list(functions_named(file, called(node)))
        for line in _plain_overlap(functions[0]) if len(functions) == 1 else ():
            yield node, Spot(file, line if "loss" in called(node) else node.lineno)


def _forward(call: ast.Call, values: Values, file: str) -> ast.FunctionDef | None:
    """Return the forward of a class for overlaps, where a call is one of an object of it: `criterion(scores, mask)`."""
    bound = values.get(ast.unparse(call.func), [])
    made = bound[0].value if len(bound) == 1 and bound[0] is not None else None
    if made is None or not _OVERLAPS.search(called(made)):
        return None
    found = [it for it in functions_of(file).get(called(made), ()) if isinstance(it, ast.FunctionDef)]
    return next((it for it in found if it.name == "forward"), None)


def _plain_overlap(function: ast.FunctionDef) -> list[int]:
    """Return the lines on which a function returns a quotient, or its mean, and nothing taken from 1."""
    text = ast.unparse(function)
    if re.search(r"\b1(\.0?)? - (?!p\b|pred|prob|t\b|target|y\b|m\b|mask)|return -|neg\(|log\(", text):
        return []
    values = values_in(function)
    lines = [it for it in ast.walk(function) if isinstance(it, ast.Return) and it.value is not None]
    sure = re.search("iou|jaccard", function.name, re.I) is not None
    return [it.lineno for it in lines if _is_quotient(it.value, values, sure)]


def _is_plain_score(function: ast.FunctionDef) -> bool:
    """Say whether a function returns a score as it is: not its negative, its logarithm, or what it lacks of 1."""
    lines = [it for it in ast.walk(function) if isinstance(it, ast.Return) and it.value is not None]
    texts = [ast.unparse(it.value) for it in lines if it.value is not None]
    if "psnr" in function.name:  # of a mean of squares it is -10 * log10, or that of a quotient
        return bool(texts) and all(re.search(r"log10\(.*/|^-\(?[12]0(\.0)? \*|/.*log10", it) for it in texts)
    turned = r"\b1(\.0*)? - |^-|\* -1|\bneg|\blog|dist|loss|err"
    return bool(texts) and not any(re.search(turned, it) for it in texts)


def _is_quotient(node: ast.expr | None, values: Values, sure: bool = False) -> bool:
    if isinstance(node, ast.Call) and called(node) in ("mean", "sum") and isinstance(node.func, ast.Attribute):
        node = node.func.value
    if isinstance(node, ast.Name):
        bound = values.get(node.id, [])
        return len(bound) == 1 and bound[0] is not None and _is_quotient(bound[0].value, {}, sure)
    quotient = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
    return quotient and (sure or re.search("2|inter", ast.unparse(node)) is not None)  # type: ignore[arg-type]


def unsquashed(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the overlaps that are computed of a model's scores, and not of probabilities."""
    for file, scope in scopes:
        values = values_in(scope, scopes)
        for node in parts(scope):
            if not isinstance(node, ast.Call) or not _OVERLAPS.search(called(node)) or not node.args:
                continue
            found = output_behind(node.args[0], values, file)
            asked = seen.at(file, found.made) if found is not None else None
            functions = list(functions_named(file, called(node)))
            plain = len(functions) == 1 and _sums_products(functions[0])
            plain = plain and not _SQUASHES.search(ast.unparse(functions[0]))
            gave = {name for _, name in seen.outputs(asked)} if asked is not None else set()
            if plain and found is not None and not found.squashed and gave and gave <= LINEAR:
                yield Told(
                    "overlap-of-scores",
                    Spot(file, node.lineno),
                    f"{called(node)} gets scores, and an overlap is one of probabilities",
                    "Scores have no bounds: the overlap with a mask can be raised for ever by larger numbers, also "
                    "by negative ones in the sum below the line. Nothing applies a sigmoid or a softmax on the way.",
                    f"{called(node)}(torch.sigmoid(scores), target)",
                    (called(node),),
                )


def _sums_products(function: ast.FunctionDef) -> bool:
    """Say whether a function divides the sum of a product by other sums."""
    text = ast.unparse(function)
    return ".sum(" in text and "/" in text and "*" in text


def focal(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the factors of a focal loss that grow with the probability of the true class."""
    for file, scope in scopes:
        text = "\n".join(ast.unparse(it) for it in getattr(scope, "body", []) if not isinstance(it, ast.ClassDef))
        values = values_in(scope)
        for node in parts(scope):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                yield from _easy(file, node, text, values)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                yield from _above_one(file, node, text, values)


def _easy(file: str, node: ast.BinOp, text: str, values: Values) -> Iterator[Told]:
    for side in (node.left, node.right):
        base = side.left if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Pow) else None
        base = side.args[0] if isinstance(side, ast.Call) and called(side) == "pow" and side.args else base
        if (
            not isinstance(base, ast.Name)
            or not _PROBABILITY.match(base.id)
            or not re.search("focal|gamma", text, re.I)
        ):
            continue
        bound = [it for it in values.get(base.id, []) if it is not None]
        if len(bound) == 1 and _is_of_true_class(bound[0].value) and not re.search(rf"1(\.0?)? - {base.id}\b", text):
            yield _focal(Spot(file, node.lineno), f"{base.id} itself is the factor, and not 1 - {base.id}")


def _is_of_true_class(node: ast.expr) -> bool:
    """Say whether an expression is a row's probability of its class: exp(-ce), or p * y + (1 - p) * (1 - y)."""
    if called(node) == "exp":
        return any(isinstance(it, ast.USub) for it in ast.walk(node))
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return False
    minus = [sum(isinstance(it, ast.Sub) for it in ast.walk(side)) for side in (node.left, node.right)]
    return minus == [0, 2]


def _above_one(file: str, line: ast.Assign, text: str, values: Values) -> Iterator[Told]:
    """Yield `pt = exp(ce)` without a minus, where 1 - pt is a factor's base."""
    name = line.targets[0].id  # type: ignore[attr-defined]
    value = line.value
    if called(value) != "exp" or not isinstance(value, ast.Call) or not _PROBABILITY.match(name):
        return
    owner = value.func.value if isinstance(value.func, ast.Attribute) else None
    inside = value.args[0] if value.args else owner
    if not isinstance(inside, ast.Name) or not re.search(rf"1(\.0?)? - {name}\b", text):
        return
    bound = [it for it in values.get(inside.id, []) if it is not None]
    made = ast.unparse(bound[0].value) if len(bound) == 1 else ""
    if _CROSS.search(made) and not made.startswith("-") and "log_softmax" not in made:
        yield _focal(Spot(file, line.lineno), f"{name} is exp({inside.id}), which is 1 or more: a minus is missing")


def _focal(spot: Spot, what: str) -> Told:
    return Told(
        "focal-reversed",
        spot,
        f"the factor of a focal loss grows where the row is easy: {what}",
        "A focal loss weighs a row by (1 - p) ** gamma, where p is the probability of its true class: next to nothing "
        "for a row that the model has right. Turned round, the rows that are right have all the weight.",
        "pt = torch.exp(-ce)\nloss = ((1 - pt) ** gamma * ce).mean()",
    )
