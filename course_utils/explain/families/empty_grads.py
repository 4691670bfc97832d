"""A `.grad` that is None: what the live graph says about why."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.families.non_leaf_grads import of_result, replaced_in_an_update
from course_utils.explain.naming import assigned, receiver, tensors
from course_utils.explain.nodes import backward_of, behind, operation
from course_utils.explain.ownership import is_learners
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, walk, written
from course_utils.graph.trace import ACCUMULATE, node_name


def _none(s: Situation, m: re.Match[str]) -> Explanation | None:
    if s.here is None or s.here.statement is None or s.node is None:
        return None
    for node in ast.walk(s.node):
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            tensor = s.here.value(node.value)
            if is_a(tensor, torch.Tensor) and (not tensor.is_leaf or tensor.grad is None):
                card_of = _of_leaf if tensor.is_leaf else of_result
                return card_of(s, written(node.value), tensor, written(node), ())
    return _none_of_name(s)


def _none_of_name(s: Situation) -> Explanation | None:
    """A name that was given None: by `.grad`, or by autograd.grad(..., allow_unused=True)."""
    assert s.here is not None
    assert s.node is not None
    for name in [it.id for it in ast.walk(s.node) if isinstance(it, ast.Name)]:
        if s.here.look_up(name) is not None:
            continue
        for statement in assigned(s.here, name):
            if "allow_unused=True" in written(statement, 400):
                why = (
                    f"`{name}` is None: the output does not depend on that input; allow_unused=True says so with None."
                )
                fix = "torch.autograd.grad(..., allow_unused=True, materialize_grads=True)  # zeros instead of None"
                headline = f"`{name}` is None, because its input is not in the graph"
                where = (s.here.place("asked for here", statement), *s.needed())
                return card("not-in-graph", headline, why, fix, where, False)
            read = [it for it in ast.walk(statement) if isinstance(it, ast.Attribute) and it.attr == "grad"]
            if read:
                tensor, place = s.here.value(read[0].value), s.here.place("read here", statement)
                if is_a(tensor, torch.Tensor) and tensor.is_leaf and tensor.grad is None:
                    return _of_leaf(s, written(read[0].value), tensor, name, (place,))
                why = f"`{name}` was read from `.grad` before anything put a gradient there."
                fix = "loss.backward()  # before .grad is read"
                return card("grad-is-none", f"`{name}` is None", why, fix, (place, *s.needed()), False)
    return None


@dataclass(frozen=True)
class _Loss:
    """A tensor whose backward() the learner's functions at work call, and what its live graph says of a leaf."""

    name: str
    place: Place
    reaches: bool
    through: tuple[str, ...]  # Functions, where every path to the leaf ends in one
    own: bool  # whether these are all the learner's
    ran: bool  # whether some leaf of its graph has a gradient


def _losses(s: Situation, leaf: torch.Tensor) -> tuple[list[_Loss], bool]:
    """Return what is known of the losses, and whether that is all of them."""
    found, whole = [], True
    for call in s.calls:
        for node in walk(call.scope) if call.scope is not None else ():
            owner = receiver(node) if called(node) == "backward" else None
            if owner is None:
                continue
            value = call.value(owner)
            if not is_a(value, torch.Tensor) or value.grad_fn is None:
                whole = False
                continue
            nodes = behind([value])
            seen = set(nodes)
            whole &= all(to is None or to in seen for it in nodes for to, _ in it.next_functions)
            ends = {it: it.variable for it in nodes if node_name(it) == ACCUMULATE}
            last = [it for it in nodes if any(ends.get(to) is leaf for to, _ in it.next_functions if to is not None)]
            own = [operation(it) for it in last if is_a(it, torch.autograd.function.FunctionCtx)]
            found.append(
                _Loss(
                    written(owner),
                    call.place("backward here", node),
                    any(it is leaf for it in ends.values()),
                    tuple(own) if len(own) == len(last) else (),
                    all(code is not None and is_learners(code.co_filename) for code in map(backward_of, last)),
                    any(it.grad is not None for it in ends.values()),
                )
            )
    return found, whole


