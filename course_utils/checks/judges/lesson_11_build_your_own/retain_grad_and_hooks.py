"""Judging stage 8, `retain_grad_and_hooks`: gradients seen and changed on their way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Observation
from course_utils.checks.exercise import Finding, Misconception
from course_utils.checks.judges.lesson_11_build_your_own import backward
from course_utils.checks.judges.lesson_11_build_your_own.stages import Stage, exercise, nothing, raised, told
from course_utils.checks.scenes.lesson_11_build_your_own.watched import NUMBERS, WATCHED

_PLAIN, _RETAINED, _LOOKS, _DOUBLES, _BOTH, _TWO, _ON_LEAF, _REMOVED, *_, _UNRETAINED = WATCHED
_CHAIN = "a hook on each of a chain"
_REMOVALS = tuple(name for name in WATCHED if "removed" in name)
# Where one of these fails, the others, which are made of them, would say the same again.
_FIRST = (_RETAINED, _LOOKS, _DOUBLES)


@cache
def _watched(name: str) -> tuple[list[tuple[str, torch.Tensor]], dict[str, torch.Tensor | None]]:
    """Return what PyTorch's hooks note, and the gradients afterwards."""
    noted: list[tuple[str, torch.Tensor]] = []
    x = torch.tensor(NUMBERS, dtype=torch.float64, requires_grad=True)
    found = WATCHED[name](x, lambda name, g: noted.append((name, g.clone())))
    return noted, found


def _wrong(name: str, seen: Any) -> str | None:
    if raised(seen):
        return f"raised {told(seen)}"
    noted, found = _watched(name)
    mine = [entry[0] for entry in seen["noted"]]
    right = [entry[0] for entry in noted]
    if mine != right:
        order = f"the hooks ran in this order: {listed(mine)}" if mine else "no hook ran"
        return f"{order}; expected {listed(right)}"
    for (label, value), (_, wanted) in zip(seen["noted"], noted, strict=True):
        finding = right_value(value, wanted, f"what the hook `{label}` got")
        if not finding.ok:
            return finding.message
    if seen["arrays"]:
        return f"the hook `{seen['arrays'][0]}` got something else than a tensor of your engine"
    for label, wanted_or_none in found.items():
        if wanted_or_none is None:
            if seen["found"][label] is not None:
                return f"{label} is {describe(seen['found'][label])}; expected None"
            continue
        finding = right_value(seen["found"][label], wanted_or_none, label)
        if not finding.ok:
            return finding.message
    return None


def _judge(given: dict[str, Any], seen: Observation) -> Iterator[Finding]:
    handle = seen["handle"]
    kind = "None" if handle == "NoneType" else f"something of type {handle}"
    said = f"`t.register_hook(f)` returned {kind}; expected a handle with `remove()`."
    yield Finding("handle", raised(handle) or handle is True, said)
    first = _right(seen, *_FIRST)
    for name in WATCHED:
        told_already = name in _REMOVALS and not raised(handle) and handle is not True
        text = None if told_already or not (first or name in (_PLAIN, *_FIRST)) else _wrong(name, seen[name])
        prop = {_CHAIN: _LOOKS, _UNRETAINED: _PLAIN, **dict.fromkeys(_REMOVALS, _REMOVED)}.get(name, name)
        yield Finding(prop, text is None, f"With {name}: {text.rstrip('.')}." if text else "")
    if first and seen["asked"] is not None and not raised(seen["asked"]):
        wanted = torch.full((len(NUMBERS),), 6.0, dtype=torch.float64)
        said = "With a hook that doubles on h = x * 3.0, what engine.grad(h.sum(), [x]) returns"
        yield replace(right_value(seen["asked"], wanted, said), prop="asked")


def _right(seen: Observation, *names: str) -> bool:
    return all(_wrong(name, seen[name]) is None for name in names)


def _only(*wrong: str) -> Callable[..., bool]:
    """Return whether exactly these scenes are wrong."""
    return lambda case, seen: all((_wrong(name, seen[name]) is None) == (name not in wrong) for name in WATCHED)


def _labels(seen: Observation, name: str) -> list[str]:
    return [] if raised(seen[name]) else [entry[0] for entry in seen[name]["noted"]]


def _in_parts(seen: Observation, name: str) -> bool:
    """Return whether the hook got parts, which make up the gradient."""
    if len(_labels(seen, name)) < 2:
        return False
    parts = [part for _, part in seen[name]["noted"]]
    whole = _watched(name)[0][0][1]
    return all(isinstance(it, Array) for it in parts) and close(Array.of(sum(it.tensor() for it in parts)), whole)


