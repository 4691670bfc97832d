"""Optimizers, schedulers, and gradient scaling."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.naming import argument, assigned, named, receiver
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
        why = f"`{shown}` gives nothing: `{written(receiver(given))}` has no parameter of its own."
        fix = "self.layers = nn.ModuleList(...)  # layers in a plain list or dict are not found"
        if hidden:
            why = (
                f"`{shown}` gives nothing: `{hidden[0]}` holds layers in a plain "
                f"{type(vars(value)[hidden[0]]).__name__}, where PyTorch does not look."
            )
            fix = f"self.{hidden[0]} = nn.{'ModuleDict' if type(vars(value)[hidden[0]]) is dict else 'ModuleList'}(...)"
        return card(
            "optimizer-of-nothing",
            f"`{shown}` is empty, so the optimizer has nothing to train",
            why,
            fix,
            s.needed(),
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
    value = getattr(made[0], "value", None) if made else None
    if isinstance(value, ast.expr) and "requires_grad=True" in ast.unparse(value):
        plain = re.sub(r",\s*requires_grad=True", "", ast.unparse(value))
        fix = f"{own} = ({plain}).requires_grad_()  # after the arithmetic: a leaf"
    where = [s.here.place("made here", it) for it in made] if s.here is not None else []
    return card(
        "optimizer-non-leaf",
        f"`{own}` is not a leaf, and only leaves can be optimized",
        why,
        fix,
        [*where, *s.needed()],
        bad is not None,
    )


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
    return card("optimizer-of-no-tensors", f"`{shown}` contains something that is no tensor", why, fix, s.needed())


def _twice(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = ""
    group = s.given("optim/optimizer.py", "add_param_group", "param_group")
    optimizer = s.given("optim/optimizer.py", "add_param_group", "self")
    if isinstance(group, dict) and is_a(optimizer, torch.optim.Optimizer):
        known = {id(it) for other in optimizer.param_groups for it in other["params"]}
        both = [it for it in group["params"] if id(it) in known]
        name = named(s, lambda other: any(other is it for it in both)) if both else ""
    what = f"`{name}`" if name else "a parameter"
    if issubclass(s.kind, Warning):
        why = "The same tensor stands twice in one group, so each step would move it twice."
        given = written(_given_parameters(s)) or "parameters"
        return card(
            "parameters-twice",
            "a list of parameters contains one twice",
            why,
            f"list({{id(p): p for p in {given}}}.values())  # each once",
            s.needed(),
        )
    why = f"{what} stands in two groups, so each step would move it twice."
    fix = f"# leave {name or 'it'} out of one of the two groups"
    if called(s.node) == "add_param_group":
        why = f"{what} is in this optimizer already, and would be moved twice by each step."
        fix = f"# leave {name or 'it'} out here, or out of the optimizer where it is made"
    return card("parameters-twice", f"{what} was given to the optimizer twice", why, fix, s.needed(), bool(name))


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


RULES = (
    Rule(ValueError, r"optimizer got an empty parameter list", _of_nothing),
    Rule(ValueError, r"can't optimize a non-leaf Tensor", _non_leaf),
    Rule(TypeError, r"object is not iterable", _no_tensors, "optim/optimizer.py"),
    Rule(TypeError, r"params argument given to the optimizer should be", _no_tensors),
    Rule(TypeError, r"optimizer can only optimize Tensors", _no_tensors),
    Rule(ValueError, r"some parameters appear in more than one parameter group", _twice),
    Rule(Warning, r"parameter group with duplicate parameters", _twice),
    Rule(ValueError, r"^Invalid ([a-zA-Z_ ]+?)(?: parameter| value)?(?: at index \d)?: (.*)", _setting, "optim/"),
    Rule(TypeError, r"(?P<kind>\w+)\.step\(\) missing 1 required positional argument: 'closure'", _closure),
    Rule(TypeError, r"'NoneType' object is not callable", _closure, "optim/lbfgs.py"),
    Rule(TypeError, r"float\(\) argument .* not 'NoneType'", _closure_without_result, "optim/lbfgs.py"),
)