def _of_leaf(s: Situation, owner: str, leaf: torch.Tensor, grad: str, where: tuple[Place, ...]) -> Explanation:
    names = (name for call in reversed(s.calls) for name, it in tensors(call) if it is leaf and not name.isidentifier())
    known = next(names, owner) if owner.isidentifier() else owner
    also = f" (`{known}`)" if known != owner else ""
    headline, places = f"`{grad}` is None", (*where, *s.needed())
    skip = f"if {owner}.grad is not None: ..."
    if not leaf.requires_grad and (replaced := replaced_in_an_update(s, owner, grad)) is not None:
        return replaced
    if not leaf.requires_grad:
        why = f"requires_grad of `{owner}`{also} is False, so backward() writes no gradient into it."
        fix = f"{owner}.requires_grad_()  # before it is used; or, where it is to stay frozen:\n{skip}"
        return card("grad-is-none", f"{headline}: `{owner}` does not require a gradient", why, fix, places)
    losses, whole = _losses(s, leaf)
    reaching = [it for it in losses if it.reaches]
    if losses and whole and not reaching:
        loss = losses[-1]
        why = (
            f"No recorded path leads from `{loss.name}` to `{owner}`{also}: it was not used, or the path was cut by "
            f"detach(), item(), no_grad or NumPy."
        )
        fix = f"# use {known} in what {loss.name} is computed from; or, where it is meant so:\n{skip}"
        return card(
            "grad-is-none",
            f"{headline}: `{loss.name}` does not depend on it",
            why,
            fix,
            (*where, loss.place, *s.needed()),
        )
    for loss in reaching:
        if loss.through:
            name, mine = loss.through[0], loss.own
            why = (
                f"A path leads from `{loss.name}` to `{owner}`{also}, and its last step is "
                f"{'your' if mine else 'the'} Function `{name}`. Most often its backward returned None for this input."
            )
            fix = f"# in backward of {name}: return a gradient for this input, not None"
            if not mine:
                fix = f"# of {name} None stands for zeros: where {grad} is None, take zeros of the shape of {owner}"
            return card("grad-is-none", headline, why, fix, (loss.place, *places), False)
    if reaching:
        loss = reaching[-1]
        why = f"A path leads from `{loss.name}` to `{owner}`{also}. " + (
            "Other leaves have gradients, this one none: most often zero_grad(), a hook or `.grad = None` emptied it."
            if loss.ran
            else "No leaf has a gradient: most often backward() did not run yet, or zero_grad() emptied them all."
        )
        return card(
            "grad-is-none", headline, why, f"{loss.name}.backward()  # first, then read {owner}.grad", places, False
        )
    if s.within("autograd/graph.py", "_engine_run_backward") is not None:
        why = (
            f"A pass has come to `{owner}`{also}, and at this line it holds no gradient. Most often another hook on it "
            f"emptied it before, as where the same tensor got a hook twice: a parameter may have two names."
        )
        fix = f"{skip}  # or one hook for each tensor, however many names it has"
        return card("grad-is-none", headline, why, fix, places, False)
    asked = [call.place("returned here", it) for call in s.calls for it in _asked(call.scope)]
    if asked and not losses and whole:
        why = (
            "torch.autograd.grad returns the gradients. It writes none into `.grad`, and no backward() is called here."
        )
        fix = "# use what autograd.grad returned; or backward(), which fills .grad"
        return card("grad-is-none", headline, why, fix, (asked[-1], *places), False)
    why = (
        f"`{owner}`{also} holds no gradient. Most often backward() did not run yet, zero_grad() or a hook "
        f"emptied it, or the loss does not depend on it. Or a Function's backward returned None for it."
    )
    return card(
        "grad-is-none",
        headline,
        why,
        f"loss.backward()  # first; and for what the loss does not use:\n{skip}",
        places,
        False,
    )


def _asked(scope: ast.AST | None) -> list[ast.AST]:
    """Return the calls of autograd.grad in a function."""
    nodes = list(walk(scope)) if scope is not None else []
    return [it for it in nodes if called(it) == "grad" and "autograd" in written(receiver(it))]


RULES = (
    Rule(AttributeError, r"^'NoneType' object has no attribute", _none),
    Rule(TypeError, r"'NoneType'|must be Tensor, not NoneType|got NoneType$", _none),
)
