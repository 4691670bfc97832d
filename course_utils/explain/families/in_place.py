"""Writes in place, where PyTorch still needs what was there, or cannot record them."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.naming import argument, modules, receiver, tensors, variables
from course_utils.explain.nodes import behind, modified, operation, operation_named, recorded_lines, same_memory
from course_utils.explain.rerun import Write
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Call, Situation
from course_utils.explain.source import called, written
from course_utils.explain.writers import saves, steps, surely_ran, writes


def _saved_was_written(s: Situation, m: re.Match[str]) -> Explanation | None:
    start = s.started
    if start is None:
        return None
    versions = re.search(r"is at version (\d+); expected version (\d+)", s.text)
    found = modified(behind(s.roots))
    fitting = [it for it in found if versions is None or it[2]._version == int(versions[1])] or found
    needed = (start.place("needed here"),)
    if not fitting:
        return _from_message(s, needed)
    node, kept_as, tensor = fitting[0]
    names = _names(s, tensor)
    op = operation(node)
    write = s.writes.last_into(tensor) if s.writes is not None else None
    if write is not None:
        return _seen(s, write, names, op, _anomaly(s, node), needed)
    parameter = _parameter(s, tensor)
    if parameter is not None:
        stepped = [(call, it) for call in s.calls for it in steps(call, parameter)]
        if stepped:
            return _stepped(s, names, op, stepped, needed)
    wrote = [(call, it) for call in s.calls for name in names for it in writes(call, name)]
    wrote = list({id(it): (call, it) for call, it in wrote}.values())
    saved = [(call, it) for call in s.calls for it in saves(call, op, names)]
    saved = [it for it in saved if it[1] not in [other for _, other in wrote]]
    where = _anomaly(s, node) or ([saved[0][0].place("saved here", saved[0][1])] if len(saved) == 1 else [])
    layers = _layers(s) if not wrote else []
    where += [call.place("overwritten here", it) for call, it in wrote[:2]][: 2 if not where else 1]
    name = f"`{names[0]}`" if names else f"the result of `{op}`" if kept_as == "result" else "a tensor without a name"
    why = f"`{op}` saved {name} for its derivative, and something wrote into it before backward() read it."
    if wrote:
        return _rewritten(s, name, names, op, wrote, where, needed, tensor)
    if layers:
        why += f" {', '.join(f'`{it}`' for it in layers[:3])} writes in place."
        fix = f"nn.ReLU()  # without inplace=True, for {layers[0]}"
        return card(
            "in-place", f"{name}, which `{op}` had saved, was overwritten in place", why, fix, [*where, *needed], False
        )
    why += " No line of the functions at work writes into it by name."
    fix = (
        f"{names[0] if names else 'x'} = {names[0] if names else 'x'}.clone()  # before it is written to\n# "
        f"%%explain finds the line"
    )
    return card(
        "in-place", f"{name}, which `{op}` had saved, was overwritten in place", why, fix, [*where, *needed], False
    )


def _seen(
    s: Situation, write: Write, names: list[str], op: str, saved: list[Place], needed: tuple[Place, ...]
) -> Explanation:
    """Say which line was seen to write, when the cell ran again."""
    name = f"`{names[0]}`" if names else f"a tensor saved by `{op}`"
    source = s.sources.of(write.file)
    text = source.text(write.line) if source is not None else ""
    place = Place("overwritten here", write.file, write.line, text)
    why = (
        f"`{op}` saved {name} for its derivative. When the cell ran again, `{write.function}` was seen to "
        f"write into it here."
    )
    statement = (
        next((it for it in ast.walk(source.tree) if isinstance(it, ast.stmt) and it.lineno == write.line), None)
        if source
        else None
    )
    fix = _out_of_place(statement) if statement is not None else "write the result into a new tensor"
    headline = f"{name}, which `{op}` had saved, was overwritten in place"
    code = "in-place-by-step" if ".step(" in text else "in-place"
    if code == "in-place-by-step":
        fix = f"# all backward passes first, then {text}\n# or: compute this loss again after the step"
    return card(code, headline, why, fix, [*saved, place, *needed], True)


def _rewritten(
    s: Situation, name: str, names: list[str], op: str, wrote: list[tuple[Call, ast.stmt]], where: list[Place],
    needed: tuple[Place, ...], tensor: torch.Tensor,
) -> Explanation:  # fmt: skip
    call, statement = wrote[0]
    line = f"`{written(statement, 60)}`" if written(statement, 60) else f"line {statement.lineno}"
    why = f"`{op}` saved {name} for its derivative. {line} wrote into the same memory before backward() read it."
    certain = len(wrote) == 1 and tensor._version == 1 and surely_ran(call, statement)
    fix = _out_of_place(statement)
    headline = f"{name}, which `{op}` had saved, was overwritten in place"
    return card("in-place", headline, why, fix, [*where, *needed], certain)


def _out_of_place(statement: ast.stmt) -> str:
    """Return the statement so that it makes a new tensor."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        target = written(statement.target)
        whole = ast.BinOp(ast.Name(target), statement.op, statement.value)
        return f"{target} = {ast.unparse(ast.fix_missing_locations(whole))}  # makes a new tensor"
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr.endswith("_"):
        owner = written(value.func.value)
        new = {"zero": f"torch.zeros_like({owner})", "fill": f"torch.full_like({owner}, {written(argument(value, 0))})"}
        method = value.func.attr.removesuffix("_")
        given = ", ".join(ast.unparse(it) for it in value.args)
        if owner.isidentifier():
            return f"{owner} = {new.get(method, f'{owner}.{method}({given})')}  # makes a new tensor"
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    target = statement.target if isinstance(statement, ast.AugAssign) else target
    if isinstance(target, ast.Subscript):
        base = written(target.value)
        return f"{base} = {base}.clone()  # before this line: then it writes into a copy"
    return "write the result into a new tensor: without `_`, `+=`, `out=` and inplace=True"


