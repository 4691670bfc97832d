"""Schedulers, and the scaling of gradients."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.families.held_optimizers import another_optimizer, of_optim
from course_utils.explain.lines import everywhere, only_line
from course_utils.explain.naming import argument, modules, named, receiver, targets, tensors, variables
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, written


def _metrics(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or "scheduler"
    why = "ReduceLROnPlateau lowers the learning rate when a number stops falling, so each step needs that number."
    fix = f"{owner}.step(validation_loss)  # once an epoch, the loss as a number"
    return card("metrics-missing", f"`{owner}.step()` was not told the loss to watch", why, fix, s.needed())


def _too_long(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or "scheduler"
    why = (
        f"This schedule was made for {m[2]} steps, and this is step {m[1]}. It counts a step for each call, so "
        f"mostly for each batch."
    )
    made = [it for _, it in everywhere(s) if called(it) == "OneCycleLR" and isinstance(it, ast.Call)]
    fix = "OneCycleLR(optimizer, max_lr=..., epochs=epochs, steps_per_epoch=len(loader))  # as many as will come"
    if len(made) == 1:
        first = ", ".join(
            [*map(ast.unparse, made[0].args), *(ast.unparse(it) for it in made[0].keywords if not _plans(it))]
        )
        fix = f"{ast.unparse(made[0].func)}({first}, total_steps=...)  # batches in an epoch times epochs, in all"
    places = [*only_line(s, f"made for {m[2]} steps", lambda it: called(it) == "OneCycleLR"), *s.needed()]
    return card(
        "scheduler-too-long",
        f"`{owner}` was made for {m[2]} steps and was called a {m[1]}th time",
        why,
        fix,
        places,
    )


def _plans(keyword: ast.keyword) -> bool:
    return keyword.arg in ("total_steps", "epochs", "steps_per_epoch")


def _initial_lr(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "last_epoch says that a schedule goes on. Where it started is kept in the optimizer, and this one is new."
    fix = (
        "optimizer.load_state_dict(saved_optimizer)  # first; then the "
        "scheduler\nscheduler.load_state_dict(saved_scheduler)  # instead of last_epoch"
    )
    return card(
        "scheduler-initial-lr",
        "the scheduler is to go on, but the optimizer knows no initial learning rate",
        why,
        fix,
        s.needed(),
    )


def _scheduler_first(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "The scheduler moved before the optimizer did, so the first learning rate is never used. If you train with a "
        "GradScaler, a step that it skipped for infinite gradients says the same, and is harmless."
    )
    steps = [it for it in ast.walk(s.line_tree) if called(it) == "step"] if s.line_tree is not None else []
    owner = (written(receiver(steps[0])) if len(steps) == 1 else "") or "scheduler"
    of_another = another_optimizer(s, owner)
    if of_another is not None:
        return of_another
    others = {written(receiver(it)) for _, it in everywhere(s) if called(it) == "step"} - {owner, ""}
    fix = f"{others.pop() if len(others) == 1 else 'optimizer'}.step()\n{owner}.step()  # after it"
    return card(
        "scheduler-first", f"`{owner}.step()` came before the first step of the optimizer", why, fix, s.needed(), False
    )


def _epoch(s: Situation, m: re.Match[str]) -> Explanation | None:
    steps = [it for it in ast.walk(s.line_tree) if called(it) == "step"] if s.line_tree is not None else []
    owner = (written(receiver(steps[0])) if len(steps) == 1 else "") or "scheduler"
    why = "A scheduler counts by itself. The number given to step() jumps there, by another formula, and is going away."
    return card("scheduler-epoch", f"`{owner}.step()` was given an epoch", why, f"{owner}.step()", s.needed())


def _no_optimizer(s: Situation, m: re.Match[str]) -> Explanation | None:
    given = written(argument(s.node, 0, "optimizer")) or "what it was given"
    why = f"A scheduler changes the learning rate of an optimizer. `{given}` is of type {m[1]}."
    names = [] if s.here is None else [n for n, it in variables(s.here) if is_a(it, torch.optim.Optimizer)]
    fix = "# give it the optimizer itself"
    if len(names) == 1 and isinstance(s.node, ast.Call) and s.node.args:
        call = ast.parse(ast.unparse(s.node), mode="eval").body
        assert isinstance(call, ast.Call)
        call.args[0] = ast.Name(names[0])
        fix = ast.unparse(call)
    return card(
        "scheduler-of-no-optimizer", f"the scheduler was given `{given}`, not an optimizer", why, fix, s.needed()
    )


def _lambdas(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = f"Each group of the optimizer has a learning rate of its own. It has {m[1]}, and {m[2]} functions were given."
    fix = "# one function for all groups, or a list with one for each of optimizer.param_groups"
    return card("scheduler-groups", f"{m[2]} functions for {m[1]} groups of parameters", why, fix, s.needed())


def _optimizer_of(s: Situation) -> str:
    """Return the optimizer that a method of a scaler was given, or the only one that has a name."""
    given = written(argument(s.node, 0, "optimizer"))
    names = [] if s.here is None else [n for n, it in variables(s.here) if is_a(it, torch.optim.Optimizer)]
    return given or (names[0] if len(names) == 1 else "optimizer")


def _foreign(s: Situation, name: str) -> tuple[list[str], str] | None:
    """Return whose parameters an optimizer holds, and the module that has gradients and shares none with it."""
    optimizer = next((it for call in s.calls for own, it in variables(call) if own == name), None)
    if not is_a(optimizer, torch.optim.Optimizer):
        return None
    held = {id(it) for group in optimizer.param_groups for it in group["params"]}
    if any(it.grad is not None for group in optimizer.param_groups for it in group["params"]):
        return None
    own, trained = [], []
    for call in reversed(s.calls):
        for path, module in modules(call):
            parts = list(torch.nn.Module.parameters(module))
            if parts and {id(it) for it in parts} == held:
                own.append(path)
            elif parts and not {id(it) for it in parts} & held and all(it.grad is not None for it in parts):
                trained.append(path)
    return (own[:1], trained[0]) if trained else None


def _made_optimizer(s: Situation, name: str) -> list[Place]:
    return only_line(s, "made here", lambda it: isinstance(it, ast.Assign) and name in targets(it) and of_optim(it))


def _no_checks(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or "scaler"
    why = (
        "The scaler looked for infinite gradients and found no gradient at all: no backward() reached this "
        "optimizer's parameters."
    )
    if "prior to update" in s.text:
        why = (
            f"update() adapts the scale to the gradients that {owner}.step() or {owner}.unscale_() saw since the last "
            "update(). Neither ran, or there was no gradient."
        )
    optimizer = _optimizer_of(s)
    fix = (
        f"# does the loss depend on parameters that {optimizer} holds, and did backward() run before this?\n"
        "# were the gradients set to None in between?"
    )
    if "prior to update" in s.text:
        fix = f"{owner}.step({optimizer})  # in place of {optimizer}.step()\n{owner}.update()"
    foreign = _foreign(s, optimizer)
    if foreign is not None and "prior to update" not in s.text:
        made, trained = foreign
        held = f" ({', '.join(f'`{it}`' for it in made)})" if made else ""
        why = f"backward() put gradients into `{trained}`. `{optimizer}` holds other parameters{held}, without any."
        fix = f"# make {optimizer} from {trained}.parameters(), after {trained} is made"
        headline = f"`{optimizer}` holds no parameter of `{trained}`, which was trained"
        return card("scaler-without-gradients", headline, why, fix, [*_made_optimizer(s, optimizer), *s.needed()])
    code = "scaler-stage" if "prior to update" in s.text else "scaler-without-gradients"
    headline = (
        "`update()` has nothing to go by" if code == "scaler-stage" else "the scaler found no gradients to step with"
    )
    return card(code, headline, why, fix, s.needed(), False)


def _unscaled_twice(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or "scaler"
    why = "unscale_ divides the gradients by the scale. Twice would divide twice; only update() begins anew."
    optimizer = _optimizer_of(s)
    fix = (
        f"{owner}.unscale_({optimizer})  # once, after the last backward()\n{owner}.step({optimizer}); {owner}.update()"
    )
    return card(
        "scaler-unscaled-twice",
        f"`{owner}.unscale_()` ran twice without `{owner}.update()` between",
        why,
        fix,
        s.needed(),
    )


def _stage(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or "scaler"
    why = {
        "step() has already": "step() unscales and steps once; the next round begins with update(), which did "
        "not come.",
        "unscale_() is being": "step() has already unscaled the gradients, so unscale_() comes too late: it "
        "belongs before step().",
        "Attempted": "The scaler makes its scale when scale(loss) is first called, and that has not happened.",
    }[m[1]]
    when = {"step() has already": "twice without update()", "Attempted": "before anything was scaled"}.get(
        m[1], "after step()"
    )
    optimizer = _optimizer_of(s)
    fix = (
        f"{owner}.scale(loss).backward()\n{owner}.unscale_({optimizer})  # only to "
        f"clip\n{owner}.step({optimizer})\n{owner}.update()"
    )
    if m[1] == "step() has already":
        fix = f"{owner}.step({optimizer})  # once, after all backward passes of this step\n{owner}.update()"
    return card(
        "scaler-stage",
        f"`{owner}.{called(s.node) or 'step'}()` came {when}",
        why,
        fix,
        s.needed(),
        "Attempted" not in s.text,
    )


def _norm(s: Situation, m: re.Match[str]) -> Explanation | None:
    parameters = s.given("nn/utils/clip_grad.py", "clip_grad_norm_", "parameters")
    bad = ""
    for it in parameters if isinstance(parameters, list | tuple) else ():
        if is_a(it, torch.Tensor) and it.grad is not None and not bool(it.grad.isfinite().all()):
            bad = named(s, lambda other, it=it: other is it)  # type: ignore[misc]
            break
    if not bad and s.here is not None:
        wrong = [
            n for n, t in tensors(s.here) if t.is_leaf and t.grad is not None and not bool(t.grad.isfinite().all())
        ]
        bad = wrong[0] if wrong else ""
    why = f"The gradient of `{bad or 'a parameter'}` contains infinity or NaN, and scaling cannot mend that."
    fix = "with torch.autograd.detect_anomaly():  # names the operation that gave the first NaN\n    loss.backward()"
    return card(
        "non-finite-norm", f"the gradient of `{bad or 'a parameter'}` is not finite", why, fix, s.needed(), bool(bad)
    )


RULES = (
    Rule(TypeError, r"^(\w+) is not an Optimizer", _no_optimizer, "optim/lr_scheduler.py"),
    Rule(ValueError, r"^Expected (\d+) lr_lambdas, but got (\d+)", _lambdas),
    Rule(TypeError, r"ReduceLROnPlateau\.step\(\) missing 1 required positional argument: 'metrics'", _metrics),
    Rule(ValueError, r"Tried to step (\d+) times\. The specified number of total steps is (\d+)", _too_long),
    Rule(KeyError, r"param 'initial_lr' is not specified", _initial_lr),
    Rule(Warning, r"Detected call of `lr_scheduler\.step\(\)` before `optimizer\.step\(\)`", _scheduler_first),
    Rule(Warning, r"The epoch parameter in `scheduler\.step\(\)` was not necessary", _epoch),
    Rule(AssertionError, r"No inf checks were recorded", _no_checks),
    Rule(
        RuntimeError, r"unscale_\(\) has already been called on this optimizer since the last update", _unscaled_twice
    ),
    Rule(RuntimeError, r"^(step\(\) has already|unscale_\(\) is being)", _stage, "amp/grad_scaler.py"),
    Rule(AssertionError, r"^(Attempted) \w+ but _scale is None", _stage),
    Rule(RuntimeError, r"The total norm of order .* is non-finite, so it cannot be clipped", _norm),
)
