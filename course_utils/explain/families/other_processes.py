"""Tensors with a graph that were to go from one process to another, as from a DataLoader's worker."""

from __future__ import annotations

import ast
import re

import torch
from torch.utils.data import default_collate

from course_utils.explain.explanation import Explanation
from course_utils.explain.lines import defined
from course_utils.explain.naming import name_of
from course_utils.explain.reading import own_attributes
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import walk

_WHY = "A graph lives in one process, and no tensor takes it along to another."


def from_a_worker(s: Situation, in_collate: bool) -> Explanation | None:
    """Explain what a worker could not stack into shared memory, because it requires a gradient."""
    if not in_collate:  # an out= of the learner's own, at a line of which only the text is there
        return None
    own = own_attributes(s.given("utils/data/dataloader.py", "_next_data", "self"))
    data, collate = own.get("_dataset"), own.get("_collate_fn")
    sure = collate is default_collate
    while type(data) is torch.utils.data.Subset:
        data = own_attributes(data).get("dataset")
    shown = f"`{type(data).__name__}`" if data is not None else "The data set"
    method = getattr(type(data), "__getitem__", None)
    source, scope = defined(s, getattr(method, "__code__", None)) or (None, None)
    ends = [it for it in walk(scope) if isinstance(it, ast.Return)] if scope is not None else []
    where = [source.place("a sample is made here", it) for it in ends] if source and len(ends) == 1 and sure else []
    why = f"{shown} gives samples with tensors that require a gradient, and a worker stacks samples in shared memory. "
    if not sure:
        why = "A worker stacks tensors that require a gradient in shared memory: of the samples, or of collate_fn. "
    fix = "# return plain data from the data set, and compute what is to learn in the training loop\n"
    fix += "# or, where nothing behind a sample is to learn: return it with .detach()"
    headline = "a DataLoader's worker cannot hand over tensors that require a gradient"
    return card("graph-to-other-process", headline, why + _WHY, fix, [*where, *s.needed()], sure)


def _refused(s: Situation, m: re.Match[str]) -> Explanation | None:
    tensor = s.given("multiprocessing/reductions.py", "reduce_tensor", "tensor")
    shown = name_of(s, tensor, "a tensor")
    why = f"{shown} was computed from what requires a gradient. {_WHY}"
    own = shown.strip("`") if "`" in shown else "tensor"
    fix = f"{own}.detach()  # the numbers can go; what is to learn is computed where backward() runs"
    return card(
        "graph-to-other-process", f"{shown} has a graph, and was to go to another process", why, fix, s.needed()
    )


RULES = (Rule(RuntimeError, r"Cowardly refusing to serialize non-leaf tensor", _refused),)
