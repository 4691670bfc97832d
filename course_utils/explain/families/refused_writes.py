"""Writes in place that PyTorch refuses at once: into leaves, views, expanded tensors, by out=."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.families.other_processes import from_a_worker
from course_utils.explain.lines import has_keyword, only_line
from course_utils.explain.loops import base
from course_utils.explain.naming import argument, assigned, modules, named, receiver
from course_utils.explain.nodes import operation_named
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, written
from course_utils.explain.writers import out_of_place


def _leaf(s: Situation, m: re.Match[str]) -> Explanation | None:
    view = s.text.startswith("a view of")
    target = _target(s)
    if target and not view and target in _arguments_of_backward(s):
        return _what_came_in(s, target)
    name = f"`{target}`" if target else "a leaf that requires a gradient"
    leaf = _viewed(s, target) if view else None
    if leaf is not None:
        own = named(s, lambda other: other is leaf)
        if not own:
            return _view_of_a_leaf(s, target)
        name = f"`{own}`"
    line = written(s.here.statement, 60) if s.here is not None else ""
    why = (
        f"{name} is where gradients arrive. Writing into it would make its old value, and the place of the "
        f"gradient, unclear."
    )
    fix = f"with torch.no_grad():\n    {line or 'w -= lr * w.grad'}"
    if isinstance(s.line_tree, ast.AugAssign) or not _updates(s):
        fix += "  # an update or a first value, not a part of the graph"
    headline = f"{name} is a leaf that requires a gradient, and was written into"
    if view:
        headline = f"a part of {name}, a leaf that requires a gradient, was written into"
    return card("leaf-view-in-place" if view else "leaf-in-place", headline, why, fix, s.needed())


def _arguments_of_backward(s: Situation) -> tuple[str, ...]:
    """Return the names by which a custom function's backward is given gradients; none elsewhere."""
    code = s.here.frame.f_code if s.here is not None else None
    return code.co_varnames[1 : code.co_argcount] if code is not None and code.co_name == "backward" else ()


def _what_came_in(s: Situation, target: str) -> Explanation:
    why = (
        f"`{target}` belongs to whoever sent it, and may be read there again: backward() must not write into it. Here "
        "it is a leaf that requires a gradient, and the pass is recorded, so the write is refused. Elsewhere it would "
        f"go through, and whoever sent `{target}` would read other numbers."
    )
    fix = f"{target} = {target}.clone()  # before it is written into; or make a new tensor by an operation without _"
    return card("leaf-in-place", f"`{target}`, a gradient that came in, was written into", why, fix, s.needed())


def _view_of_a_leaf(s: Situation, target: str) -> Explanation:
    why = (
        f"`{target}` shares the memory of a leaf that has no name here. The leaf is where gradients arrive. Writing "
        "into it would make its old value, and the place of the gradient, unclear."
    )
    fix = out_of_place(s.line_tree) if s.line_tree is not None else f"{target} = {target} + 1"
    headline = f"`{target}`, a view of a leaf that requires a gradient, was written into"
    return card("leaf-view-in-place", headline, why, fix, s.needed())


def _viewed(s: Situation, target: str) -> torch.Tensor | None:
    """Return the leaf that the written name is a view of; None where it is the leaf itself."""
    value = s.here.look_up(target) if s.here is not None else None
    return value._base if is_a(value, torch.Tensor) else None


def _updates(s: Situation) -> bool:
    return (
        any(isinstance(it, ast.Attribute) and it.attr == "grad" for it in ast.walk(s.line_tree))
        if s.line_tree
        else False
    )


def _target(s: Situation) -> str:
    """Return the name that the failing statement writes into."""
    statement = s.line_tree
    if isinstance(statement, ast.AugAssign):
        return written(_whole(s, statement.target))
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return written(_whole(s, statement.targets[0]))
    if called(s.node).endswith("_"):
        owner = receiver(s.node)
        if s.here is not None and is_a(s.here.value(owner), torch.Tensor):
            return written(_whole(s, owner))
        return written(argument(s.node, 0)) or written(_whole(s, owner))
    if called(s.node) == "apply":
        return written(argument(s.node, 0))
    return ""


def _whole(s: Situation, node: ast.expr | None) -> ast.expr | None:
    """Return the tensor of which an element is written into: `w` for `w[0]`; of a dict or a list `p` one entry."""
    while isinstance(node, ast.Subscript):
        held = s.here.value(node.value) if s.here is not None else None
        if type(held) in (dict, list, tuple):
            return node
        node = node.value
    return node


