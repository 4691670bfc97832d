"""Optimizers, schedulers, and gradient scaling."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.lines import has_keyword, only_line
from course_utils.explain.loops import attribute_assigned, methods_of
from course_utils.explain.naming import argument, assigned, modules, named, receiver, targets
from course_utils.explain.reading import MISSING, is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, written


def _given_parameters(s: Situation) -> ast.expr | None:
    node = s.node
    return argument(node, 0, "params") if isinstance(node, ast.Call) else None


def _of_nothing(s: Situation, m: re.Match[str]) -> Explanation | None:
    given = _given_parameters(s)
    shown = written(given) or "the list of parameters"
    value: Any = s.here.value(receiver(given)) if s.here is not None and given is not None else MISSING
    if is_a(value, torch.nn.Module):
        hidden = [name for name, held in vars(value).items() if _holds_modules(held)]
        places: list[Place] = []
        why = f"`{shown}` gives nothing: `{written(receiver(given))}` has no parameter of its own."
        fix = "self.layers = nn.ModuleList(...)  # layers in a plain list or dict are not found"
        if hidden:
            why = (
                f"`{shown}` gives nothing: `{hidden[0]}` holds layers in a plain "
                f"{type(vars(value)[hidden[0]]).__name__}, where PyTorch does not look."
            )
            places = only_line(
                s, "kept here", lambda it: isinstance(it, ast.Assign) and f"self.{hidden[0]}" in targets(it)
            )
            fix = f"self.{hidden[0]} = nn.{'ModuleDict' if type(vars(value)[hidden[0]]) is dict else 'ModuleList'}(...)"
        return card(
            "optimizer-of-nothing",
            f"`{shown}` is empty, so the optimizer has nothing to train",
            why,
            fix,
            [*places, *s.needed()],
            bool(hidden),
        )
    name = given.id if isinstance(given, ast.Name) else ""
    made = assigned(s.here, name)[-1:] if s.here is not None and name else []
    if made and "parameters(" in written(made[0], 300):
        why = (
            f"`{name}` is a generator: parameters() gives each parameter once. Whatever went over it before "
            f"has used it up."
        )
        where = (s.here.place("made here", made[0]), *s.needed()) if s.here is not None else ()
        fix = f"{name} = list({written(getattr(made[0], 'value', None)) or 'model.parameters()'})"
        return card(
            "optimizer-of-nothing",
            f"`{name}`, a generator used up before, gave the optimizer nothing",
            why,
            fix,
            where,
            False,
        )
    why = f"`{shown}` contains no parameter. Most often a filter let none through, or layers stand in a plain list."
    fix = "print(len(list(model.parameters())))  # 0? Keep layers in nn.ModuleList, not in a list"
    return card(
        "optimizer-of-nothing",
        f"`{shown}` is empty, so the optimizer has nothing to train",
        why,
        fix,
        s.needed(),
        False,
    )


def _holds_modules(value: Any) -> bool:
    items = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
    return any(is_a(it, torch.nn.Module) or is_a(it, torch.nn.Parameter) for it in items)


def _non_leaf(s: Situation, m: re.Match[str]) -> Explanation | None:
    given = s.given("optim/optimizer.py", "add_param_group", "param_group")
    found = [it for it in given.get("params", ()) if is_a(it, torch.Tensor)] if isinstance(given, dict) else []
    bad = next((it for it in found if not it.is_leaf and not it.retains_grad), None)
    name = named(s, lambda other: other is bad) if bad is not None else ""
    own = name or "w"
    made = [it for it in assigned(s.here, name)][-1:] if s.here is not None and name else []
    node: Any = bad.grad_fn if bad is not None else None
    by = f" by `{type(node).__name__.removesuffix('0').removesuffix('Backward')}`" if node is not None else ""
    why = f"`{own}` was computed{by}, so it is no leaf: a step would change a result, not what is learned."
    fix = f"{own} = {own}.detach().requires_grad_()  # a leaf with these values"
    if "[" in own and len([it for it in found if not it.is_leaf]) > 1 and s.here is not None:
        held = own.partition("[")[0]
        fix = f"{held} = [t.detach().requires_grad_() for t in {held}]  # leaves with these values"
        if type(s.here.look_up(held)) is dict:
            fix = f"{held} = {{k: t.detach().requires_grad_() for k, t in {held}.items()}}  # leaves with these values"
    every = [_name(s, it) for it in found if not it.is_leaf and not it.retains_grad]
    if len(every) > 1 and all(every) and "[" not in own:
        fix = "\n".join(f"{it} = {it}.detach().requires_grad_()" for it in every[:3])
        fix += "\n# and so for the others" if len(every) > 3 else ""
    value = getattr(made[0], "value", None) if made and len(every) < 2 else None
    if isinstance(value, ast.expr) and "requires_grad=True" in ast.unparse(value):
        plain = re.sub(r",\s*requires_grad=True", "", ast.unparse(value))
        fix = f"{own} = ({plain}).requires_grad_()  # after the arithmetic: a leaf"
    where = [s.here.place("made here", it) for it in made] if s.here is not None else []
    for source, scope in methods_of(s.here, own) if s.here is not None and "." in own and "[" not in own else ():
        sets = attribute_assigned(scope, f"self.{own.rpartition('.')[2]}")
        where += [source.place("made here", it) for it in sets]
    return card(
        "optimizer-non-leaf",
        f"`{own}` is not a leaf, and only leaves can be optimized",
        why,
        fix,
        [*where, *s.needed()],
        bad is not None,
    )


def _name(s: Situation, tensor: torch.Tensor) -> str:
    return named(s, lambda other: other is tensor)


def _no_tensors(s: Situation, m: re.Match[str]) -> Explanation | None:
    given = _given_parameters(s)
    value: Any = s.here.value(given) if s.here is not None and given is not None else MISSING
    shown = written(given) or "params"
    if is_a(value, torch.nn.Module):
        why = f"`{shown}` is the module itself; an optimizer takes its parameters."
        return card(
            "optimizer-of-no-tensors",
            f"the optimizer was given `{shown}`, not its parameters",
            why,
            f"{shown}.parameters()",
            s.needed(),
        )
    if is_a(value, torch.Tensor):
        why = f"`{shown}` is one tensor; an optimizer takes a list of them."
        return card(
            "optimizer-of-no-tensors", f"the optimizer was given one tensor, `{shown}`", why, f"[{shown}]", s.needed()
        )
    if "object is not iterable" in s.text and value is MISSING:
        return None
    what = re.search(r"one of the params is (?:an? )?(.*)$", s.text)
    why = "An optimizer takes tensors (or dicts with a list of them under 'params')" + (
        f"; one of these is {what[1]}." if what else "."
    )
    fix = "# give it parameters: what a model's parameters() returns, or a list of tensors"
    parts = given.elts if isinstance(given, ast.List | ast.Tuple) else []
    if s.here is not None and parts and all(is_a(s.here.value(it), torch.nn.Module) for it in parts):
        fix = f"[{', '.join(f'*{written(it)}.parameters()' for it in parts)}]"
    elif called(given) == "state_dict" and receiver(given) is not None:
        why = "Going over a state dict gives its names, and an optimizer takes the parameters themselves."
        fix = f"{written(receiver(given))}.parameters()"
    inner = given.args[0] if isinstance(given, ast.Call) and len(given.args) == 1 else given
    held: Any = s.here.value(inner) if s.here is not None and inner is not None else MISSING
    if type(held) is dict and all(is_a(it, torch.Tensor) for it in held.values()):
        why = f"Going over the dict `{written(inner)}` gives its keys, and an optimizer takes the tensors."
        fix = f"{written(inner)}.values()"
    return card("optimizer-of-no-tensors", f"`{shown}` contains something that is no tensor", why, fix, s.needed())


def _clip_of_module(s: Situation, m: re.Match[str]) -> Explanation | None:
    given = written(argument(s.node, 0, "parameters")) or "model"
    if s.here is None or not is_a(s.here.value(argument(s.node, 0, "parameters")), torch.nn.Module):
        return None
    why = f"Clipping goes over parameters, and `{given}` is the module that holds them."
    headline = f"clipping was given the module `{given}`, not its parameters"
    return card("optimizer-of-no-tensors", headline, why, f"{given}.parameters()", s.needed())


def _setting(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = f"The setting '{m[1]}' of the optimizer is {m[2].strip()}, which is outside of what it can be."
    low = m[1].lower()
    fix = (
        "lr=1e-3  # a positive number"
        if "learning" in low
        else "betas=(0.9, 0.999)"
        if "beta" in low
        else f"# look up the range of '{m[1]}'"
    )
    return card("optimizer-setting", f"the optimizer's {m[1]} was {m[2].strip()}", why, fix, s.needed())


def _closure_without_result(s: Situation, m: re.Match[str]) -> Explanation | None:
    closure = s.given("optim/lbfgs.py", "step", "closure")
    name = getattr(closure, "__name__", "the closure")
    why = f"LBFGS compares the losses of several points, so its closure returns the loss. `{name}` returned None."
    fix = "return loss  # the last line of the closure"
    return card("closure-missing", f"`{name}` returns no loss", why, fix, s.needed())


def _closure(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or "optimizer"
    value: Any = s.here.value(receiver(s.node)) if s.here is not None else None
    kind = type(value).__name__ if is_a(value, torch.optim.Optimizer) else m.groupdict().get("kind") or "LBFGS"
    why = f"{kind} evaluates the loss several times in one step, so it must be given a function (closure) that does so."
    fix = (
        f"def closure():\n    {owner}.zero_grad(); loss = criterion(model(x), y); loss.backward(); return "
        f"loss\n{owner}.step(closure)"
    )
    return card("closure-missing", f"`{owner}.step()` of {kind} needs a closure", why, fix, s.needed())


def _sparse(s: Situation, m: re.Match[str]) -> Explanation | None:
    kind = m[1]
    optimizer = s.given("optim/", "step", "self")
    found: list[tuple[str, torch.nn.Module]] = []
    for call in reversed(s.calls):
        found += [(name, it) for name, it in modules(call) if it.__dict__.get("sparse") is True]
    names = list(dict.fromkeys(name for name, _ in found))
    own = written(receiver(s.node)) or "optimizer"
    if m[2] == "dense":
        why = f"{kind} updates rows that a sparse gradient names, and takes no other gradient."
        fix = f"# give {kind} the layers made with sparse=True only, and the others an optimizer of their own"
        return card("sparse-gradient", f"`{own}` ({kind}) was given a dense gradient", why, fix, s.needed())
    layer = f"`{names[0]}`, made with sparse=True," if names else "A layer made with sparse=True"
    why = f"{layer} has a sparse gradient, and {kind} takes dense ones."
    lr = optimizer.defaults.get("lr", 1e-3) if is_a(optimizer, torch.optim.Optimizer) else 1e-3
    fix = "# make the layer without sparse=True; or give it an optimizer of its own, and the others this one:"
    fix += f"\ntorch.optim.SparseAdam({names[0] if names else 'layer'}.parameters(), lr={lr})"
    headline = f"`{own}` ({kind}) was given a sparse gradient"
    return card(
        "sparse-gradient",
        headline,
        why,
        fix,
        [*only_line(s, "made sparse here", lambda it: has_keyword(it, "sparse")), *s.needed()],
    )


RULES = (
    Rule(RuntimeError, r"^(\w+) (?:optimizer )?does not support (sparse|dense) gradients", _sparse, "optim/"),
    Rule(ValueError, r"optimizer got an empty parameter list", _of_nothing),
    Rule(ValueError, r"can't optimize a non-leaf Tensor", _non_leaf),
    Rule(TypeError, r"object is not iterable", _no_tensors, "optim/optimizer.py"),
    Rule(TypeError, r"^'(\w+)' object is not iterable", _clip_of_module, "nn/utils/clip_grad.py"),
    Rule(TypeError, r"params argument given to the optimizer should be", _no_tensors),
    Rule(TypeError, r"optimizer can only optimize Tensors", _no_tensors),
    Rule(ValueError, r"^Invalid ([a-zA-Z_ ]+?)(?: parameter| value)?(?: at index \d)?: (.*)", _setting, "optim/"),
    Rule(TypeError, r"(?P<kind>\w+)\.step\(\) missing 1 required positional argument: 'closure'", _closure),
    Rule(TypeError, r"'NoneType' object is not callable", _closure, "optim/lbfgs.py"),
    Rule(TypeError, r"float\(\) argument .* not 'NoneType'", _closure_without_result, "optim/lbfgs.py"),
)
