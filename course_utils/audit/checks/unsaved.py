"""What is used later and not saved: a tensor, a number, a lost buffer of a module; the state of an optimizer."""

from __future__ import annotations

import ast
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import nn

from course_utils.audit.check import Check, Found
from course_utils.audit.checks.resuming import goes_on_without_state
from course_utils.audit.classes import assigned_anywhere, parts_of_ones_own
from course_utils.audit.lines import Spot
from course_utils.audit.source import taken_apart, tree_of
from course_utils.explain.source import called, names_of

_MOST = 50
_MAKING = frozenset({"__init__", "reset", "reset_parameters"})
# A class with one of these sees to its own state.
_OWN_WAY = frozenset({"get_extra_state", "state_dict", "_save_to_state_dict", "_load_from_state_dict"})
_IN_PLACE = frozenset({"add_", "sub_", "mul_", "div_", "lerp_", "addcmul_", "addcdiv_", "clamp_", "pow_"})
# What is measured on data once: of a method's arguments.
_MEASURING = frozenset({"mean", "std", "var", "std_mean", "var_mean", "amax", "amin", "quantile", "median"})
# Calls that go on computing with what they are given.
_MIXING = frozenset({"lerp", "maximum", "minimum", "max", "min", "where", "detach", "clone", "mul", "add", "item"})


class Unsaved(Check):
    """Parts of a learner's own whose state_dict was asked for, and what of theirs is not in it."""

    codes: ClassVar = ("not-saved",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lost: dict[tuple[type, str], tuple[Spot, bool]] = {}  # with whether it is measured once
        self._known: set[type] = set()
        self._loads: list[tuple[weakref.ref[nn.Module], Spot, set[int]]] = []  # with the trainers that had made steps

    def loads(self, module: nn.Module, state: Any, spot: Spot | None) -> None:
        if spot is not None and len(self._loads) < _MOST:
            self._loads.append((weakref.ref(module), spot, {it.key for it in self.book.trainers.values() if it.steps}))

    def state_made(self, module: Any, state: Any, spot: Spot | None) -> None:
        if not isinstance(module, nn.Module) or len(self._known) > _MOST:
            return
        for part, node, file in parts_of_ones_own(module):
            kind = type(part)
            if kind in self._known:
                continue
            self._known.add(kind)
            running = _running(node)
            for name in dict.fromkeys((*running, *_fitted(file, node))):
                if _is_lost(part, name) and not _seen_from_outside(file, node, name):
                    made = _registered(node, file, name) or assigned_anywhere(kind, f"self.{name}")
                    if made is not None:
                        self._lost[kind, name] = made, name not in running

    def found(self) -> Iterator[Found]:
        yield from self._begun_anew()
        for (kind, name), (spot, fitted) in self._lost.items():
            does = "measures" if fitted else "goes on changing"
            yield self.say(
                "not-saved",
                spot,
                f"{kind.__name__} {does} self.{name} and computes with it, and state_dict() leaves it out",
                "Only parameters and persistent buffers are saved and loaded, and moved by .to(device). A model that "
                f"is loaded from this state begins with {name} as __init__ makes it.",
                f'self.register_buffer("{name}", torch.zeros(...))  # in __init__; change it in place, or bind it anew',
                certain=False,
            )

    def _begun_anew(self) -> Iterator[Found]:
        """Yield optimizers that keep a state, and began without one where the model was loaded to go on."""
        for ref, spot, before in self._loads:
            module = ref()
            leaves = set(map(id, module.parameters())) if module is not None else set()
            for trainer in self.book.trainers.values():
                optimizer = trainer.ref()
                if optimizer is None or trainer.key in before or not _keeps_state(optimizer, leaves):
                    continue
                line = goes_on_without_state(spot, trainer.name)
                if line is not None:
                    yield self.say(
                        "not-saved",
                        line,
                        f"training goes on from a checkpoint, and {trainer.name or 'its optimizer'} begins without the "
                        "state that it had",
                        f"{type(optimizer).__name__} keeps for each parameter what its past gradients were like. "
                        "Without that the first steps are others than they would have been, and often far larger.",
                        'torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch},'
                        ' file)\noptimizer.load_state_dict(checkpoint["optimizer"])  # where training goes on',
                        certain=False,
                    )
                    return


def _keeps_state(optimizer: torch.optim.Optimizer, leaves: set[int]) -> bool:
    """Say whether an optimizer has tensors of its own for some of these parameters."""
    kept = (state for leaf, state in optimizer.state.items() if id(leaf) in leaves)
    return any(isinstance(value, torch.Tensor) for state in kept for value in state.values())


def _is_lost(part: nn.Module, name: str) -> bool:
    """Say whether a part holds a number or tensors under a name, without a graph, that its state does not have."""
    if name in part._buffers:
        return name in part._non_persistent_buffers_set
    value = vars(part).get(name)
    return isinstance(value, float) or (isinstance(value, torch.Tensor) and not value.requires_grad)


def _running(node: ast.ClassDef) -> list[str]:
    """Return the attributes that methods change from their own value by arithmetic, and with which forward computes.

    What a layer gives back, as a carried state, is none: that begins anew with each sequence.
    """
    methods = {it.name: it for it in node.body if isinstance(it, ast.FunctionDef) and it.name not in _MAKING}
    if _OWN_WAY & set(methods):
        return []
    changed: dict[str, set[int]] = {}  # the parts of the source that belong to a change
    for statement in (part for method in methods.values() for part in ast.walk(method) if isinstance(part, ast.stmt)):
        name = _changed(statement)
        if name:
            changed.setdefault(name, set()).update(map(id, ast.walk(statement)))
    read = [part for name in _run_by_forward(methods) for part in ast.walk(methods[name])]
    return [name for name, own in changed.items() if any(_of_self(it) == name and id(it) not in own for it in read)]


def _fitted(file: str, node: ast.ClassDef) -> list[str]:
    """Return the attributes that __init__ makes, another method measures on what it is given, and forward reads.

    What is called in two places may be called again for a model that was loaded.
    """
    methods = {it.name: it for it in node.body if isinstance(it, ast.FunctionDef)}
    if _OWN_WAY & set(methods) or "__init__" not in methods:
        return []
    forward = _run_by_forward(methods)
    read = {_of_self(part) for name in forward for part in ast.walk(methods[name])}
    made = {_of_self(target) for part in ast.walk(methods["__init__"]) for target in _targets(part)}
    tree = tree_of(file)
    calls = Counter(called(it) for it in (ast.walk(tree) if tree else ()) if isinstance(it, ast.Call))
    others = [it for name, it in methods.items() if name not in {*_MAKING, *forward} and calls[name] == 1]
    bound = [
        _of_self(target)
        for method in others
        for part in ast.walk(method)
        for target in _targets(part)
        if isinstance(part, ast.Assign) and _measures(part.value, {it.arg for it in method.args.args[1:]})
    ]
    return [name for name in dict.fromkeys(bound) if name and name in read & made]


def _targets(part: ast.AST) -> list[ast.expr]:
    targets = part.targets if isinstance(part, ast.Assign) else []
    return [it for target in targets for it in taken_apart(target)]


def _measures(value: ast.expr, given: set[str]) -> bool:
    """Say whether an expression computes a statistic of an argument."""
    return bool(given & names_of(value)) and any(
        isinstance(part, ast.Call) and called(part) in _MEASURING for part in ast.walk(value)
    )


def _run_by_forward(methods: dict[str, ast.FunctionDef]) -> list[str]:
    """Return the methods that forward calls, itself first."""
    found = [name for name in ("forward",) if name in methods]
    for name in found:
        calls = (part.func for part in ast.walk(methods[name]) if isinstance(part, ast.Call))
        found += {run for call in calls if (run := _of_self(call)) in methods and run not in found}
    return found


def _changed(statement: ast.stmt) -> str | None:
    """Return the attribute that a statement changes from its own value: in place, or by arithmetic."""
    if isinstance(statement, ast.AugAssign):
        return _of_self(statement.target)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        name = _of_self(statement.targets[0])
        return name if name and name in _mixed(statement.value) else None
    owner, changing, given = (statement.value if isinstance(statement, ast.Expr) else None), False, []
    while isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute):  # self.mean.mul_(m).add_(part)
        changing |= owner.func.attr in _IN_PLACE
        given += owner.args if owner.func.attr == "copy_" else []
        owner = owner.func.value
    name = _of_self(owner)
    return name if name and (changing or any(name in _mixed(value) for value in given)) else None


