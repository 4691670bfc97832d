"""Numbers that are no numbers, distributions, and tensors where one number was meant."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import replace

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.naming import argument, class_called, receiver
from course_utils.explain.nodes import behind, operation_named, recorded_lines
from course_utils.explain.ownership import is_learners
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, written
from course_utils.graph.saved import kept

_AT_0 = "is infinite at 0, and infinity times 0 is NaN"
_BELOW_1 = f"the derivative of a power below 1 {_AT_0}"
_NORM = "the derivative of a norm at 0 divides 0 by 0"

# By operation: why its derivative may be NaN, what to write instead, and what was saved where that shows it.
_NAN = {
    "sqrt": (f"the derivative of sqrt {_AT_0}", "torch.sqrt(x + 1e-8)"),
    "**": (_BELOW_1, "(x + 1e-8) ** 0.5"),
    "log": (f"the derivative of log {_AT_0}", "torch.log(x.clamp_min(1e-8))"),
    "/": ("a quotient by 0 is infinite, and infinity times 0 is NaN", "a / (b + 1e-8)"),
    "where": ("the branch not taken gets 0, and 0 times infinity is NaN", "torch.sqrt(torch.where(x > 0, x, 1.0))"),
    "linalg_vector_norm": (_NORM, "(x.square().sum() + 1e-12).sqrt()"),
    "norm": (_NORM, "(x.square().sum() + 1e-12).sqrt()"),
    "acos": ("the derivative of acos is infinite at -1 and 1", "torch.acos(x.clamp(-1 + 1e-6, 1 - 1e-6))"),
    "exp": ("exp overflowed to infinity, and infinity times 0 is NaN", "torch.logsumexp(x, dim=-1)"),
}
_ARRIVED = (
    "infinity times 0 is NaN: the gradient that arrived, or what this operation saved, may be infinite",
    "# look for a log, root, norm or division at 0 beside this line, and keep its input away from 0",
)
_SHOWN_BY_ZEROS = ("sqrt", "log", "/", "**", "linalg_vector_norm", "norm")


def _nan(s: Situation, m: re.Match[str]) -> Explanation | None:
    op = operation_named(m[1])
    where: list[Place] = []
    held: list[torch.Tensor] = []
    exponent: object = None
    for node in behind(s.roots):
        if type(node).__name__ == m[1]:
            where += _made(s, recorded_lines(node))
            exponent = getattr(node, "_saved_exponent", None)
            held += [tensor for _, _, tensor in kept(node) if tensor is not None and tensor.is_floating_point()]
    places = list(dict.fromkeys(where))
    where = places if len(places) == 1 else [replace(it, role="perhaps here") for it in places[:2]]
    own = _own_function(s, m[1])
    if own:
        why = f"The backward of your Function `{own}` gave NaN for input {m[2]}: look for what divides by 0 in it."
        headline = f"the backward of `{own}` is the first that returned NaN"
        return card(
            "nan-in-backward", headline, why, "# print what its backward computes with", [*where, *s.at_start()], False
        )
    reason, fix = _NAN.get(op, _ARRIVED)
    if op == "**" and not (isinstance(exponent, float) and exponent < 1):
        reason, fix, op = *_ARRIVED, "pow"
    held += _operand(s, op, where)
    certain = len(places) < 2 and op in _SHOWN_BY_ZEROS and any(bool((it == 0).any()) for it in held)
    if any(bool(it.isnan().any()) for it in held):
        reason, certain = "it worked with NaN in the forward pass already", False
        fix = "print(x.isnan().any())  # of what goes in: find where the first NaN is made"
    why = f"The backward step of `{op}` gave NaN for input {m[2]}{':' if certain else '. It may be that'} {reason}."
    headline = f"the backward of `{op}` is the first that returned NaN"
    return card("nan-in-backward", headline, why, fix, [*where, *s.at_start()], certain)


def _operand(s: Situation, op: str, where: list[Place]) -> list[torch.Tensor]:
    """Return what the operation of a line worked on, where that still has its name."""
    call = next((it for it in s.calls if where and it.file == where[0].file), None)
    if call is None or call.source is None:
        return []
    found = []
    for node in ast.walk(call.source.tree):
        if getattr(node, "lineno", 0) != where[0].line:
            continue
        value: object = None
        if called(node) == op:
            owner = call.value(receiver(node))
            value = owner if is_a(owner, torch.Tensor) else call.value(argument(node, 0))
        elif isinstance(node, ast.BinOp) and op in ("/", "**"):
            value = call.value(node.right if op == "/" else node.left)
        if is_a(value, torch.Tensor):
            found.append(value)
    return found


def _made(s: Situation, stack: list[str]) -> list[Place]:
    for entry in reversed(stack):
        match = re.search(r'File "([^"]+)", line (\d+), in', entry)
        if match is not None and is_learners(match[1]):
            source = s.sources.of(match[1])
            return [Place("made here", match[1], int(match[2]), source.text(int(match[2])) if source else "")]
    return []


def _own_function(s: Situation, name: str) -> str:
    """Return the name of the learner's Function whose node has this name; "" for PyTorch's own operations."""
    for node in behind(s.roots):
        if type(node).__name__ == name and is_a(node, torch.autograd.function.FunctionCtx):
            return name.removesuffix("Backward")
    return ""


def _positional(s: Situation, kind: str, name: str) -> str:
    """Return what was given for a parameter of a distribution by its position."""
    made = getattr(torch.distributions, kind, None)
    names = list(inspect.signature(made).parameters) if made is not None else []
    return written(argument(s.node, names.index(name))) if name in names else ""


def _distribution(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, kind, constraint = m[1], m[2], m[3].rstrip(",")
    given = written(argument(s.node, 99, name)) or _positional(s, kind, name) or name
    value = s.given("distributions/distribution.py", "__init__", "value")
    nan = is_a(value, torch.Tensor) and bool(value.isnan().any())
    if nan or "nan" in s.text.rpartition("invalid values")[2]:
        why = (
            f"`{name}` of {kind} contains NaN, which was made before: in the data (a division by 0), or in the "
            f"parameters by a step that overflowed."
        )
        fix = "# print .isnan().any() of the input, then of the parameters: the first True says which"
        return card("distribution-values", f"`{name}` of {kind} contains nan", why, fix, s.needed())
    positive = "GreaterThan" in constraint
    why = f"`{given}` contains values that {kind} cannot have: it must be {_in_words(constraint)}."
    fix = f"F.softplus({given})  # positive, and smooth" if positive else f"{kind}(logits=...)  # scores of any size"
    if (not positive and "logits" in name) or (kind not in ("Categorical", "Bernoulli") and not positive):
        fix = "# look at its least and greatest element"
    if "PositiveDefinite" in constraint:
        fix = "# A @ A.T + 1e-3 * torch.eye(n) is one for every A; or give scale_tril, a lower triangle"
    elif name == "probs" and "logits=" in fix:
        called_as = written(s.node.func) if isinstance(s.node, ast.Call) else kind
        fix = f"{called_as}(logits={given})  # if these are scores of any size"
    return card("distribution-values", f"`{name}` of {kind} is not {_in_words(constraint)}", why, fix, s.needed())


def _in_words(constraint: str) -> str:
    return {
        "Simplex()": "probabilities that sum to 1",
        "Real()": "finite",
        "PositiveDefinite()": "positive definite",
    }.get(
        constraint,
        "positive"
        if constraint.startswith("GreaterThan(")
        else "between 0 and 1"
        if "Interval(lower_bound=0.0, upper_bound=1.0)" in constraint
        else constraint,
    )


def _support(s: Situation, m: re.Match[str]) -> Explanation | None:
    given = written(argument(s.node, 0, "value")) or "the value"
    why = f"`{given}` lies outside of what {m[2]} can give ({m[1]}), so it has no probability there."
    fix = "# compare its least and greatest element with what the distribution can give"
    return card("distribution-values", f"`{given}` is not a value of {m[2]}", why, fix, s.needed())


def _multinomial(s: Situation, m: re.Match[str]) -> Explanation | None:
    given = written(argument(s.node, 0)) or "the probabilities"
    value = s.here.value(argument(s.node, 0)) if s.here is not None else None
    what = "infinity, NaN or a negative number"
    if is_a(value, torch.Tensor):
        what = "nan" if bool(value.isnan().any()) else "infinity" if bool(value.isinf().any()) else "a negative number"
    why = f"`{given}` contains {what}. Probabilities are finite and not negative; scores go through softmax first."
    fix = "torch.multinomial(torch.softmax(logits, dim=-1), 1)"
    return card(
        "distribution-values",
        f"`{given}` contains {what}, so nothing can be drawn from it",
        why,
        fix,
        s.needed(),
        is_a(value, torch.Tensor),
    )


def _loss_made(s: Situation, m: re.Match[str]) -> Explanation | None:
    """A loss class that was given tensors asks for their truth, as if they were its settings."""
    kind = class_called(s)
    if not isinstance(s.node, ast.Call) or kind is None or not issubclass(kind, torch.nn.Module):
        return _ambiguous(s, m)
    name, given = written(s.node.func), ", ".join(ast.unparse(it) for it in s.node.args)
    why = f"`{name}` is a class: its arguments are settings. The loss that it makes is then called with the tensors."
    fix = f"criterion = {name}()\nloss = criterion({given})"
    return card("loss-not-called", f"`{name}` was given tensors when it was made", why, fix, s.needed())


def _ambiguous(s: Situation, m: re.Match[str]) -> Explanation | None:
    test = (
        next(
            (it.test for it in ast.walk(s.line_tree) if isinstance(it, ast.If | ast.While | ast.IfExp | ast.Assert)),
            None,
        )
        if s.line_tree
        else None
    )
    shown = written(test)
    among = next((it for it in ast.walk(s.node) if isinstance(it, ast.Compare)), None) if s.node is not None else None
    if among is not None and isinstance(among.ops[0], ast.In | ast.NotIn):
        what, those = written(among.left) or "x", written(among.comparators[0]) or "those"
        why = f"`in` compares `{what}` with each entry by ==, number by number, and needs one answer."
        fix = f"any({what} is it for it in {those})  # the same object; or keep id({what}) in a set"
        return card(
            "not-one-number", "`in` asks whether tensors are equal, and several numbers answer", why, fix, s.needed()
        )
    why = f"`{shown or 'the condition'}` has one answer for each element, and a branch needs one."
    fix = f"({shown or 'x > 0'}).any()  # or .all(); or compare one number: a mean, an item"
    return card(
        "not-one-number",
        f"`{shown or 'a condition'}` is a tensor of several booleans",
        why,
        fix,
        s.needed(),
        bool(shown),
    )


def _numbers_of(s: Situation, m: re.Match[str]) -> Explanation | None:
    """`torch.tensor([a, b])` of tensors that hold several numbers each, or float() of one that does."""
    node = argument(s.node, 0)
    value = s.here.value(node) if s.here is not None and node is not None else None
    given = written(node) or "them"
    if isinstance(s.node, ast.Call) and called(s.node) in ("tensor", "as_tensor", "Tensor", "FloatTensor"):
        elements = (
            [s.here.value(it) for it in node.elts] if isinstance(node, ast.List) and s.here is not None else value
        )
        known = type(elements) is list and all(is_a(it, torch.Tensor) for it in elements)
        why = "It makes a tensor of numbers, and an element that is a tensor of several is no number."
        fix = f"torch.stack({given})  # of tensors of one shape; and their graphs stay"
        headline = f"`{written(s.node.func)}` was given tensors, not numbers"
        return card("not-one-number", headline, why, fix, s.needed(), known)
    if not is_a(value, torch.Tensor):
        return None
    return _several(s, given, value.numel())


def _no_rsample(s: Situation, m: re.Match[str]) -> Explanation | None:
    """rsample() of a distribution whose draws jump."""
    drawn = s.given("distributions/distribution.py", "rsample", "self")
    if not is_a(drawn, torch.distributions.Distribution) or drawn.has_rsample:
        return None
    kind, owner = type(drawn).__name__, written(receiver(s.node)) or "dist"
    why = (
        f"rsample() gives draws through which a gradient can pass. Draws of {kind} have none, so it has sample() only."
    )
    fix = f"loss = -{owner}.log_prob({owner}.sample()) * reward  # the gradient goes by the probability of the draw"
    if is_a(drawn, torch.distributions.Categorical):
        fix += "\nF.gumbel_softmax(logits, hard=True)  # or a draw that lets a gradient through"
    return card("no-rsample", f"{kind} has no rsample()", why, fix, s.needed())


def _item(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or written(argument(s.node, 0)) or "x"
    return _several(s, owner, int(m[1]))


def _several(s: Situation, owner: str, count: int) -> Explanation:
    why = f"item() and float() give one number, and `{owner}` holds {count}."
    fix = f"{owner}.mean().item()  # one number for them all; {owner}.tolist() gives each"
    return card("not-one-number", f"`{owner}` holds {count} numbers, not one", why, fix, s.needed())


RULES = (
    Rule(RuntimeError, r"Function '(\w+)' returned nan values in its (\d+)th output", _nan),
    Rule(
        ValueError,
        r"Expected parameter (\w+) \(.*?\) of distribution (\w+)\(.* satisfy the constraint (.*?),? but found",
        _distribution,
    ),
    Rule(
        ValueError,
        r"Expected value argument .* to be within the support \((.*)\) of the distribution (\w+)\(",
        _support,
    ),
    Rule(RuntimeError, r"probability tensor contains either `inf`, `nan` or element < 0", _multinomial),
    Rule(RuntimeError, r"Boolean value of Tensor with more than one value is ambiguous", _loss_made),
    Rule(RuntimeError, r"a Tensor with (\d+) elements cannot be converted to Scalar", _item),
    Rule(Exception, r"only one element tensors can be converted to Python scalars", _numbers_of),
    Rule(NotImplementedError, r"^$", _no_rsample, "distributions/distribution.py"),
)