def _stepped(
    s: Situation, names: list[str], op: str, stepped: list[tuple[Call, ast.stmt]], needed: tuple[Place, ...]
) -> Explanation:
    name = f"`{names[0]}`" if names else "a parameter"
    call, statement = stepped[-1]
    line = written(statement, 40) or "optimizer.step()"
    why = (
        f"The graph was recorded with the values that {name} had then. `{line}` wrote new ones into it, "
        "and this pass still needs the old ones."
    )
    fix = f"# all backward passes first, then {line}\n# or: compute this loss again after the step"
    certain = len(stepped) == 1 and surely_ran(call, statement)
    headline = f"{name} was changed by `{line}` between its use and this backward pass"
    return card("in-place-by-step", headline, why, fix, [call.place("overwritten here", statement), *needed], certain)


def _from_message(s: Situation, needed: tuple[Place, ...]) -> Explanation:
    """Say what the text alone gives, where the graph is gone or hides what it keeps."""
    made = re.search(r"output \d+ of (\w+),", s.text)
    what = f"the result of `{operation_named(made[1])}`" if made else "a tensor"
    why = f"A backward step needs {what} as it was in the forward pass, and something has written into it since."
    fix = (
        "look for `+=`, `x[...] =`, methods that end in `_`, inplace=True, optimizer.step()\n# %%explain finds the line"
    )
    return card("in-place", f"{what}, saved for backward, was overwritten in place", why, fix, needed, False)


def _anomaly(s: Situation, node: object) -> list[Place]:
    """Return the line at which the operation was recorded, if anomaly mode kept it."""
    for entry in reversed(recorded_lines(node)):
        match = re.search(r'File "([^"]+)", line (\d+), in', entry)
        if match is None:
            continue
        for call in s.calls:
            if call.file == match[1]:
                return [call.place("saved here", int(match[2]))]
    return []


def _names(s: Situation, tensor: torch.Tensor) -> list[str]:
    """Return the learner's names for a memory, the very tensor before its views and aliases."""
    found: dict[str, bool] = {}
    for call in reversed(s.calls):
        for name, other in tensors(call):
            if same_memory(other, tensor) and name not in found:
                found[name] = other.shape == tensor.shape and other.stride() == tensor.stride()
    return sorted(found, key=lambda name: (not found[name], len(name.split(".")), name))


