"""Whether lines look at a model, as to measure or to draw it, before it is trained again."""

from __future__ import annotations

import ast
import re

from course_utils.audit.lines import Spot
from course_utils.audit.source import around, blocks_of, function_around

_LOOK = re.compile(
    r"\b(eval\(\)|no_grad|inference_mode|set_grad_enabled|fork_rng)|"
    r"\b_?(eval|valid|test|generate|plot|visual|preview|score)\w*\("
)
_SEEDS = re.compile(r"seed|deterministic|cudnn|environ|PYTHONHASH", re.IGNORECASE)
_TRAIN = re.compile(r"\b(backward|step|train|fit|update|optimi[sz]e)\w*\(")


def for_looking(spot: Spot) -> bool:
    """Say whether what follows a line in its block looks at the model before it is trained again."""
    nodes = around(spot)
    blocks = [blocks_of(node) for node in nodes[:-1]]
    for node in blocks[-1] if blocks else []:
        if node.lineno <= spot.line:
            continue
        text = ast.unparse(node)
        looks, trains = _LOOK.search(text), _TRAIN.search(text)
        if looks and (trains is None or looks.start() < trains.start()):
            return True
        if trains:
            return False
    # The block that sets the seed may be within one that switches recording off or keeps the state.
    return any(isinstance(node, ast.With) and _LOOK.search(ast.unparse(node.items[0])) for node in nodes)


def only_seeds(spot: Spot) -> bool:
    """Say whether the function around a line does nothing but set seeds, and what goes with them."""
    function = function_around(spot)
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    lines = [
        line for line in function.body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
    ]
    return all(isinstance(line, ast.Import | ast.ImportFrom) or _SEEDS.search(ast.unparse(line)) for line in lines)
