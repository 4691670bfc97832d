"""Warnings about gradients that go nowhere, copies and cycles, and what checkpointing says."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.naming import argument, assigned, receiver, targets
from course_utils.explain.nodes import operation
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import Source, called, operand, walk, with_keyword, written


def _non_leaf_grad(s: Situation, m: re.Match[str]) -> Explanation | None:
    tree = s.line_tree
    read = (
        [it for it in ast.walk(tree) if isinstance(it, ast.Attribute) and it.attr == "grad"] if tree is not None else []
    )
    value = None
    for it in read:
        value = s.here.value(it.value) if s.here is not None else None
        if s.here is None or (is_a(value, torch.Tensor) and not value.is_leaf):
            break
    name = written(read[0].value) if read else ""
    if s.here is not None and is_a(value, torch.Tensor) and read:
        name = written(it.value)
    own = name or "h"
    made = f" by `{operation(value.grad_fn)}`" if is_a(value, torch.Tensor) and value.grad_fn is not None else ""
    where = list(s.needed("read here"))
    statement = _assignment(s, own)
    if statement is not None:
        source, node = statement
        where.insert(0, Place("computed here", source.file, node.lineno, source.text(node.lineno)))
        made = made or " there"
    why = f"`{own}` was computed{made}, so it is no leaf, and backward() lets its gradient pass without keeping it."
    fix = f"{own}.retain_grad()  # before backward(): then {own}.grad is kept"
    moved = (
        re.search(r"\.(to|cuda|cpu|double|float|half)\(|requires_grad=True\)\s*[*/+-]", where[0].text)
        if len(where) > 1
        else None
    )
    if moved:
        fix = f"{own} = {own}.detach().requires_grad_()  # after the arithmetic or the move: a leaf\n{fix}"
    return card(
        "grad-of-non-leaf",
        f"`{own}.grad` is None, because `{own}` is not a leaf",
        why,
        fix,
        where,
        bool(name) and len(read) == 1,
    )


def _assignment(s: Situation, name: str) -> tuple[Source, ast.stmt] | None:
    """Return where a name got its value in the function of the line."""
    if s.here is not None and s.here.source is not None:
        found = [it for it in assigned(s.here, name) if it.lineno < s.here.line]
        return (s.here.source, found[-1]) if found else None
    source = s.sources.of(s.file)
    if source is None or s.line_tree is None:
        return None
    found = [
        it
        for it in walk(source.scope(s.line_tree))
        if isinstance(it, ast.stmt) and name in targets(it) and it.lineno < s.line
    ]
    return (source, found[-1]) if found else None


def _copy(s: Situation, m: re.Match[str]) -> Explanation | None:
    call = (
        next((it for it in ast.walk(s.line_tree) if called(it) in ("tensor", "as_tensor")), None)
        if s.line_tree
        else None
    )
    name = written(argument(call, 0)) or "x"
    why = f"`{name}` is a tensor already. torch.tensor copies its numbers, and leaves its graph behind if it has one."
    fix = (
        f"{name}.detach().clone()  # a copy without a graph: what this did\n{name}.clone()  # a copy that "
        f"keeps the graph"
    )
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
    fix = "checkpoint(function, x, use_reentrant=False)"
    start = s.at_start()
    return card("checkpoint-grad", "autograd.grad met a checkpoint with use_reentrant=True", why, fix, start)


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
    start = s.at_start()
    return card(
        "checkpoint-recomputed",
        "a checkpointed function gave something else when it was run again",
        why,
        fix,
        start,
        False,
    )


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
    fix = "# register_full_backward_hook in place of register_backward_hook"
    return card("hook-incomplete", "a module's hook is of the old kind, and misses gradients", why, fix, s.needed())


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
    Rule(Warning, r"The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed", _non_leaf_grad),
    Rule(Warning, r"To copy construct from a tensor, it is recommended to use", _copy),
    Rule(Warning, r"create_graph=True will create a reference cycle", _cycle),
    Rule(Warning, r"Converting a tensor with requires_grad=True to a scalar", _scalar),
    Rule(Warning, r"the use_reentrant parameter should be passed explicitly", _use_reentrant),
    Rule(Warning, r"None of the inputs have requires_grad=True\. Gradients will be None", _checkpoint_inputs),
    Rule(RuntimeError, r"checkpoint is incompatible with \.grad\(\)", _checkpoint_grad),
    Rule(
        RuntimeError,
        r"torch\.utils\.checkpoint: (?:Recomputed values|A different number of tensors|trying to save more)",
        _recomputed,
    ),
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
