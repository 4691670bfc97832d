"""Faults planted by rule in right loops, on their syntax trees."""

import ast
import inspect
import itertools
import linecache
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Planted:
    """A right loop with one fault. One of `codes` must be found."""

    name: str
    codes: frozenset[str]
    run: Callable[[], object]


def _is_call(node: ast.AST, method: str) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == method


def _text(source: str) -> list[ast.stmt]:
    return ast.parse(source).body


class _Rewriting(ast.NodeTransformer):
    """Applies `change` to every statement: it returns what stands there instead, or None to leave it."""

    def __init__(self, change):
        self.change = change
        self.changed = 0

    def generic_visit(self, node):
        node = super().generic_visit(node)
        if isinstance(node, ast.Expr | ast.Assign):
            new = self.change(node)
            if new is not None:
                self.changed += 1
                return new
        return node


def _drop(method):
    return lambda node: _text("pass") if _is_call(node, method) else None


def _clear_before_step(node):
    if _is_call(node, "step") and "optimizer" in ast.unparse(node) and not node.value.args:
        return [*_text(f"{ast.unparse(node.value.func.value)}.zero_grad()"), node]
    return None


def _twice(node):
    return [node, node] if _is_call(node, "step") and "optimizer" in ast.unparse(node) else None


def _named_only(method):
    return lambda node: _text(ast.unparse(node.value.func)) if _is_call(node, method) else None


def _retain(node):
    if _is_call(node, "backward") and not node.value.keywords and not node.value.args:
        return _text(f"{ast.unparse(node.value.func)}(retain_graph=True)")
    return None


def _wrap(node):
    if _is_call(node, "backward") and isinstance(node.value.func.value, ast.Name):
        name = node.value.func.value.id
        return [*_text(f"{name} = __import__('torch').tensor({name}.item(), requires_grad=True)"), node]
    return None


def _keep(node):
    if _is_call(node, "backward") and isinstance(node.value.func.value, ast.Name):
        return [node, *_text(f"kept_losses.append({node.value.func.value.id})")]
    return None


def _clip_late(node):
    if _is_call(node, "step") and "optimizer" in ast.unparse(node):
        clip = "__import__('torch').nn.utils.clip_grad_norm_(model.parameters(), 0.1)"
        return [node, *_text(clip)]
    return None


RULES = {
    "no clearing": (_drop("zero_grad"), {"no-zero-grad"}),
    "clearing named only": (_named_only("zero_grad"), {"no-zero-grad"}),
    "clearing before the step": (_clear_before_step, {"zero-before-step"}),
    "no pass": (_drop("backward"), {"step-without-backward"}),
    "two steps": (_twice, {"step-without-backward"}),
    "retained": (_retain, {"needless-retain"}),
    "loss made anew": (_wrap, {"wrapped-loss"}),
    "losses kept": (_keep, {"kept-losses"}),
    "clipped late": (_clip_late, {"clip-after-step"}),
}


def planted(function: Callable[[], object]) -> Iterator[Planted]:
    """Yield the loop with each fault that a rule can plant in it."""
    source = textwrap.dedent(inspect.getsource(function))
    for rule, (change, codes) in RULES.items():
        tree = ast.parse(source)
        body = tree.body[0]
        body.decorator_list = []
        if rule == "losses kept":
            body.body[:0] = _text("kept_losses = []")
        rewriting = _Rewriting(change)
        tree = ast.fix_missing_locations(rewriting.visit(tree))
        if not rewriting.changed:
            continue
        file = f"/planted/{function.__name__}_{next(_NUMBERS)}.py"
        text = ast.unparse(tree)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        space = dict(inspect.getmodule(function).__dict__)
        exec(compile(text, file, "exec"), space)
        yield Planted(f"{function.__name__}: {rule}", frozenset(codes), space[function.__name__])
