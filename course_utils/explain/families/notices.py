"""Warnings about gradients that go nowhere, copies and cycles, and what checkpointing says."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.lines import only_line
from course_utils.explain.naming import argument, receiver
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, operand, with_keyword, written


def _copy(s: Situation, m: re.Match[str]) -> Explanation | None:
    call = (
        next((it for it in ast.walk(s.line_tree) if called(it) in ("tensor", "as_tensor")), None)
        if s.line_tree
        else None
    )
    name = written(argument(call, 0)) or "x"
    keywords = {it.arg: written(it.value) for it in call.keywords} if isinstance(call, ast.Call) else {}
    to = ", ".join(keywords[key] for key in ("device", "dtype") if key in keywords)
    copy = f"{operand(name)}.detach().clone()" + (f".to({to})" if to else "")
    learns = keywords.get("requires_grad", "False") != "False"
    on = "" if not learns else ".requires_grad_()" if keywords["requires_grad"] == "True" else ""
    on = on or (f".requires_grad_({keywords['requires_grad']})" if learns else "")
    why = f"`{name}` is a tensor already. torch.tensor copies its numbers, and leaves its graph behind if it has one."
    fix = f"{copy}{on}  # a {'leaf with a copy of the numbers' if on else 'copy without a graph'}: what this did"
    fix += f"\n{operand(name)}.clone()  # a copy that keeps the graph"
    return card(
        "copy-construct",
        f"torch.tensor({name}) copies a tensor without its graph",
        why,
        fix,
        s.needed(),
        call is not None,
    )


def _cycle(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "With create_graph=True the gradient in `.grad` keeps a graph that leads back to its own parameter: a "
        "circle, which stays in memory."
    )
    loss = written(receiver(s.node)) if called(s.node) == "backward" else ""
    fix = f"grads = torch.autograd.grad({loss or 'loss'}, parameters, create_graph=True)  # nothing goes to .grad"
    fix = f"parameters = [...]  # those whose gradients you want\n{fix}"
    return card("reference-cycle", "backward(create_graph=True) leaves a circle of references", why, fix, s.needed())


def _scalar(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = _turned_into_a_number(s)
    own, shown = (operand(name), f"`{name}`") if name else ("loss", "a tensor")
    why = f"{shown} has a graph, and a plain number has none: what is computed from the number cannot be learned."
    fix = (
        f"{own}.item()  # for a log: says that you want the number\n# for a loss: keep the tensor, and torch functions"
    )
    headline = f"{shown}, which requires a gradient, became a plain number"
    return card("scalar-of-graph", headline, why, fix, s.needed(), False)


def _turned_into_a_number(s: Situation) -> str:
    """Return what the line gives to float(), int() or a function of math; "" where that is not one thing."""
    calls = [it for it in ast.walk(s.line_tree) if isinstance(it, ast.Call)] if s.line_tree is not None else []
    found = [
        written(it.args[0])
        for it in calls
        if len(it.args) == 1
        and (written(it.func) in ("float", "int", "complex", "round") or written(receiver(it)) in ("math", "np"))
    ]
    return found[0] if len(found) == 1 else ""


def _hook_silent(s: Situation, m: re.Match[str]) -> Explanation | None:
    kind = ""
    for frame in reversed(s.torch_frames):
        module = frame.f_locals.get("self")
        if is_a(module, torch.nn.Module):
            kind = type(module).__name__
            break
    own = f"`{kind}`" if kind else "a module"
    why = (
        f"The hook of {own} runs, but no input of that module requires a gradient, so it gets None in grad_input. "
        f"grad_output is there."
    )
    fix = "# use grad_output; or call requires_grad_() on the input before the module gets it"
    return card(
        "hook-not-firing",
        f"the full backward hook of {own} gets no gradients of its inputs",
        why,
        fix,
        s.needed(),
        False,
    )


def _softmax_dim(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "Without dim PyTorch guesses over which dimension the probabilities sum to 1, and the guess depends on "
        "the shape."
    )
    calls = [it for it in ast.walk(s.line_tree) if called(it) == m[1]] if s.line_tree is not None else []
    fix = f"# say dim=1 for classes in dimension 1, or dim=-1 for the last one, where {m[1]} is made or called"
    if len(calls) == 1 and isinstance(calls[0], ast.Call):
        fix = f"{with_keyword(calls[0], 'dim', -1)}  # over the last dimension"
    return card("softmax-dim", f"{m[1]} was not told over which dimension", why, fix, s.needed())


def _old_hook(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "register_backward_hook sees only the last operation of a module: its grad_input is not that of the module's "
        "inputs where forward has several operations."
    )
    put = only_line(s, "put on here", lambda it: called(it) == "register_backward_hook")
    fix = "# register_full_backward_hook in place of register_backward_hook"
    return card(
        "hook-incomplete", "a module's hook is of the old kind, and misses gradients", why, fix, [*put, *s.needed()]
    )


def _kl_mean(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "reduction='mean', the default of kl_div, divides by the number of all elements. The divergence is a sum over "
        "each distribution, so its mean divides by the batch only."
    )
    calls = [it for it in ast.walk(s.line_tree) if called(it) == "kl_div"] if s.line_tree is not None else []
    fix = "# reduction='batchmean' in kl_div or KLDivLoss"
    if len(calls) == 1 and isinstance(calls[0], ast.Call):
        fix = with_keyword(calls[0], "reduction", "batchmean")
    return card("kl-div-mean", "kl_div divides by the number of classes, too", why, fix, s.needed())


def _lstm_dropout(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "The dropout of a recurrent layer acts between its layers, and with num_layers=1 there is no between."
    fix = "# num_layers=2 or more; or nn.Dropout on what this layer returns"
    headline = f"dropout={m[1]} has no effect in a recurrent network of one layer"
    return card("dropout-without-effect", headline, why, fix, s.needed())


RULES = (
    Rule(Warning, r"To copy construct from a tensor, it is recommended to use", _copy),
    Rule(Warning, r"create_graph=True will create a reference cycle", _cycle),
    Rule(Warning, r"Converting a tensor with requires_grad=True to a scalar", _scalar),
    Rule(
        Warning,
        r"[Ff]ull backward hook is firing when gradients are computed with respect to module outputs",
        _hook_silent,
    ),
    Rule(Warning, r"Implicit dimension choice for (\w+) has been deprecated", _softmax_dim),
    Rule(Warning, r"Using a non-full backward hook when the forward contains multiple autograd Nodes", _old_hook),
    Rule(Warning, r"reduction: 'mean' divides the total loss by both the batch size and the support size", _kl_mean),
    Rule(Warning, r"non-zero dropout expects num_layers greater than 1, but got dropout=(\S+)", _lstm_dropout),
)
