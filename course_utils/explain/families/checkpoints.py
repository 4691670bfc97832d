"""Checkpoints: which way of working, what the function inside may do, and what backward() then finds."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.lines import defined, everywhere, has_keyword, only_line
from course_utils.explain.naming import targets
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import Scope, Source, called, names_of, walk, with_keyword


def _use_reentrant(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "checkpoint has two ways of working. The old one refuses keyword arguments and autograd.grad, and needs "
        "an input that requires a gradient."
    )
    fix = _checkpoint_call(s)
    return card(
        "checkpoint-reentrant", "checkpoint was not told which way to work (use_reentrant)", why, fix, s.needed()
    )


def _checkpoint_call(s: Situation) -> str:
    """Return the line's call of checkpoint with the newer way of working."""
    calls = [it for it in ast.walk(s.line_tree) if called(it).startswith("checkpoint")] if s.line_tree else []
    if len(calls) != 1 or not isinstance(calls[0], ast.Call):
        return "torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False)"
    return with_keyword(calls[0], "use_reentrant", False)


def _checkpoint_inputs(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "With use_reentrant=True the graph starts at the inputs. None has requires_grad, so the parameters "
        "inside get no gradient."
    )
    fix = f"{_checkpoint_call(s)}  # finds the parameters by itself"
    return card(
        "checkpoint-inputs",
        "no input of checkpoint requires a gradient, so nothing inside it learns",
        why,
        fix,
        s.needed(),
    )


def _checkpoint_grad(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "With use_reentrant=True checkpoint runs a backward() of its own inside, which autograd.grad and "
        "inputs= cannot follow."
    )
    old = [it for _, it in everywhere(s) if isinstance(it, ast.Call) and _reentrant(it)]
    fix = "torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False)"
    if len(old) == 1:
        fix = with_keyword(old[0], "use_reentrant", False)
    where = [*only_line(s, "checkpointed here", _reentrant), *s.at_start()]
    return card("checkpoint-grad", "autograd.grad met a checkpoint with use_reentrant=True", why, fix, where)


def _reentrant(node: ast.AST) -> bool:
    return called(node).startswith("checkpoint") and has_keyword(node, "use_reentrant", "True")


def _recomputed(s: Situation, m: re.Match[str]) -> Explanation | None:
    shapes = re.findall(r"'shape': torch\.Size\(\[(.*?)\]\)", s.text)
    counts = re.search(r"forward: (\d+).*?recomputation: (\d+)", s.text, re.DOTALL)
    what = ""
    if len(shapes) >= 2 and shapes[0] != shapes[1]:
        what = f" The forward saved shape ({shapes[0]}), the second run ({shapes[1]})."
    elif counts:
        what = f" The forward saved {counts[1]} tensors, the second run {counts[2]}."
    why = f"Checkpointing runs the function again in backward(), and it did something else than the first time.{what}"
    fix = (
        "# the function must depend on its inputs only: no counters, no random sizes, no train()/eval() "
        "between\n# the random state is restored by default"
    )
    again = _run_again(s)
    changes, late = (_changes(*again), _read_late(*again)) if again is not None else ([], [])
    if changes:
        why += f" Line {changes[0].line} changes something that outlives one run."
        fix = f"# {changes[0].text.partition('  #')[0]}: outside of what is checkpointed\n{fix}"
    elif again is not None and late:
        why += (
            f" It reads {' and '.join(f'`{name}`' for name in late)} when it runs, and the loop goes on: in backward() "
            "it finds what the last round left there."
        )
        fix = f"{_with_defaults(again[1], late)}  # the value of this round"
    headline = "a checkpointed function gave something else when it was run again"
    return card("checkpoint-recomputed", headline, why, fix, [*changes[:1], *s.at_start()], False)


def _run_again(s: Situation) -> tuple[Source, Scope] | None:
    """Return the checkpointed function, or module's forward, where it is the learner's."""
    frame = s.within("utils/checkpoint.py", "unpack_hook")
    run = getattr(frame.f_locals.get("frame") if frame is not None else None, "recompute_fn", None)
    for cell in getattr(run, "__closure__", None) or ():
        try:
            function = cell.cell_contents
        except ValueError:
            continue
        if is_a(function, torch.nn.Module):
            function = type(function).forward
        function = getattr(function, "__func__", function)
        if (found := defined(s, getattr(function, "__code__", None))) is not None:
            return found
    return None


def _changes(source: Source, scope: Scope) -> list[Place]:
    """Return the lines of a function that set attributes or global names."""
    shared = {name for it in walk(scope) if isinstance(it, ast.Global | ast.Nonlocal) for name in it.names}
    return [
        source.place("changes between the runs", it)
        for it in walk(scope)
        if isinstance(it, ast.Assign | ast.AugAssign)
        and any("." in name or "[" in name or name in shared for name in targets(it))
    ]


def _read_late(source: Source, scope: Scope) -> list[str]:
    """Return the variables of the loops around a function that it reads and does not get as its arguments."""
    if isinstance(scope, ast.Module):
        return []
    given = {it.arg for it in ast.walk(scope.args) if isinstance(it, ast.arg)}
    read = {it.id for it in ast.walk(scope) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Load)} - given
    loops = [it for it in source.around(scope) if isinstance(it, ast.For)]
    return sorted(names_of(*(it.target for it in loops)) & read)


def _with_defaults(scope: Scope, names: list[str]) -> str:
    """Return the head of a function with values of now for some names."""
    assert not isinstance(scope, ast.Module)
    defaults = ", ".join(f"{name}={name}" for name in names)
    given = ", ".join(it for it in (ast.unparse(scope.args), defaults) if it)
    return (
        f"lambda {given}: {ast.unparse(scope.body)}" if isinstance(scope, ast.Lambda) else f"def {scope.name}({given}):"
    )


RULES = (
    Rule(Warning, r"the use_reentrant parameter should be passed explicitly", _use_reentrant),
    Rule(Warning, r"None of the inputs have requires_grad=True\. Gradients will be None", _checkpoint_inputs),
    Rule(RuntimeError, r"checkpoint is incompatible with \.grad\(\)", _checkpoint_grad),
    Rule(
        RuntimeError,
        r"torch\.utils\.checkpoint: (?:Recomputed values|A different number of tensors|trying to save more)",
        _recomputed,
    ),
)
