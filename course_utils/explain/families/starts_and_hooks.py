"""What a pass starts from, hooks, and gradients put in place by hand."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.families.no_graph import started_from
from course_utils.explain.lines import everywhere
from course_utils.explain.naming import argument, receiver
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card, shape_in, with_article
from course_utils.explain.situation import Situation
from course_utils.explain.source import FUNCTIONS, called, operand, walk, written


def _scalar(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = written(started_from(s)) or "the output"
    shapes = {tuple(root.shape) for root in s.roots if root.numel() != 1}
    shape = f" of shape {next(iter(shapes))}" if len(shapes) == 1 else ""
    why = (
        f"backward() starts from one number. `{name}` holds several{shape and ','}{shape}, and each would have "
        f"a gradient of its own."
    )
    own = operand(name)
    if called(s.node) == "grad":
        why = f"A gradient starts from one number. `{name}` holds several{shape and ','}{shape}."
        fix = f"# {own}.sum() in its place: one number; or grad_outputs=torch.ones_like({name})"
        return card(
            "seed-missing", f"`{name}`{shape} is not one number, and no grad_outputs was given", why, fix, s.needed()
        )
    fix = (
        f"{own}.mean().backward()  # of a loss: the mean over its samples\n"
        f"{own}.sum().backward()  # of a function of each element: all derivatives at once"
    )
    if any(keyword.arg == "reduction" for node in _statements_of(s, name) for keyword in _keywords(node)):
        why += " It was computed with reduction='none'."
    headline = f"`{name}`{shape} is not one number, and backward() was given no gradient to start from"
    return card("seed-missing", headline, why, fix, s.needed())


def _statements_of(s: Situation, name: str) -> list[ast.stmt]:
    from course_utils.explain.naming import assigned

    return assigned(s.started, name) if s.started is not None else []


def _keywords(node: ast.AST) -> list[ast.keyword]:
    return [it for part in ast.walk(node) if isinstance(part, ast.Call) for it in part.keywords]


def _seed_shape(s: Situation, m: re.Match[str]) -> Explanation | None:
    seed, output = shape_in(m[1]), shape_in(m[2])
    name = written(started_from(s)) or "the output"
    why = (
        f"The gradient to start from says how much each element of `{name}` counts, so it has one number for "
        f"each of them."
    )
    fix = f"{operand(name)}.backward(torch.ones_like({name}))"
    if called(s.node) == "grad":
        fix = f"# grad_outputs: a tensor of the shape of {name}, {output}"
    return card("seed-shape", f"the gradient has shape {seed}, `{name}` has shape {output}", why, fix, s.needed())


def _seed_type(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = written(started_from(s)) or "y"
    given = written(argument(s.node, 0)) or "1.0"
    why = f"The first argument of backward() is a tensor with the shape of `{name}`; it was given {with_article(m[1])}."
    fix = f"{operand(name)}.backward(torch.full_like({name}, {given}))  # or nothing, if {name} is one number"
    return card(
        "seed-type", f"backward() was given {with_article(m[1])} to start from, not a tensor", why, fix, s.needed()
    )


def _assigned_grad(s: Situation, m: re.Match[str]) -> Explanation | None:
    statement = s.line_tree
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    owner = written(target.value) if isinstance(target, ast.Attribute) else "w"
    given = written(statement.value) if isinstance(statement, ast.Assign) else "g"
    sizes = re.search(r"gradient of size '(\[.*?\])' to a tensor of size '(\[.*?\])'", s.text)
    dtypes = re.search(r"dtype '(\w+)' to a tensor with grad_dtype '(\w+)'", s.text)
    kind = re.search(r"but got grad of type (\w+)", s.text)
    if sizes:
        what = f"`{owner}.grad` was given shape {shape_in(sizes[1])}, but `{owner}` has shape {shape_in(sizes[2])}"
        fix = f"# {owner}.grad takes a tensor of shape {shape_in(sizes[2])}: whose gradient is this?"
    elif dtypes:
        names = {"double": "float64", "float": "float32", "half": "float16", "long": "int64"}
        got, own = (names.get(it.lower(), it.lower()) for it in (dtypes[1], dtypes[2]))
        what = f"`{owner}.grad` was given {got}, but `{owner}` is {own}"
        fix = (
            f"{owner}.grad = {operand(given)}.to({owner}.dtype)"
            if given
            else f"# convert the gradient: .to({owner}.dtype)"
        )
    elif kind:
        what = f"`{owner}.grad` was given {with_article(kind[1])}, not a tensor"
        fix = f"{owner}.grad = torch.full_like({owner}, {given})  # or None, for no gradient"
    else:
        return None
    why = "A gradient has the shape, the dtype and the device of the tensor that it belongs to."
    return card("grad-assigned", what, why, fix, s.needed())


def _hook_without_graph(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = written(receiver(s.node)) or "the tensor"
    why = (
        f"A hook runs when a gradient arrives. None will ever arrive at `{name}`: it requires none and no "
        f"recorded operation made it."
    )
    fix = _kept_whole(name, f"register_hook({written(argument(s.node, 0)) or 'hook'})") or (
        f"{name}.requires_grad_()  # before it is used, where its gradient is wanted\n"
        f"if {name}.requires_grad: ...  # around the hook, where {name} may rightly require none"
    )
    return card(
        "hook-without-graph", f"`{name}` gets no gradient, so a hook on it would never run", why, fix, s.needed()
    )


def _retain_grad(s: Situation, m: re.Match[str]) -> Explanation | None:
    if s.within("autograd/__init__.py", "backward") is not None:
        return _inputs_without(s)
    name = written(receiver(s.node)) or "the tensor"
    why = f"retain_grad() keeps a gradient that passes through. None passes through `{name}`, which requires none."
    fix = _kept_whole(name, "retain_grad()") or f"{name}.requires_grad_()  # a leaf keeps its gradient anyway"
    return card(
        "retain-grad-refused", f"`{name}` requires no gradient, so there is none to retain", why, fix, s.needed()
    )


def _kept_whole(name: str, call: str) -> str:
    """Return a call on the tensor from which `.data` or `.detach()` took another one without a graph."""
    cut = re.fullmatch(r"(.+?)(\.data|\.detach\(\))", name)
    return f"{cut[1]}.{call}  # {name} is another tensor, outside the graph" if cut else ""


def _inputs_without(s: Situation) -> Explanation:
    """Explain backward(inputs=...) that was given a tensor which requires no gradient."""
    given = argument(s.node, 99, "inputs")
    parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given] if given is not None else []
    values = [(written(it), s.here.value(it)) for it in parts] if s.here is not None else []
    name = next((own for own, it in values if is_a(it, torch.Tensor) and not it.requires_grad), "")
    shown = f"`{name}`" if name else "one of the inputs"
    why = f"backward(inputs=...) puts gradients into the inputs alone, and {shown} requires none."
    fix = f"{name or 'x'}.requires_grad_()  # before it is used; or leave out of inputs= what is frozen"
    headline = f"{shown} does not require a gradient, and was given as inputs="
    return card("input-without-grad", headline, why, fix, s.at_start(), bool(name))


def _hook_result(s: Situation, m: re.Match[str]) -> Explanation | None:
    if m[0].startswith("expected Variable"):
        kind = m[1]
        why = (
            "What a hook returns replaces the gradient, so it must be a tensor like it; None leaves the "
            "gradient as it is."
        )
        fix = "# return a tensor like the gradient, or nothing, to leave it as it is"
        return card(
            "hook-result", f"a hook returned {with_article(kind)} instead of a gradient", why, fix, s.at_start()
        )
    why = (
        f"What a hook returns replaces the gradient, and a gradient has the shape of its tensor. The "
        f"hook `{m[1]}` changed it."
    )
    fix = "# return a tensor of the shape of the gradient; to look only, return nothing"
    where = [*_hook_returns(s, m[1]), *s.at_start()]
    return card("hook-result", f"the hook `{m[1]}` returned a gradient of another shape", why, fix, where)


def _hook_returns(s: Situation, name: str) -> list[Place]:
    """Return the line by which the only function of a name returns."""
    named = [(source, it) for source, it in everywhere(s) if isinstance(it, FUNCTIONS) and it.name == name]
    ends = [it for it in walk(named[0][1]) if isinstance(it, ast.Return)] if len(named) == 1 else []
    source = named[0][0] if ends else None
    return [source.place("returned here", it) for it in ends[:1] if source]


def _hook_count(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        f"What the full backward hook of a module returns replaces the gradients of its inputs: {m[2]} here, "
        f"and it returned {m[1]}."
    )
    fix = "# return a tuple of as many gradients as grad_input has; to look only, return nothing"
    headline = f"a full backward hook returned {m[1]} gradients for {m[2]} {'input' if m[2] == '1' else 'inputs'}"
    return card("hook-result", headline, why, fix, s.at_start())


def _post_accumulate(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = written(receiver(s.node)) or "the tensor"
    why = (
        f"This hook runs after a gradient was added to `.grad`, which happens at leaves. `{name}` was "
        f"computed, so it is none."
    )
    fix = f"{name}.register_hook(lambda grad: ...)  # when the gradient passes through {name}"
    return card("hook-on-leaves-only", f"`{name}` is not a leaf, and this hook is for leaves", why, fix, s.needed())


RULES = (
    Rule(RuntimeError, r"grad can be implicitly created only for scalar outputs", _scalar),
    Rule(
        RuntimeError,
        r"Mismatch in shape: grad_output\[\d+\] has a shape of (.*?) and output.*? a shape of (.*?\]\))",
        _seed_shape,
    ),
    Rule(TypeError, r"^'(\w+)' object is not iterable", _seed_type, "autograd/__init__.py"),
    Rule(TypeError, r"gradients can be either Tensors or None, but got (\w+)", _seed_type),
    Rule(RuntimeError, r"attempting to assign a gradient", _assigned_grad),
    Rule(TypeError, r"assigned grad expected to be a Tensor or None", _assigned_grad),
    Rule(RuntimeError, r"cannot register a hook on a tensor that doesn't require gradient", _hook_without_graph),
    Rule(RuntimeError, r"can't retain_grad on Tensor that has requires_grad=False", _retain_grad),
    Rule(RuntimeError, r"hook '(.*?)' has changed the size of value", _hook_result),
    Rule(
        RuntimeError,
        r"Backward hook returned an invalid number of grad_input, got (\d+), but expected (\d+)",
        _hook_count,
    ),
    Rule(TypeError, r"expected Variable, but hook returned '([\w.]+)'", _hook_result),
    Rule(RuntimeError, r"post accumulate grad hooks cannot be registered on non-leaf", _post_accumulate),
)