def _x(seen: Observation, name: str, like: str, factor: float = 1.0) -> bool:
    """Return whether x.grad is in one scene what PyTorch has in another, times a factor."""
    wanted = _watched(like)[1]["x.grad"]
    return not raised(seen[name]) and wanted is not None and close(seen[name]["found"]["x.grad"], factor * wanted)


def _kept_as_in(found: Any, name: str) -> bool:
    """Return whether h.grad is what PyTorch keeps in a scene."""
    wanted = _watched(name)[1]["h.grad"]
    return wanted is not None and close(found["h.grad"], wanted)


def _same(case: Any, seen: Observation) -> bool:
    if _labels(seen, _TWO) != ["first", "second"] or not _right(seen, _DOUBLES):
        return False
    (_, first), (_, second) = seen[_TWO]["noted"]
    return bool(first == second)


STAGE = Stage("retain_grad_and_hooks", nothing, _judge, (backward.STAGE,))

EXERCISE = exercise(
    STAGE,
    1,
    title="retain_grad and hooks",
    difficulty=3,
    minutes=30,
    points=3,
    hints=(
        "At which moment of a pass is the gradient of a tensor complete? Everything of this stage happens there.",
        "The tensor may be gone when the pass runs, and its node is not. So the hooks of a result live on its node, "
        "those of a leaf on the leaf. Each hook gets what the one before it left.",
        "When a place is ready: for each of its hooks in order, new = hook(g), and if new is not None: g = new. Then, "
        "if retain_grad was called, add g to the tensor's grad (keep a weak reference to it on the node). Then run "
        "the rule with g, or for a leaf add g to its grad. register_hook returns an object whose remove() takes the "
        "hook out again.",
    ),
    misconceptions=(
        Misconception(
            "once for each part",
            "A hook ran once for each gradient that arrives at its tensor, with that part alone. It is to run once in "
            "a pass, with the sum.",
            lambda case, seen: _in_parts(seen, _LOOKS) or _in_parts(seen, _ON_LEAF),
        ),
        Misconception(
            "what a hook returns is ignored",
            "A hook that returns another gradient changes nothing: the one that arrived is passed on.",
            lambda case, seen: _x(seen, _DOUBLES, _PLAIN) and _right(seen, _PLAIN, _LOOKS),
        ),
        Misconception(
            "None is taken for a gradient",
            "After a hook that returns nothing, the gradient is gone or the pass ends in an error. A hook that only "
            "looks returns None, and changes nothing.",
            lambda case, seen: not _right(seen, _LOOKS) and _right(seen, _PLAIN, _DOUBLES, _TWO),
        ),
        Misconception(
            "the last hook first",
            "Of two hooks on a tensor the one that was registered last ran first.",
            lambda case, seen: _labels(seen, _TWO) == ["second", "first"],
        ),
        Misconception(
            "each hook gets the same",
            "The second hook got what had arrived, not what the first one returned. They work one on the result of the "
            "other.",
            _same,
        ),
        Misconception(
            "remove() without effect",
            "A hook ran though it had been removed. A handle that is dropped is another thing than one whose remove() "
            "was called.",
            lambda case, seen: _only(*_REMOVALS)(case, seen) and _x(seen, _REMOVED, _PLAIN, 10.0),
        ),
        Misconception(
            "retained before the hooks",
            "What retain_grad() keeps is the gradient before the hooks changed it. In PyTorch it is what is passed on, "
            "whichever was called first.",
            lambda case, seen: (
                _only(_BOTH)(case, seen) and not raised(seen[_BOTH]) and _kept_as_in(seen[_BOTH]["found"], _RETAINED)
            ),
        ),
        Misconception(
            "every result retains",
            "A result has a `.grad` though nobody called retain_grad(). Then all of them stay in memory.",
            _only(_PLAIN, _UNRETAINED),
        ),
        Misconception(
            "leaves after the fact",
            "A hook on a leaf got its gradient, and what it returned did not go into `.grad`. It runs before anything "
            "is added there.",
            lambda case, seen: (
                _only(_ON_LEAF)(case, seen)
                and _labels(seen, _ON_LEAF) == ["x"]
                and _x(seen, _ON_LEAF, _ON_LEAF, 2.0)  # the hook halves
            ),
        ),
        Misconception(
            "leaves have no hooks",
            "A hook on a leaf never ran. Where a leaf has no node of its own, its gradient is complete at the end all "
            "the same.",
            lambda case, seen: not raised(seen[_ON_LEAF]) and _labels(seen, _ON_LEAF) == [] and _right(seen, _DOUBLES),
        ),
        Misconception(
            "retain_grad without effect",
            "After retain_grad() and a pass the result's `.grad` is None.",
            lambda case, seen: (
                not raised(seen[_RETAINED]) and seen[_RETAINED]["found"]["h.grad"] is None and _right(seen, _DOUBLES)
            ),
        ),
    ),
)
