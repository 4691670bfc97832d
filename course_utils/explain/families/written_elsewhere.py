"""A saved tensor overwritten where no line at work did it: by a layer, a hook, a lookup, or a function that is over."""

from __future__ import annotations

import ast

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.lines import has_keyword, lines
from course_utils.explain.naming import modules
from course_utils.explain.nodes import behind, same_memory
from course_utils.explain.reading import is_a
from course_utils.explain.returned import (
    Returned,
    in_place_layers,
    shown,
    updated_in,
    written_after,
    written_by_class,
    written_by_helpers,
    written_in_hooks,
    written_somewhere,
)
from course_utils.explain.rules import card
from course_utils.explain.situation import Situation
from course_utils.explain.writers import out_of_place
from course_utils.graph.trace import LiveNode, node_name

NAMELESS = "a tensor without a name"
_LOOK = "# look there for `+=`, `[...] =`, `_` methods, inplace=True\n# %%explain finds the line"


def written_elsewhere(
    s: Situation, node: LiveNode, op: str, names: list[str], what: str, parameter: bool, where: list[Place]
) -> Explanation:
    """Return the card of a write that is not in a function at work: what is most likely, or where to look."""
    needed = s.at_start("needed here")
    headline = f"{what}, which {said(op)} had saved, was overwritten in place"
    why = f"{sentence(op)} saved {what} for its derivative, and something wrote into it before backward() read it."
    layers = _layers(s)
    if (close := [it for it in layers if _wrote(s, node, it[1])]) and not parameter:
        why += f" {', '.join(f'`{_text(it)}`' for it in close[:3])} writes in place."
        fix = f"{_kind(close[0][1])}  # without inplace=True, for {_text(close[0])}"
        return card("in-place", headline, why, fix, [*where, *_made(s, close[0][1]), *needed], False)
    if parameter and (updates := updated_in(s)):
        why += f" `{updates[0].function}` writes into the parameters that it is given."
        fix = f"# call {updates[0].function} after all backward passes, or compute this loss again after it"
        return card("in-place", headline, why, fix, [*where, *(it.where[0] for it in updates[:1]), *needed], False)
    if not parameter and len(hooked := written_in_hooks(s)) == 1:
        why += f" The hook `{hooked[0].function}` writes into what a layer returned."
        fix = _hook_fix(hooked[0])
        return card("in-place", headline, why, fix, [*where, *hooked[0].where, *needed], False)
    late = [*written_by_class(s, op, names), *written_by_helpers(s, op, names), *written_after(s, op)]
    late = list({id(it.statement): it for it in reversed(late)}.values())[::-1]
    if late and not (parameter and late[0].name not in names):
        return _late(late, what, op, where, needed)
    if layers and not parameter:
        why += f" {', '.join(f'`{_text(it)}`' for it in layers[:3])} writes in place."
        fix = f"{_kind(layers[0][1])}  # without inplace=True, for {_text(layers[0])}"
        return card("in-place", headline, why, fix, [*where, *_made(s, layers[0][1]), *needed], False)
    if set_to := in_place_layers(s):
        why += " A layer made with inplace=True writes into what it is given."
        fix = "# make the layer without inplace=True"
        return card("in-place", headline, why, fix, [*where, *set_to[:1], *needed], False)
    why += " The line that did may be in a function that has returned."
    return card("in-place", headline, why, _LOOK, [*where, *written_somewhere(s)[:2], *needed], False)


def said(op: str) -> str:
    """Return an operation as a sentence has it: "`exp`", or "a linear layer"."""
    return op if " " in op else f"`{op}`"


def sentence(op: str) -> str:
    """Return an operation as a sentence begins with it."""
    text = said(op)
    return text[0].upper() + text[1:]


def _late(late: list[Returned], what: str, op: str, where: list[Place], needed: tuple[Place, ...]) -> Explanation:
    one = late[0]
    if what == NAMELESS and len({it.whole or it.name for it in late}) == 1:
        what = f"`{one.whole or one.name}`"
    why = f"{sentence(op)} saved {what} for its derivative, and something wrote into it before backward() read it. "
    why += f"In `{one.function}`, which has returned, `{shown(one)}` writes into `{one.name}`"
    why += f" after {said(op)} was run." if len(one.where) > 1 else "."
    if len(late) > 1:
        why += f" Or line {late[1].statement.lineno} does: `{shown(late[1])}`."
    headline = f"{what}, which {said(op)} had saved, was overwritten in place"
    fix = out_of_place(one.statement, one.whole)
    return card("in-place", headline, why, fix, [*where, *one.where, *needed], False)


def _hook_fix(hooked: Returned) -> str:
    statement = hooked.statement
    if isinstance(statement, ast.Return) and statement.value is not None:
        new = out_of_place(ast.Expr(statement.value)).partition("  #")[0].partition(" = ")[2]
        if new:
            return f"return {new}  # from the hook: a new tensor"
    return f"{out_of_place(statement).partition('  #')[0]}\nreturn {hooked.name}  # from the hook"


def _layers(s: Situation) -> list[tuple[str, torch.nn.Module]]:
    """Return the layers that write in place, each with its name."""
    found: dict[int, tuple[str, torch.nn.Module]] = {}
    for call in s.calls:
        for name, module in modules(call):
            if module.__dict__.get("inplace") is True:
                found.setdefault(id(module), (name, module))
    return list(found.values())


def _text(it: tuple[str, torch.nn.Module]) -> str:
    return f"{it[0]} = {type(it[1]).__name__}(inplace=True)"


def _kind(module: torch.nn.Module) -> str:
    return f"nn.{type(module).__name__}()" if type(module).__name__ in ("ReLU", "SiLU", "ReLU6", "Mish") else (
        f"# nn.{type(module).__name__} as it was"
    )  # fmt: skip


def _wrote(s: Situation, node: LiveNode, layer: torch.nn.Module) -> bool:
    """Return whether the graph has a step of such a layer right after the operation that saved its own result."""
    kind = type(layer).__name__.lower().rstrip("6")
    after = [it for it in behind(s.roots) if any(to is node for to, _ in it.next_functions)]
    return any(kind in node_name(it).lower() for it in after)


def _made(s: Situation, layer: torch.nn.Module) -> list[Place]:
    """Return the line that makes such a layer, if there is one only."""
    kind = type(layer).__name__
    found = [it for it in in_place_layers(s) if f"{kind}(" in it.text]
    return found if len(found) == 1 else []


def renormed(s: Situation, tensor: torch.Tensor, op: str, needed: tuple[Place, ...]) -> Explanation | None:
    """Explain the weights of an embedding that renormalises them at each lookup."""
    for call in reversed(s.calls):
        for name, module in modules(call):
            if not is_a(module, torch.nn.Embedding) and not is_a(module, torch.nn.EmbeddingBag):
                continue
            weight = module._parameters.get("weight")
            if module.__dict__.get("max_norm") is None or weight is None or not same_memory(weight, tensor):
                continue
            limit = module.__dict__["max_norm"]
            why = (
                f"With max_norm={limit} each lookup in `{name}` shortens the rows that it reads, in place. "
                f"{sentence(op)} had saved the same weights before a lookup, and backward() wants them unchanged."
            )
            fix = f"{name}.weight.clone()  # where the weights are used beside the lookup\n# or make the layer without "
            headline = f"`{name}.weight`, which {said(op)} had saved, was rewritten by a lookup (max_norm={limit})"
            made = lines(s, "rewrites at each lookup", lambda it: has_keyword(it, "max_norm", ""))
            return card("in-place", headline, why, f"{fix}max_norm", [*made[:1], *needed], False)
    return None
