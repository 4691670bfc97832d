"""Tensors of unequal shapes that are to become one: a batch of a DataLoader, or a stack."""

from __future__ import annotations

import ast
import re

from course_utils.explain.explanation import Explanation
from course_utils.explain.lines import defined
from course_utils.explain.naming import argument
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import walk, written


def _stacked(s: Situation, m: re.Match[str]) -> Explanation | None:
    if s.within("utils/data/_utils/collate.py") is not None:
        return _collated(s, m)
    parts = written(argument(s.node, 0)) or "parts"
    why = (
        f"stack lays tensors of one shape beside each other; here are [{m[1]}] (number {m[2]}) and "
        f"[{m[3]}] (number {m[4]})."
    )
    fix = (
        f"torch.nn.utils.rnn.pad_sequence({parts}, batch_first=True)  # sequences of unequal length\n"
        f"torch.cat({parts})  # or one after the other"
    )
    return card("stacked-shapes", f"stack got tensors of unequal shapes: [{m[1]}] and [{m[3]}]", why, fix, s.needed())


def _collated(s: Situation, m: re.Match[str]) -> Explanation:
    """Samples of unequal shapes, which a DataLoader cannot make a batch of."""
    fetcher = s.given("utils/data/_utils/fetch.py", "fetch", "self")
    code = getattr(getattr(type(getattr(fetcher, "dataset", None)), "__getitem__", None), "__code__", None)
    source, scope = defined(s, code) or (None, None)
    ends = [it for it in walk(scope) if isinstance(it, ast.Return)] if scope is not None else []
    where = [source.place("a sample is made here", it) for it in ends[:1] if source]
    why = f"A DataLoader stacks the samples of a batch. Sample {m[2]} of this one has shape [{m[1]}], sample {m[4]} "
    why += f"[{m[3]}]."
    fix = "def collate(samples):  # for samples (x, y), and collate_fn=collate for the DataLoader\n"
    fix += "    xs, ys = zip(*samples)\n"
    fix += "    return torch.nn.utils.rnn.pad_sequence(xs, batch_first=True), torch.tensor(ys)"
    headline = f"the DataLoader cannot stack samples of shapes [{m[1]}] and [{m[3]}]"
    return card("stacked-shapes", headline, why, fix, [*where, *s.needed()])


RULES = (
    Rule(
        RuntimeError,
        r"stack expects each tensor to be equal size, but got \[(.*?)\] at entry (\d+) and \[(.*?)\] at entry (\d+)",
        _stacked,
    ),
)
