"""Labels that are changed on the way: classes that are blended, and masked tokens that are not asked for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.outputs import Values, values_in
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.explain.source import called, names_of

_LABELS = re.compile(r"mask|label|seg|target|annot|(^|_)gt(_|$)|classes", re.I)
_BLENDS = re.compile(r"bilinear|bicubic|trilinear|linear|area|lanczos|antialias", re.I)
_WHOLE = frozenset({"long", "int", "round", "to", "astype", "type"})
_GUESSED = re.compile(r"pred|logit|prob|soft|out|attn|attention|score|alpha", re.I)
_PICKED = re.compile(r"[<>]|argmax|max\(|sigmoid|softmax|255|topk|threshold")
_DRAWN = re.compile(r"\brand(_like)?\(|\.random\(|bernoulli")
_MASK = re.compile(r"mask", re.I)
_IGNORED = ("-100", "-1", "IGNORE", "IGNORE_INDEX", "ignore_index")


def blended(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the lines that resize numbers of classes by blending neighbours, and make whole numbers of that."""
    for file, scope in scopes:
        values = values_in(scope)
        for node in parts(scope):
            if not isinstance(node, ast.Call) or called(node) not in _WHOLE:
                continue
            text = ast.unparse(node)
            if called(node) in ("to", "astype", "type") and not re.search(r"long|int64|int32|np\.int|uint8", text):
                continue
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            for call in _resizes(owner, values):
                data = next(iter(call.args), None)
                names = names_of(data) if data is not None else set()
                named = any(map(_LABELS.search, names)) and not any(map(_GUESSED.search, names))
                if named and not _PICKED.search(text):
                    yield _blended(Spot(file, call.lineno), sorted(names_of(data) - {"F", "torch"}, key=_is_label)[-1])
        yield from _pictures(file, scope)


def _is_label(name: str) -> bool:
    return _LABELS.search(name) is not None


def _resizes(node: ast.AST | None, values: Values) -> Iterator[ast.Call]:
    """Yield the calls that resize by blending in an expression, or in what its name stands for."""
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Call) and called(part) in ("interpolate", "resize", "upsample"):
            mode = next((it.value for it in part.keywords if it.arg in ("mode", "interpolation")), None)
            if mode is not None and _BLENDS.search(ast.unparse(mode)):
                yield part
        bound = values.get(part.id, []) if isinstance(part, ast.Name) else []
        before = [it for it in bound if it is not None and it.value.lineno < part.lineno]  # type: ignore[attr-defined]
        only = max(before, key=lambda it: it.value.lineno, default=None)
        if only is not None and not _PICKED.search(ast.unparse(only.value)):
            yield from _resizes(only.value, {})


def _pictures(file: str, scope: ast.AST) -> Iterator[Told]:
    """Yield what Pillow or OpenCV resize by blending, where what is resized is called a mask or a label."""
    for node in parts(scope):
        if not isinstance(node, ast.Call) or called(node) != "resize":
            continue
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        data = next(iter(node.args), None) if owner in ("cv2", "TF", "F") else getattr(node.func, "value", None)
        how = " ".join(map(ast.unparse, (*node.args, *(it.value for it in node.keywords))))
        blends = re.search(r"BILINEAR|BICUBIC|LANCZOS|INTER_(LINEAR|CUBIC|AREA)", how) is not None
        default = owner == "cv2" and "INTER_" not in how
        name = data.id if isinstance(data, ast.Name) else ""
        cut = re.search(rf"\b{re.escape(name)}\b\W*[<>]|threshold|sigmoid|argmax", ast.unparse(scope)) if name else None
        labels = re.search(r"mask|label|annot|(^|_)gt(_|$)", name, re.I) and not _GUESSED.search(name)
        if labels and cut is None and (blends or default):
            yield _blended(Spot(file, node.lineno), name)


def _blended(spot: Spot, name: str) -> Told:
    return Told(
        "labels-blended",
        spot,
        f"{name} holds numbers of classes, and is resized by blending neighbours",
        "Between class 1 and class 5 the mean is 3: a class that is not there. Whole numbers made of blended ones put "
        "a seam of wrong classes along each border.",
        'F.interpolate(..., mode="nearest")  # for labels; bilinear is for the images',
        (name,),
    )


def unmasked(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the labels that are ignored where the input is hidden, and so asked for where it is shown."""
    for file, scope in scopes:
        nodes = list(parts(scope))
        lines = [it for it in nodes if isinstance(it, ast.Assign) and _DRAWN.search(ast.unparse(it.value))]
        drawn = {ast.unparse(to) for it in lines for to in it.targets}
        fills = [(mask, value, node) for node in nodes for mask, value in _fills(node)]
        ignored = {mask: node for mask, value, node in fills if value in _IGNORED}
        hidden = {mask for mask, value, _ in fills if value not in _IGNORED and (_MASK.search(value) or mask in drawn)}
        for mask in sorted(ignored.keys() & hidden):
            if not mask.startswith("~") and f"~{mask}" not in ignored:
                yield Told(
                    "unmasked-asked",
                    Spot(file, ignored[mask].lineno),  # type: ignore[attr-defined]
                    f"labels are ignored where {mask} holds: where the input is hidden",
                    "The loss is left with the places that the model sees. It learns to copy its input, and is never "
                    "asked for what was hidden.",
                    f"labels[~{mask}] = -100",
                    (mask,),
                )


def _fills(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the masks by which a node fills, with what it fills in."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        yield ast.unparse(node.targets[0].slice), ast.unparse(node.value)
    elif isinstance(node, ast.Call) and called(node).startswith("masked_fill") and len(node.args) >= 2:
        mask, value = node.args[-2:]
        yield ast.unparse(mask), ast.unparse(value)
    elif isinstance(node, ast.Call) and called(node) == "where" and len(node.args) == 3:
        yield ast.unparse(node.args[0]), ast.unparse(node.args[1])
        yield f"~{ast.unparse(node.args[0])}", ast.unparse(node.args[2])
