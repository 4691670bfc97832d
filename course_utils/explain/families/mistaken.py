"""Calls of what is something else: a loss that took its function's name, a class for its object, a tensor's step()."""

from __future__ import annotations

import ast
import inspect
import re

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.naming import assigned, class_called, receiver
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card, with_article
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, written

_OWNERS = {
    "step": "the optimizer (or the scheduler)",
    "zero_grad": "the optimizer, and to the model",
    "train": "the model",
    "eval": "the model",
    "parameters": "the model",
    "state_dict": "the model, and to the optimizer",
}


def _tensor_called(s: Situation, m: re.Match[str]) -> Explanation | None:
    """A name that was a function (a loss, most often) and got the function's result, and is called once more."""
    if s.here is None or not isinstance(s.node, ast.Call):
        return None
    name = written(s.node.func)
    if not name or not is_a(s.here.value(s.node.func), torch.Tensor):
        return None
    own = next((it for it in assigned(s.here, name) if called(getattr(it, "value", None)) == name), None)
    if own is None:
        return None
    why = f"Line {own.lineno} gave the name `{name}` to the result. From then on `{name}` is a tensor, and no function."
    fix = f"# two names, here as for a loss: criterion = ... before the loop, then in it\nloss = criterion({_given(s)})"
    where = (s.here.place("the name changes its meaning", own), *s.needed())
    return card("name-taken", f"`{name}` is a tensor now, and was called as a function", why, fix, where)


def _step_called_with(s: Situation, m: re.Match[str]) -> Explanation | None:
    """`optimizer.step(loss)`: what step() takes is a function, which it calls."""
    owner, given = written(receiver(s.node)) or "optimizer", _given(s)
    if not given:
        return None
    why = (
        f"What step() takes is a function (closure) that computes the loss again, and it called `{given}`. "
        "Gradients reach the optimizer by `.grad`, which backward() filled: it needs no loss."
    )
    return card("step-given-loss", f"`{owner}.step()` was given `{given}`", why, f"{owner}.step()", s.needed())


def _given(s: Situation) -> str:
    """Return the arguments of the failing call as they were written."""
    return ", ".join(ast.unparse(it) for it in s.node.args) if isinstance(s.node, ast.Call) else ""


def _not_its_method(s: Situation, m: re.Match[str]) -> Explanation | None:
    """`loss.step()`, `optimizer.backward()`: a method of another part of the training."""
    owner, kind, method = written(receiver(s.node)), m[1], m[2]
    value = getattr(s.error, "obj", None)
    if is_a(value, torch.Tensor) and method in _OWNERS:
        why = f"{method}() belongs to {_OWNERS[method]}. `{owner or 'it'}` is a tensor."
        fix = f"optimizer.{method}()" if method in ("step", "zero_grad") else f"model.{method}()"
    elif is_a(value, torch.optim.Optimizer) and method == "backward":
        why = f"backward() belongs to the loss, from which the pass starts. `{owner or kind}` is an optimizer."
        fix = f"loss.backward()\n{owner or 'optimizer'}.step()"
    elif is_a(value, torch.nn.Module) and method == "step":
        why = f"step() belongs to the optimizer, which holds the parameters. `{owner or kind}` is a module."
        fix = "optimizer.step()"
    else:
        return None
    return card("other-owner", f"`{owner or kind}` has no {method}()", why, fix, s.needed())


def _class_given_input(s: Situation, m: re.Match[str]) -> Explanation | None:
    """`Net(x)`: the class makes the model, and the model takes the input."""
    kind = class_called(s)
    if s.here is None or not isinstance(s.node, ast.Call) or kind is None or not issubclass(kind, torch.nn.Module):
        return None
    made = [written(it.func) for it in s.node.args if isinstance(it, ast.Call)]
    if not any(is_a(s.here.value(it), torch.Tensor) for it in s.node.args) and not any(
        name.startswith("torch.") for name in made
    ):
        return None
    name, given = written(s.node.func), _given(s)
    why = f"`{name}(...)` makes the model, and takes the arguments of its __init__. The model is called with the input."
    fix = f"model = {name}()\nout = model({given})"
    return card("class-for-model", f"`{name}` is a class, and was given the input", why, fix, s.needed())


def _class_asked(s: Situation, m: re.Match[str]) -> Explanation | None:
    """`Net.parameters()`, `Square.forward(x)`: a method of an object, called on its class."""
    owner = receiver(s.node)
    kind = s.here.value(owner) if s.here is not None and owner is not None else None
    if not is_a(kind, type):
        return None
    name = written(owner)
    if issubclass(kind, torch.autograd.Function) and called(s.node) == "forward":
        why = f"`{name}.forward` takes ctx first, and makes no node of `{name}`. `{name}.apply` makes both."
        fix = f"{name}.apply({_given(s)})"
        return card("function-called", f"`{name}.forward` was called instead of `{name}.apply`", why, fix, s.needed())
    if issubclass(kind, torch.nn.Module) and m["missing"] == "self":
        method = called(s.node)
        why = f"`{name}` is the class. Parameters belong to a model that was made of it."
        fix = f"model = {name}()  # with its arguments\nmodel.{method}({_given(s)})"
        return card("class-for-model", f"`{name}.{method}` was called on the class", why, fix, s.needed())
    return None


def _unknown_setting(s: Situation, m: re.Match[str]) -> Explanation | None:
    """An optimizer or a scheduler that was given a setting which another one has."""
    kind = class_called(s)
    if kind is None:
        return None
    optimizer = issubclass(kind, torch.optim.Optimizer)
    if not optimizer and not issubclass(kind, torch.optim.lr_scheduler.LRScheduler):
        return None
    name, setting = kind.__name__, m[1]
    known = [it for it in inspect.signature(kind).parameters if it not in ("params", "optimizer")]
    why = f"{name} has no setting `{setting}`. It has: {', '.join(known)}."
    fix = f"# leave {setting} out"
    if setting == "momentum" and "betas" in known:
        fix = "betas=(0.9, 0.999)  # the first of the two does what momentum does"
    code = "optimizer-setting" if optimizer else "scheduler-setting"
    return card(code, f"{name} was given a setting that it has not: {setting}", why, fix, s.needed())


def _rule_of_rates(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "LambdaLR and MultiplicativeLR call what they are given with the number of a step. "
    why += f"{with_article(m[1]).capitalize()} cannot be called."
    fix = "lr_lambda=lambda step: 0.95**step  # LambdaLR: the factor of the first rate\n"
    fix += "torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.95)  # or the one that takes a number"
    headline = f"the scheduler was given {with_article(m[1])}, not a function"
    return card("scheduler-setting", headline, why, fix, s.needed())


RULES = (
    Rule(TypeError, r"^'(?:Tensor|Parameter)' object is not callable", _step_called_with, "optim/"),
    Rule(TypeError, r"^'(?:Tensor|Parameter)' object is not callable", _tensor_called),
    Rule(TypeError, r"^'(float|int)' object is not callable", _rule_of_rates, "optim/lr_scheduler.py"),
    Rule(AttributeError, r"^'(\w+)' object has no attribute '(\w+)'", _not_its_method),
    Rule(
        TypeError,
        r"__init__\(\) takes (?:from )?\d+ .*positional arguments? but \d+ (?:were|was) given",
        _class_given_input,
    ),
    Rule(TypeError, r"\(\) missing \d+ required positional arguments?: .*'(?P<missing>\w+)'$", _class_asked),
    Rule(TypeError, r"__init__\(\) got an unexpected keyword argument '(\w+)'", _unknown_setting),
)
