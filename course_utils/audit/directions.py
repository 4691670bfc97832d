"""Which way a metric becomes better, as its name tells."""

from __future__ import annotations

import ast
import re
from typing import Literal

Direction = Literal["falls", "rises", ""]

# What a metric is called that is the better the smaller it is, or the larger. Short ones must be a word of a name.
_FALLING = re.compile(r"loss|error|criterion|entropy|perplex|\b(nll|bce|mse|mae|rmse|err|ppl|cost|wer|cer|elbo)\b")
_RISING = re.compile(
    r"accura|correct|reward|precision|recall|\b(accs?\d?|f1|auc|auroc|iou|miou|dice|bleu|r2|psnr|ssim|top\d)\b"
)
_HIGHEST = re.compile(r"argmax\(|\.max\((dim=)?-?1|torch\.max\(\w+, (dim=)?-?1|topk\(| >=? 0")


def direction(node: ast.expr) -> Direction | None:
    """Say what the names in an expression tell: nothing for certain where it is turned round; None without any."""
    if any(map(_turns, ast.walk(node))):
        return ""
    text = re.sub(r"[\W_]+", " ", ast.unparse(node).lower()) + (" accuracy" if _counts_hits(node) else "")
    falls, rises = _FALLING.search(text) is not None, _RISING.search(text) is not None
    if falls and rises:
        return ""
    return "falls" if falls else "rises" if rises else None


def _turns(node: ast.AST) -> bool:
    """Say whether something is taken away, or taken by its negative: not for the axis in `argmax(-1)`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return not isinstance(node.operand, ast.Constant)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        sides = (node.left, node.right)
        return any(isinstance(it, ast.UnaryOp) and isinstance(it.op, ast.USub) for it in sides)
    return isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Sub)


def _counts_hits(node: ast.expr) -> bool:
    """Say whether an expression asks how often the highest score is that of the target: `x.argmax(1) == y`."""
    return any(_HIGHEST.search(ast.unparse(side)) for part in ast.walk(node) for side in compared_sides(part))


def compared_sides(node: ast.AST) -> list[ast.expr]:
    """Return both sides of `a == b`, `a.eq(b)` and `torch.eq(a, b)`; nothing for anything else."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        return [node.left, node.comparators[0]]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "eq":
        return [*node.args, *(() if ast.unparse(node.func.value) == "torch" else (node.func.value,))]
    return []


def picks_highest(node: ast.AST) -> bool:
    """Say whether an expression picks the class with the highest score, or says which side of a bound one is on."""
    return _HIGHEST.search(ast.unparse(node)) is not None
