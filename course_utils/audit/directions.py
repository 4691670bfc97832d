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
_TURNED = (ast.USub, ast.Sub)


def direction(node: ast.expr) -> Direction | None:
    """Say what the names in an expression tell: nothing for certain where it is turned round; None without any."""
    if any(isinstance(part, _TURNED) for part in ast.walk(node)):
        return ""
    text = re.sub(r"[\W_]+", " ", ast.unparse(node).lower()) + (" accuracy" if _counts_hits(node) else "")
    falls, rises = _FALLING.search(text) is not None, _RISING.search(text) is not None
    if falls and rises:
        return ""
    return "falls" if falls else "rises" if rises else None


def _counts_hits(node: ast.expr) -> bool:
    """Say whether an expression asks how often the highest score is that of the target: `x.argmax(1) == y`."""
    return any(
        isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Eq) and "argmax(" in ast.unparse(part)
        for part in ast.walk(node)
    )
