"""A `.grad` read from a tensor that is no leaf, or that has taken the place of one: what made it so."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.naming import assigned, bound_before, targets
from course_utils.explain.nodes import operation
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.settings import switched_off
from course_utils.explain.situation import Situation
from course_utils.explain.source import FUNCTIONS, LOOPS, Source, walk, written


def of_result(
    s: Situation, owner: str, tensor: torch.Tensor, grad: str, where: tuple[Place, ...]
) -> Explanation | None:
    """Explain a `.grad` that is None because its tensor was computed."""
    if tensor.retains_grad:
        return None
    replaced = replaced_in_an_update(s, owner, grad)
    if replaced is not None:
        return replaced
    made = f" by {_by(tensor)}" if tensor.grad_fn is not None else ""
    why = f"`{owner}` is computed{made}, not a leaf: backward() passes its gradient on and keeps none in `.grad`."
    keep = f"{owner}.retain_grad()  # before backward()"
    if _is_learned(s, owner):
        keep = f"{owner} = {owner}.detach().requires_grad_()  # once, before it is used: a leaf, which can be learned"
    return card("grad-is-none", f"`{grad}` is None: `{owner}` is not a leaf", why, keep, (*where, *s.needed()))


def replaced_in_an_update(s: Situation, owner: str, grad: str) -> Explanation | None:
    """Explain a `.grad` that is None because an update gave the name a new tensor: `w = w - lr * w.grad`."""
    if s.here is None or s.here.source is None or not re.fullmatch(r"[A-Za-z_][\w.]*", owner):
        return None
    found = [it for it in assigned(s.here, owner) if isinstance(it, ast.Assign) and _reads(it.value, f"{owner}.grad")]
    if not found:
        return None
    update = found[-1]
    assert isinstance(update, ast.Assign)
    off = switched_off(s.here.source, update) is not None
    inside = _in_place(update, owner)
    fix = inside if off else "with torch.no_grad():\n" + "\n".join(f"    {line}" for line in inside.splitlines())
    why = f"Line {update.lineno} made a new tensor and called it `{owner}`. The one that has the gradient is another. "
    why += "Under no_grad the new one requires none." if off else "The new one was computed, so it is no leaf."
    places = (s.here.place("new tensor here", update), *s.needed())
    headline = f"`{grad}` is None: `{owner}` is a new tensor, made by its own update"
    return card("grad-is-none", headline, why, fix, places, _surely(s.here.source, update))


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(it, ast.Attribute) and written(it) == name for it in ast.walk(node))


def _in_place(update: ast.Assign, owner: str) -> str:
    """Return an update that writes into the tensor it is of."""
    value = update.value
    if isinstance(value, ast.BinOp) and written(value.left) == owner:
        target = ast.parse(owner, mode="eval").body
        assert isinstance(target, ast.Name | ast.Attribute)
        target.ctx = ast.Store()
        return f"{ast.unparse(ast.AugAssign(target, value.op, value.right))}  # into the same tensor"
    return f"{owner}.copy_({ast.unparse(value)})  # into the same tensor"


def _surely(source: Source, statement: ast.stmt) -> bool:
    """Return whether a statement runs whenever its loop or function does."""
    for outer in source.around(statement):
        if isinstance(outer, (*FUNCTIONS, *LOOPS, ast.Module)):
            return True
        if not isinstance(outer, ast.With):
            return False
    return False


def _is_learned(s: Situation, owner: str) -> bool:
    """Return whether the function changes a tensor by its gradient, as an update does."""
    nodes = list(walk(s.here.scope)) if s.here is not None and s.here.scope is not None else []
    return any(
        isinstance(it, ast.AugAssign) and written(it.target) in (owner, f"{owner}.data") and "grad" in ast.unparse(it)
        for it in nodes
    )


def _by(tensor: torch.Tensor) -> str:
    made = operation(tensor.grad_fn)
    return made if " " in made else f"`{made}`"


def _warned(s: Situation, m: re.Match[str]) -> Explanation | None:
    read = _read_here(s)
    value = s.here.value(read[0].value) if s.here is not None and len(read) == 1 else None
    known = value.is_leaf if is_a(value, torch.Tensor) else False
    if not read or known or len(read) > 1:
        names = ", ".join(dict.fromkeys(f"`{written(it.value)}`" for it in read))
        shown = f"one of {names}" if len(read) > 1 else "a tensor"
        why = f"A `.grad` was read of {shown}, and that tensor was computed: backward() keeps gradients in leaves only."
        fix = "# x.retain_grad() before backward(), for the one that is computed"
        headline = f"a `.grad` is None, because its tensor ({shown}) is not a leaf"
        return card("grad-of-non-leaf", headline, why, fix, s.needed("read here"), False)
    own = written(read[0].value, 60) or "h"
    replaced = replaced_in_an_update(s, own, f"{own}.grad")
    if replaced is not None:
        return replaced
    made = f" by {_by(value)}" if is_a(value, torch.Tensor) and value.grad_fn is not None else ""
    where = list(s.needed("read here"))
    statement = _assignment(s, own)
    if statement is not None:
        source, node = statement
        where.insert(0, source.place("computed here", node))
        made = made or " there"
    why = f"`{own}` was computed{made}, so it is no leaf, and backward() lets its gradient pass without keeping it."
    fix = f"{own}.retain_grad()  # before backward(): then {own}.grad is kept"
    text = where[0].text if len(where) > 1 else ""
    moved = re.search(r"\.(to|cuda|cpu|double|float|half)\(|requires_grad=True\)\s*[*/+-]", text)
    if moved or _is_learned(s, own):
        fix = f"{own} = {own}.detach().requires_grad_()  # after the arithmetic or the move: a leaf\n{fix}"
    return card("grad-of-non-leaf", f"`{own}.grad` is None, because `{own}` is not a leaf", why, fix, where)


def _read_here(s: Situation) -> list[ast.Attribute]:
    """Return which `.grad` the line reads: the very one where its frame is there, or all of the line."""
    node = s.node
    for tree in (node, s.line_tree):
        found = (
            [it for it in ast.walk(tree) if isinstance(it, ast.Attribute) and it.attr == "grad"]
            if tree is not None
            else []
        )
        if found:
            return found[:1] if tree is node and isinstance(node, ast.Attribute) else found
    return []


def _assignment(s: Situation, name: str) -> tuple[Source, ast.stmt] | None:
    """Return where a name got its value in the function of the line."""
    if s.here is not None and s.here.source is not None:
        found = bound_before(s.here, name)
        return (s.here.source, found[-1]) if found else None
    source = s.sources.of(s.file)
    if source is None or s.line_tree is None:
        return None
    found = [
        it
        for it in walk(source.scope(s.line_tree))
        if isinstance(it, ast.stmt) and name in targets(it) and it.lineno < s.line
    ]
    return (source, found[-1]) if found else None


RULES = (Rule(Warning, r"The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed", _warned),)
