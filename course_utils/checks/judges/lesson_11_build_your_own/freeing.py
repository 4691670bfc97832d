"""What PyTorch keeps for a graph, and which passes over it end in an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Raised
from course_utils.checks.exercise import Finding
from course_utils.checks.judges.lesson_11_build_your_own.stages import raised, told
from course_utils.checks.scenes.lesson_11_build_your_own.kept import KEPT, NBYTES, SIDE
from course_utils.checks.scenes.lesson_11_build_your_own.passes import NUMBERS, Passes, run_pass

# Above a whole number of arrays: a mask of bools is an eighth of one, and Python's own objects are small.
SLACK = 0.4


@cache
def kept_by_pytorch(name: str) -> int:
    """Return how many large arrays PyTorch keeps for a result of KEPT, besides the leaf and the constant."""
    x = torch.linspace(0.5, 1.5, SIDE * SIDE, dtype=torch.float64).reshape(SIDE, SIDE)
    c, own = x.clone(), set()
    x.requires_grad_()

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().nbytes() >= NBYTES:
            own.add(tensor.untyped_storage().data_ptr())
            held.append(tensor.detach())
        return tensor.detach()

    held: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        KEPT[name](x, c)
    return len(own - {x.untyped_storage().data_ptr(), c.untyped_storage().data_ptr()})


def passes_of(scene: Passes) -> list[torch.Tensor | None]:
    """Return for each pass the gradient of the leaf that PyTorch gives; None where it raises."""
    x = torch.tensor(NUMBERS, dtype=torch.float64, requires_grad=True)
    results = scene.build(x)
    found: list[torch.Tensor | None] = []
    for name, retain in scene.passes:
        x.grad = None
        try:
            run_pass(results[name], retain, torch.from_numpy)
        except RuntimeError:
            found.append(None)
        else:
            found.append(x.grad)
    return found


def kept(seen: Mapping[str, Any], moments: Mapping[str, str]) -> Iterator[Finding]:
    """Find whether no more arrays are alive than PyTorch keeps: at "forward" and "retained" its own, else none."""
    for name, counts in seen.items():
        if raised(counts):
            yield Finding("runs", False, f"With only the result of `{name}` held, a pass ended in {told(counts)}.")
            continue
        for moment, text in moments.items():
            most = kept_by_pytorch(name) if moment in ("forward", "retained") else 0
            message = (
                f"{text.format(name)}, {about(counts[moment])} arrays of the size of x are alive besides x; PyTorch: "
                f"{most}."
            )
            yield Finding(moment, counts[moment] <= most + SLACK, message)


def about(count: float) -> str:
    """Write how many arrays are alive. Python's own objects count as a few hundredths of one."""
    return f"about {count:.1f}".removesuffix(".0")


def passes(seen: Mapping[str, Any], scenes: Mapping[str, Passes]) -> Iterator[Finding]:
    """Find whether each pass ends as in PyTorch, with its gradient or a RuntimeError that says why."""
    for name, scene in scenes.items():
        if raised(seen[name]):
            yield Finding("passes", False, f"On {name}: {told(seen[name])}.")
            continue
        for number, (mine, right) in enumerate(zip(seen[name], passes_of(scene), strict=True), 1):
            where = f"On {name}, pass {number}"
            if right is None:
                got = f"raised {told(mine)}" if raised(mine) else "gave no error"
                yield Finding("passes", raised(mine, "RuntimeError"), f"{where} {got}; expected a RuntimeError.")
                if raised(mine, "RuntimeError"):
                    text = f"{where} raised a RuntimeError that says {mine.message!r}. Say that the graph is freed."
                    yield Finding("says", _says(mine), text)
            elif raised(mine):
                yield Finding("passes", False, f"{where} raised {told(mine)}; expected a gradient.")
            else:
                found = right_value(mine, right, "the gradient")
                yield Finding("passes", found.ok, f"{where}: {found.message}")


def _says(error: Raised) -> bool:
    words = ("second", "twice", "again", "freed", "already", "retain")
    return any(word in error.message.lower() for word in words)


def right_gradients(seen: Mapping[str, Any], scenes: Mapping[str, Passes]) -> bool:
    """Return whether each pass that is to give a gradient gave the right one."""
    return all(
        not raised(seen[name])
        and all(close(a, b) for a, b in zip(seen[name], passes_of(scene), strict=True) if b is not None)
        for name, scene in scenes.items()
    )


def ended(seen: Mapping[str, Any], name: str) -> list[str]:
    """Return how the passes of a scene ended: the kind of exception, or "ok"."""
    if raised(seen[name]):
        return ["scene"]
    return [mine.kind if raised(mine) else "ok" for mine in seen[name]]


def counts(seen: Mapping[str, Any], moment: str) -> list[float]:
    """Return how many arrays each result has too many at a moment; none where a scene raised."""
    if any(raised(one) for one in seen.values()):
        return []
    most = {name: kept_by_pytorch(name) if moment in ("forward", "retained") else 0 for name in seen}
    return [one[moment] - most[name] for name, one in seen.items()]


def too_many(seen: Mapping[str, Any], moment: str) -> bool:
    """Return whether more arrays are alive than PyTorch keeps."""
    return any(count > SLACK for count in counts(seen, moment))