def _view(s: Situation, m: re.Match[str]) -> Explanation | None:
    target = _target(s)
    name, own = (f"`{target}`", target) if target else ("the view", "y")
    if "BackwardHookFunction" in s.text:
        why = "A full backward hook of a module wraps its output, and what is wrapped must not be written into."
        fix = out_of_place(s.line_tree) if s.line_tree is not None else "y = y + 1"
        headline = f"{name} comes from a module with a full backward hook, and was written into"
        layer = layer_in_place(s)
        if layer and not target:
            why = f"`{layer}` was made with inplace=True and writes into what the layer before it returned. A full "
            why += "backward hook wraps what a module returns, and what is wrapped must not be written into."
            fix = f"# {layer}: without inplace=True"
            headline = f"`{layer}` wrote into the output of a module with a full backward hook"
        writes = only_line(s, "writes in place", lambda it: has_keyword(it, "inplace"))
        put = only_line(s, "hook put on here", lambda it: called(it).startswith("register_full_backward"))
        return card("hooked-module-in-place", headline, why, fix, [*writes, *put, *s.needed()])
    if "multiple views" in s.text:
        made = operation_named(re.sub(r"^.*Output \d+ of (\w+) is.*$", r"\1", s.text, flags=re.DOTALL))
        why = (
            f"{name} is one of several views that `{made}` gave at once. PyTorch cannot record a write into "
            f"one of them."
        )
        looped = s.here is not None and any(isinstance(it, ast.For) for it in assigned(s.here, own))
        fix = out_of_place(s.line_tree, looped=looped) if s.line_tree is not None else f"{own} = {own} + 1"
        whole = base(own)
        if s.here is not None and isinstance(s.here.look_up(whole), tuple | list):
            name = f"an element of `{whole}`"
            fix = f"{whole} = [it.clone() for it in {whole}]  # before the write: copies, which are no views"
            why = (
                f"`{whole}` holds the views that `{made}` gave at once. PyTorch cannot record a write into one of them."
            )
        return card(
            "view-of-several-in-place", f"{name}, one of the views of `{made}`, was written into", why, fix, s.needed()
        )
    if "custom Function" in s.text:
        function = re.sub(r"^.*Output \d+ of (\w+?)(?:Backward)? is.*$", r"\1", s.text, flags=re.DOTALL)
        why = f"{name} is a view that your Function `{function}` returned. A write would bypass its backward."
        fix = f"{own} = {own}.clone()  # before the write; or return x[...].clone() from forward"
        headline = f"{name}, a view made by the Function `{function}`, was written into"
        return card("function-view-in-place", headline, why, fix, s.needed())
    return None


def layer_in_place(s: Situation) -> str:
    """Return the learner's name of the layer with inplace=True that is at work."""
    for frame in reversed(s.torch_frames):
        layer = frame.f_locals.get("self")
        if is_a(layer, torch.nn.Module) and layer.__dict__.get("inplace") is True:
            names = (name for call in reversed(s.calls) for name, it in modules(call) if it is layer)
            return next(names, f"a {type(layer).__name__}")
    return ""


def _no_grad_view(s: Situation, m: re.Match[str]) -> Explanation | None:
    target = _target(s)
    name = f"`{target}`" if target else "a view"
    mode = "inference_mode" if "inference mode" in s.text else "no_grad"
    why = (
        f"{name} was made under torch.{mode}() and is written into outside. PyTorch cannot tell whether to record that."
    )
    off = only_line(
        s, "switches recording off", lambda it: isinstance(it, ast.expr) and written(it).endswith(f"{mode}()")
    )
    fix = f"# make the view outside of {mode}; or, if the write is not to be learned, write inside it, too"
    return card(
        "view-from-no-grad-in-place",
        f"{name}, a view made under {mode}, is written into with recording on",
        why,
        fix,
        [*off, *s.needed()],
    )


def _expanded(s: Situation, m: re.Match[str]) -> Explanation | None:
    target = _target(s)
    name, own = (f"`{target}`", target) if target else ("the tensor", "y")
    why = (
        f"Several elements of {name} are the same place in memory (expand repeats without copying), so a write "
        f"is ambiguous."
    )
    fix = f"{own} = {own}.clone()  # before the write: a memory of its own"
    return card("expanded-in-place", f"{name} is expanded, and was written into", why, fix, s.needed())


def _out(s: Situation, m: re.Match[str]) -> Explanation | None:
    function = m[1]
    if "in DataLoader worker process" in s.text:
        return from_a_worker(s, "collate_tensor_fn" in s.text)
    out = written(argument(s.node, 99, "out")) or "result"
    why = (
        "`out=` writes into memory that is there already, which autograd cannot record. An argument requires a "
        "gradient."
    )
    given = ", ".join(ast.unparse(it) for it in s.node.args) if isinstance(s.node, ast.Call) else "..."
    fix = f"{out} = torch.{function}({given})  # or keep out= and put it under torch.no_grad()"
    return card("out-argument", f"`{function}` with out= was to be recorded for a gradient", why, fix, s.needed())


def _resize(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or "the tensor"
    why = f"Another size would change what is recorded with `{owner}`, or what its gradient belongs to."
    fix = f"{owner}[:n]  # fewer; torch.cat([{owner}, more]) makes it longer, .reshape(...) gives another shape"
    return card(
        "resize-refused", f"`{owner}` requires a gradient, and was to be resized in place", why, fix, s.needed()
    )


RULES = (
    Rule(RuntimeError, r"cannot resize variables that require grad", _resize),
    Rule(
        RuntimeError,
        r"a (?:view of a )?leaf Variable that requires grad (?:is being|has been) used in an in-place",
        _leaf,
    ),
    Rule(RuntimeError, r"is a view and is being modified inplace", _view),
    Rule(RuntimeError, r"[Vv]iew was created in (?:no_grad|inference) mode", _no_grad_view),
    Rule(RuntimeError, r"more than one element of the written-to tensor refers to a single memory location", _expanded),
    Rule(
        RuntimeError,
        r"(?:^|\nRuntimeError: )(\w+)\(\): functions with out=\.\.\. arguments don't support automatic differentiation",
        _out,
    ),
)
