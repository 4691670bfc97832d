"""The scheduler that holds another optimizer than the one that steps."""

from __future__ import annotations

import ast

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.naming import argument, receiver, targets, variables
from course_utils.explain.reading import is_a, own_attributes
from course_utils.explain.rules import card
from course_utils.explain.situation import Situation
from course_utils.explain.source import Scope, Source, called, walk, written


def another_optimizer(s: Situation, owner: str) -> Explanation | None:
    """Explain that a scheduler holds another optimizer than the one that steps, where lines or objects prove it."""
    source = s.here.source if s.here is not None else s.sources.of(s.file)
    if source is None or s.line_tree is None:
        return None
    scope = source.scope(s.line_tree)
    made = _assignments(scope, owner)
    if len(made) != 1 or not isinstance(made[0].value, ast.Call):
        return _given_another(s, owner)
    held = written(argument(made[0].value, 0, "optimizer"))
    steps = [it for it in ast.walk(scope) if isinstance(it, ast.Call) and called(it) == "step"]
    stepping = {written(it) for call in steps for it in (receiver(call), *call.args)} - {owner, ""}
    stepping = {it for it in stepping if any(map(of_optim, _assignments(scope, it)))}
    if held in stepping:
        return _replaced(s, owner, source, made[0], held)
    return _other(s, owner, source, made[0], held, stepping)


def _given_another(s: Situation, owner: str) -> Explanation | None:
    """The function that steps was given another optimizer than the scheduler holds."""
    held = own_attributes(s.given("optim/lr_scheduler.py", "step", "self")).get("optimizer")
    outer = s.calls[-2] if len(s.calls) > 1 else None
    if outer is None or not isinstance(outer.node, ast.Call) or not is_a(held, torch.optim.Optimizer):
        return None
    given = [*outer.node.args, *(it.value for it in outer.node.keywords)]
    optimizers = [(it, value) for it in given if is_a(value := outer.value(it), torch.optim.Optimizer)]
    if len(optimizers) != 1 or optimizers[0][1] is held:
        return None
    name, function = written(optimizers[0][0]), called(outer.node)
    own = next((name for name, value in variables(outer) if value is held), "")
    shown = f"`{own}`" if own else "another one, which has no name here"
    why = f"`{function}` is given `{name}`. `{owner}` was built for {shown}, which has not stepped, and changes the "
    why += "learning rate of that one only."
    fix = f"# build {owner} from {name}, after {name} is made" + (f"; or give {own} to {function}" if own else "")
    headline = f"`{owner}` holds another optimizer than `{name}`"
    places = [outer.place("another optimizer given here"), *s.needed()]
    return card("scheduler-first", headline, why, fix, places)


def _replaced(s: Situation, owner: str, source: Source, scheduler: ast.Assign, held: str) -> Explanation | None:
    """The name of the optimizer was given a new one after the scheduler was built."""
    until = s.line_tree.lineno if s.line_tree is not None else 0
    lines = [it for it in _assignments(source.scope(scheduler), held) if of_optim(it)]
    later = [it for it in lines if scheduler.lineno < it.lineno < until]
    is_held = _is_held(s, owner, held)
    if not later or is_held:
        return None
    last = later[-1]
    sure = is_held is False or source.block(last) == source.block(scheduler)
    why = f"`{owner}` was built for the first optimizer of the name `{held}`. Line {last.lineno} gave the name to "
    why += f"another one. `{owner}` changes the learning rate of the first one only, which has not stepped."
    fix = f"{ast.unparse(scheduler)}  # again, after line {last.lineno}: for the new {held}"
    where = [source.place("holds the optimizer of this moment", scheduler), source.place("replaced here", last)]
    headline = f"`{owner}` holds an optimizer that was replaced: `{held}` is another one now"
    return card("scheduler-first", headline, why, fix, [*where, *s.needed()], sure)


def _other(
    s: Situation, owner: str, source: Source, scheduler: ast.Assign, held: str, stepping: set[str]
) -> Explanation | None:
    """Of two optimizers, the scheduler holds the one that no line steps."""
    scope = source.scope(scheduler)
    lines = _assignments(scope, held)
    if len(stepping) != 1 or not lines or not all(map(of_optim, lines)):
        return None
    steps = next(iter(stepping))
    known = {id(it) for it in ast.walk(scheduler)}
    known |= {id(it.value) for it in ast.walk(scope) if isinstance(it, ast.Attribute)}
    named = [it for it in ast.walk(scope) if isinstance(it, ast.Name | ast.Attribute) and written(it) == held]
    if any(isinstance(it.ctx, ast.Load) and id(it) not in known for it in named):
        return None  # given to something, which may step it
    why = f"`{owner}` holds `{held}`, and no line here calls {held}.step(). It is `{steps}` that steps, at a learning "
    why += f"rate that `{owner}` does not change."
    fix = f"{held}.step()  # before {owner}.step(), if {held} is to learn\n"
    fix += f"# or build {owner} from {steps}, if it is to change the rate of {steps}"
    headline = f"`{owner}` holds `{held}`, and it is `{steps}` that steps"
    sure = all(map(of_optim, _assignments(scope, steps)))
    return card("scheduler-first", headline, why, fix, [source.place("built here", scheduler), *s.needed()], sure)


def _is_held(s: Situation, owner: str, name: str) -> bool | None:
    """Return whether a name means the optimizer that a scheduler holds; None where the objects cannot be seen."""
    values = dict(variables(s.here)) if s.here is not None else {}
    held = own_attributes(values.get(owner)).get("optimizer")
    if not (is_a(values.get(name), torch.optim.Optimizer) and is_a(held, torch.optim.Optimizer)):
        return None
    return values[name] is held


def _assignments(scope: Scope, name: str) -> list[ast.Assign]:
    return [it for it in walk(scope) if isinstance(it, ast.Assign) and name in targets(it)]


def of_optim(statement: ast.Assign) -> bool:
    """Return whether a line makes an optimizer of PyTorch's."""
    return makes_optimizer(statement.value)


def makes_optimizer(node: ast.AST) -> bool:
    """Return whether a call makes an optimizer of PyTorch's."""
    kind = getattr(torch.optim, called(node), None)
    return is_a(kind, type) and issubclass(kind, torch.optim.Optimizer)
