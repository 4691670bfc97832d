"""copy.deepcopy of what holds a graph: the module, its attribute, and the line that put the tensor there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.lines import only_line
from course_utils.explain.loops import attribute_assigned, methods_of
from course_utils.explain.naming import argument, dotted, name_of
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, operand, target_name, written

# What a weight is computed by, told by what the layer holds beside it.
_MADE_BY = {"_mask": "pruning", "_u": "spectral_norm", "_g": "weight_norm"}


def _deepcopy(s: Situation, m: re.Match[str]) -> Explanation | None:
    tensor: Any = None
    for frame in reversed(s.torch_frames):
        if frame.f_code.co_name == "__deepcopy__" and is_a(frame.f_locals.get("self"), torch.Tensor):
            tensor = frame.f_locals["self"]
            break
    given = written(argument(s.node, 0)) or "it"
    value: Any = s.here.value(argument(s.node, 0)) if s.here is not None else None
    if is_a(value, torch.nn.Module):
        return _of_module(s, given, value, tensor)
    name = name_of(s, tensor, f"`{given}`") if tensor is not None else f"`{given}`"
    own = name.strip("`")
    why = f"{name} was computed, and its graph leads to other tensors; copy.deepcopy copies leaves only."
    fix = f"{own}.detach().clone()  # the values; {own}.clone() keeps the graph"
    return card("deepcopy-non-leaf", f"{name} has a graph, so it cannot be deep-copied", why, fix, s.needed())


def _of_module(s: Situation, given: str, model: torch.nn.Module, tensor: Any) -> Explanation:
    headline = f"`{given}` keeps a tensor with a graph, so it cannot be copied"
    held = [
        (dotted(given, path), part, key)
        for path, part in torch.nn.Module.named_modules(model)
        for key, it in vars(part).items()
        if it is tensor
    ]
    if not held:
        why = f"`{given}` holds a computed tensor, and a graph is not copied."
        fix = "self.features = features.detach()  # where the module keeps it"
        return card("deepcopy-non-leaf", headline, why, fix, s.needed(), False)
    owner, part, key = held[0]
    by = next((how for end, how in _MADE_BY.items() if f"{key}{end}" in {**part._parameters, **part._buffers}), "")
    if by:
        why = f"`{owner}.{key}` is computed by {by} from a parameter of its layer, and a graph is not copied."
        target = s.line_tree.targets[0] if isinstance(s.line_tree, ast.Assign) else None
        into = target_name(written(target), "state")
        fix = f"{into} = {{k: v.detach().clone() for k, v in {operand(given)}.state_dict().items()}}  # the values"
        if by == "pruning":
            fix += f"\n# or first, for good: torch.nn.utils.prune.remove({owner}, '{key}')"
        else:
            fix += f"\n# or torch.nn.utils.parametrizations.{by}, whose modules can be copied"
        made = only_line(s, "made computed here", lambda it: called(it) == by or (by == "pruning" and _prunes(it)))
        return card("deepcopy-non-leaf", headline, why, fix, [*made, *s.needed()])
    why = f"`{owner}.{key}` holds a computed tensor with its graph, and a graph is not copied."
    kept = list(_keeps(s, owner, key))
    value = kept[-1][1] if kept else "features"
    fix = f"self.{key} = {operand(value)}.detach()  # where the module keeps it"
    return card("deepcopy-non-leaf", headline, why, fix, [*(it[0] for it in kept[-1:]), *s.needed()])


def _keeps(s: Situation, owner: str, key: str) -> Iterator[tuple[Place, str]]:
    """Yield the lines of the module's class that set an attribute, with what they set it to."""
    for source, scope in methods_of(s.here, f"{owner}.{key}") if s.here is not None else ():
        for it in attribute_assigned(scope, f"self.{key}"):
            value = written(getattr(it, "value", None), 60)
            if value and value != "None":
                yield source.place("kept here", it), value


def _prunes(node: ast.AST) -> bool:
    return re.search(r"structured$|^custom_from_mask$", called(node)) is not None


RULES = (
    Rule(RuntimeError, r"Only Tensors created explicitly by the user .* support the deepcopy protocol", _deepcopy),
)