def _parameter(s: Situation, tensor: torch.Tensor) -> torch.Tensor | None:
    for call in reversed(s.calls):
        for _, other in tensors(call):
            if other.is_leaf and other.requires_grad and same_memory(other, tensor):
                return other
        for _, value in variables(call):
            if isinstance(value, torch.optim.Optimizer):
                for group in value.param_groups:
                    for own in group["params"]:
                        if same_memory(own, tensor):
                            return own  # type: ignore[no-any-return]
    return None


def _layers(s: Situation) -> list[str]:
    """Return the layers that write in place."""
    found: dict[int, str] = {}
    for call in s.calls:
        for name, module in modules(call):
            if module.__dict__.get("inplace") is True:
                found.setdefault(id(module), f"{name} = {type(module).__name__}(inplace=True)")
    return list(found.values())


def _leaf(s: Situation, m: re.Match[str]) -> Explanation | None:
    view = s.text.startswith("a view of")
    target = _target(s)
    name = f"`{target}`" if target else "a leaf that requires a gradient"
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
        return written(_whole(statement.target))
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return written(_whole(statement.targets[0]))
    if called(s.node).endswith("_"):
        owner = receiver(s.node)
        if s.here is not None and isinstance(s.here.value(owner), torch.Tensor):
            return written(_whole(owner))
        return written(argument(s.node, 0)) or written(_whole(owner))
    if called(s.node) == "apply":
        return written(argument(s.node, 0))
    return ""


def _whole(node: ast.expr | None) -> ast.expr | None:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _view(s: Situation, m: re.Match[str]) -> Explanation | None:
    target = _target(s)
    name, own = (f"`{target}`", target) if target else ("the view", "y")
    if "BackwardHookFunction" in s.text:
        why = "A full backward hook of a module wraps its output, and what is wrapped must not be written into."
        fix = _out_of_place(s.line_tree) if s.line_tree is not None else "y = y + 1"
        headline = f"{name} comes from a module with a full backward hook, and was written into"
        return card("hooked-module-in-place", headline, why, fix, s.needed())
    if "multiple views" in s.text:
        made = operation_named(re.sub(r"^.*Output \d+ of (\w+) is.*$", r"\1", s.text, flags=re.DOTALL))
        why = (
            f"{name} is one of several views that `{made}` gave at once. PyTorch cannot record a write into "
            f"one of them."
        )
        fix = _out_of_place(s.line_tree) if s.line_tree is not None else f"{own} = {own} + 1"
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


def _no_grad_view(s: Situation, m: re.Match[str]) -> Explanation | None:
    target = _target(s)
    name = f"`{target}`" if target else "a view"
    mode = "inference_mode" if "inference mode" in s.text else "no_grad"
    why = (
        f"{name} was made under torch.{mode}() and is written into outside. PyTorch cannot tell whether to record that."
    )
    fix = f"with torch.{mode}():\n    {written(s.line_tree, 60) or '...'}  # or make the view outside, too"
    return card(
        "view-from-no-grad-in-place",
        f"{name}, a view made under {mode}, is written into with recording on",
        why,
        fix,
        s.needed(),
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
    out = written(argument(s.node, 99, "out")) or "result"
    why = (
        "`out=` writes into memory that is there already, which autograd cannot record. An argument requires a "
        "gradient."
    )
    given = ", ".join(ast.unparse(it) for it in s.node.args) if isinstance(s.node, ast.Call) else "..."
    fix = f"{out} = torch.{function}({given})  # or keep out= and put it under torch.no_grad()"
    return card("out-argument", f"`{function}` with out= was to be recorded for a gradient", why, fix, s.needed())


RULES = (
    Rule(RuntimeError, r"modified by an inplace operation", _saved_was_written),
    Rule(
        RuntimeError,
        r"a (?:view of a )?leaf Variable that requires grad (?:is being|has been) used in an in-place",
        _leaf,
    ),
    Rule(RuntimeError, r"is a view and is being modified inplace", _view),
    Rule(RuntimeError, r"[Vv]iew was created in (?:no_grad|inference) mode", _no_grad_view),
    Rule(RuntimeError, r"more than one element of the written-to tensor refers to a single memory location", _expanded),
    Rule(
        RuntimeError, r"^(\w+)\(\): functions with out=\.\.\. arguments don't support automatic differentiation", _out
    ),
)
