"""Warnings about gradients that go nowhere, copies and cycles, and what checkpointing says."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.naming import argument, assigned, targets
from course_utils.explain.nodes import operation
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import Source, called, walk, written


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
    fix = "grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)  # nothing goes to .grad"
    return card("reference-cycle", "backward(create_graph=True) leaves a circle of references", why, fix, s.needed())


def _scalar(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "A tensor with a graph was turned into a plain number, which has none: what is computed from it cannot "
        "be learned."
    )
    fix = (
        "total += loss.item()  # for a log: say that you want the number\ntotal = total + loss  # for a loss: "
        "keep the tensor"
    )
    return card(
        "scalar-of-graph", "a tensor that requires a gradient became a plain number", why, fix, s.needed(), False
    )


def _use_reentrant(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "checkpoint has two ways of working. The old one refuses keyword arguments and autograd.grad, and needs "
        "an input that requires a gradient."
    )
    fix = "checkpoint(function, x, use_reentrant=False)"
    return card(
        "checkpoint-reentrant", "checkpoint was not told which way to work (use_reentrant)", why, fix, s.needed()
    )


def _checkpoint_inputs(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "With use_reentrant=True the graph starts at the inputs. None has requires_grad, so the parameters "
        "inside get no gradient."
    )
    fix = "checkpoint(function, x, use_reentrant=False)  # finds the parameters by itself"
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
    return card(
        "softmax-dim",
        f"{m[1]} was not told over which dimension",
        why,
        f"F.{m[1]}(x, dim=-1)  # over the last dimension",
        s.needed(),
    )


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
)
