"""What modules and optimizers keep: state dicts, attributes, copies."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.naming import argument, receiver
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, operand, written


def _state_dict(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or "model"
    given = written(argument(s.node, 0, "state_dict")) or "state"
    missing = re.findall(r'"([^"]+)"', _between(s.text, "Missing key(s) in state_dict:", "\n"))
    unexpected = re.findall(r'"([^"]+)"', _between(s.text, "Unexpected key(s) in state_dict:", "\n"))
    sizes = re.findall(
        r"size mismatch for (\S+): copying a param with shape torch\.Size\(\[(.*?)\]\) from checkpoint, the "
        r"shape in current model is torch\.Size\(\[(.*?)\]\)",
        s.text,
    )
    if sizes:
        name, saved, own = sizes[0]
        names = tuple(it[0] for it in sizes[:4])
        more = f" The same holds for {len(sizes) - 1} more." if len(sizes) > 1 else ""
        why = (
            f"`{name}` has shape ({saved}) in `{given}` and ({own}) in `{owner}`: it was built with other sizes.{more}"
        )
        fix = (
            f"# build {owner} with the sizes of the checkpoint, or leave this part out:\nstate = "
            f"{{k: v for k, v in {given}.items() if k not in {names}}}\n{owner}.load_state_dict(state, strict=False)"
        )
        return card(
            "state-shape", f"`{name}` is ({saved}) in the checkpoint and ({own}) in `{owner}`", why, fix, s.needed()
        )
    if not missing and not unexpected:
        return None
    for prefix in ("module.", "_orig_mod.", "model."):
        shorter = {key.removeprefix(prefix) for key in unexpected if key.startswith(prefix)}
        if unexpected and len(shorter) == len(unexpected) and shorter >= set(missing):
            by = {"module.": "DataParallel or DistributedDataParallel", "_orig_mod.": "torch.compile"}.get(
                prefix, "another module around it"
            )
            why = f"All names in `{given}` begin with '{prefix}': as a model saves them that is inside {by}."
            fix = f"state = {{k.removeprefix('{prefix}'): v for k, v in {given}.items()}}"
            fix += f"\n{owner}.load_state_dict(state)"
            return card(
                "state-keys",
                f"the names in `{given}` have '{prefix}' before those of `{owner}`",
                why,
                fix,
                s.needed(),
            )
    value: Any = s.here.value(argument(s.node, 0, "state_dict")) if s.here is not None else None
    inner = [key for key, it in value.items() if isinstance(it, dict)] if isinstance(value, dict) else []
    own = s.here.value(receiver(s.node)) if s.here is not None else None
    expected = set(torch.nn.Module.state_dict(own)) if is_a(own, torch.nn.Module) else set()
    for key in inner:
        if expected and set(value[key]) == expected:
            why = (
                f"`{given}` is a whole checkpoint, with {', '.join(map(repr, list(value)[:4]))}; the model's "
                f"part of it is `{given}['{key}']`."
            )
            return card(
                "state-keys",
                f"`{given}` is a checkpoint, not the state of `{owner}`",
                why,
                f"{owner}.load_state_dict({given}['{key}'])",
                s.needed(),
            )
    why = f"`{owner}` and `{given}` name different parameters."
    if missing:
        why += f" Missing: {_some(missing)}."
    if unexpected:
        why += f" Not known: {_some(unexpected)}."
    fix = (
        f"print({owner})  # is it the model that was saved?\n{owner}.load_state_dict({given}, strict=False)  # "
        f"loads what fits, and returns what does not"
    )
    return card("state-keys", f"`{given}` does not belong to a model like `{owner}`", why, fix, s.needed(), False)


def _not_a_state(s: Situation, m: re.Match[str]) -> Explanation | None:
    given = written(argument(s.node, 0, "state_dict")) or "what was given"
    value = s.here.value(argument(s.node, 0, "state_dict")) if s.here is not None else None
    kind = m[1].rpartition(".")[2]
    why = f"load_state_dict takes the dict that state_dict() gives. `{given}` is of type {kind}."
    fix = f"{operand(given)}.state_dict()" if is_a(value, torch.nn.Module) else "# give the dict of a state_dict()"
    return card("state-keys", f"`{given}` is not a state dict", why, fix, s.needed())


def _lazy(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "A lazy layer makes its parameters when it sees the first input. None has gone through this model yet."
    fix = "# call the model once with an example input, before its parameters are used"
    return card("module-before-init", "a parameter of a lazy layer was used before it was made", why, fix, s.needed())


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"'{name}'" for name in names[:3]) + more


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


def _groups(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or "optimizer"
    given = written(argument(s.node, 0, "state_dict")) or "state"
    what = (
        "another number of groups"
        if "number of parameter groups" in s.text
        else "another number of parameters in a group"
    )
    why = f"`{given}` was saved from an optimizer with {what} than `{owner}`: parameters are matched by their order."
    fix = "# make the optimizer from the same model, with the same groups, as when it was saved"
    return card("state-groups", f"`{given}` has {what} than `{owner}`", why, fix, s.needed())


def _before_init(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner: Any = None
    for frame in reversed(s.torch_frames):
        value = frame.f_locals.get("self")
        if is_a(value, torch.nn.Module):
            owner = value
            break
    kind = type(owner).__name__ if owner is not None else "the module"
    if owner is not None and "_parameters" in vars(owner):
        return None
    why = (
        f"`{kind}.__init__` must call super().__init__() before anything else: that call makes the dicts in "
        f"which parameters are kept."
    )
    fix = "def __init__(self):\n    super().__init__()  # first"
    return card("module-before-init", f"`{kind}` is used before super().__init__()", why, fix, s.needed())


def _as_parameter(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = m[1]
    given = s.given("nn/modules/module.py", "register_parameter", "param")
    given = given if is_a(given, torch.Tensor) else s.given("nn/modules/module.py", "__setattr__", "value")
    if is_a(given, torch.Tensor) and given.grad_fn is not None:
        shown = _value(s)
        why = f"`{shown}` was computed, so it is no leaf. A parameter is a leaf, which an optimizer may change."
        fix = f"nn.Parameter({operand(shown)}.detach().clone())  # a new leaf and a copy of these values"
        return card(
            "parameter-non-leaf",
            f"`{shown}` is the result of a computation, and cannot be the parameter `{name}`",
            why,
            fix,
            s.needed(),
        )
    why = f"`{name}` is a parameter of the module, and what was assigned is a plain tensor."
    fix = (
        f"with torch.no_grad():\n    model.{name}.copy_(values)  # new values, the same "
        f"parameter\nmodel.{name} = nn.Parameter(values)  # or another parameter"
    )
    owner = _owner(s)
    fix = fix.replace("model.", f"{owner}.").replace("values", _value(s))
    return card("parameter-not-tensor", f"`{name}` is a parameter, and was given a plain tensor", why, fix, s.needed())


def _owner(s: Situation) -> str:
    statement = s.line_tree
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return written(target.value) if isinstance(target, ast.Attribute) else written(receiver(s.node)) or "model"


def _value(s: Situation) -> str:
    statement = s.line_tree
    value = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
    if isinstance(value, ast.Call) and called(value) == "register_parameter":
        value = argument(value, 1, "param")
    return written(value, 30) or "values"


def _not_a_module(s: Situation, m: re.Match[str]) -> Explanation | None:
    what = m[1].rpartition(".")[2]
    why = f"Sequential, ModuleList and add_module take modules. `{what}` is a function or a plain value."
    modules = {
        "relu": "nn.ReLU()",
        "sigmoid": "nn.Sigmoid()",
        "tanh": "nn.Tanh()",
        "softmax": "nn.Softmax(dim=1)",
        "flatten": "nn.Flatten()",
        "gelu": "nn.GELU()",
    }
    fix = (
        f"{modules.get(what, 'nn.ReLU()')}  # the module, for the function torch.{what}"
        if what in modules
        else "# write it as a module, or call it in forward"
    )
    return card("not-a-module", f"`{what}` is not a module", why, fix, s.needed())


def _no_forward(s: Situation, m: re.Match[str]) -> Explanation | None:
    kind = m[1]
    module = s.given("nn/modules/module.py", "_forward_unimplemented", "self")
    own = [name for name in vars(type(module)) if not name.startswith("__")] if module is not None else []
    close = [name for name in own if set("forward") <= set(name)]
    why = f"Calling a module runs its forward, and `{kind}` defines none" + (
        f"; it has `{close[0]}`." if close else "."
    )
    fix = "def forward(self, x): ...  # a method of the class: mind spelling and indentation"
    return card("module-without-forward", f"`{kind}` has no method named forward", why, fix, s.needed())


RULES = (
    Rule(RuntimeError, r"Error\(s\) in loading state_dict for", _state_dict),
    Rule(TypeError, r"Expected state_dict to be dict-like, got <class '(.*?)'>", _not_a_state),
    Rule(
        ValueError,
        r"Attempted to use an uninitialized parameter",
        _lazy,
    ),
    Rule(
        ValueError,
        r"loaded state dict (?:has a different number of|contains a) parameter group",
        _groups,
    ),
    Rule(
        AttributeError, r"cannot assign (?:module|parameters|buffers?) before Module\.__init__\(\) call", _before_init
    ),
    Rule(
        AttributeError,
        r"object has no attribute '_(?:backward_hooks|parameters|modules|buffers|forward_hooks)'",
        _before_init,
        "nn/modules/module.py",
    ),
    Rule(TypeError, r"cannot assign '[^']+'(?: object)? (?:as|to) parameter '(\w+)'", _as_parameter),
    Rule(ValueError, r"Cannot assign non-leaf Tensor to parameter '(\w+)'", _as_parameter),
    Rule(TypeError, r"^(\S+) is not a Module subclass", _not_a_module),
    Rule(NotImplementedError, r"Module \[(\w+)\] is missing the required \"forward\" function", _no_forward),
)