def _mixed(value: ast.expr) -> Iterator[str]:
    """Yield the attributes that arithmetic mixes into a value. What another call is given is not mixed in."""
    if isinstance(value, ast.BinOp):
        yield from (*_mixed(value.left), *_mixed(value.right))
    elif isinstance(value, ast.Call):
        method = value.func if isinstance(value.func, ast.Attribute) else None
        if called(value) in _MIXING:
            for part in (*value.args, *([method.value] if method else [])):
                yield from _mixed(part)
    elif name := _of_self(value):
        yield name


def _of_self(node: ast.AST | None) -> str | None:
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if own else None  # type: ignore[union-attr]


def _seen_from_outside(file: str, node: ast.ClassDef, name: str) -> bool:
    """Say whether code outside of the class reads the attribute: it may save it itself."""
    tree = tree_of(file)
    every = list(ast.walk(tree)) if tree else []
    passed = {id(part) for part in ast.walk(node)} | {id(it.func) for it in every if isinstance(it, ast.Call)}
    reads = (it for it in every if isinstance(it, ast.Attribute) and id(it) not in passed)
    return any(it.attr == name and _of_self(it) is None for it in reads)


def _registered(node: ast.ClassDef, file: str, name: str) -> Spot | None:
    """Return the line that registers a buffer."""
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    named = (it for it in calls if getattr(it.func, "attr", "") == "register_buffer" and it.args)
    found = (it for it in named if isinstance(it.args[0], ast.Constant) and it.args[0].value == name)
    return next((Spot(file, it.lineno) for it in found), None)
