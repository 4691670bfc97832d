"""Judging `fine_tune`: a frozen backbone that moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from course_utils.checks.compare import close, listed
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.lesson_09_practical_checklist.descent import (
    Path,
    Refused,
    State,
    descend,
    left_in,
    on,
    parameters_of,
    right_end,
)
from course_utils.checks.judges.lesson_09_practical_checklist.session import floats, one_step_each, quiet, work_done
from course_utils.checks.judges.lesson_09_practical_checklist.slips import CLEARING, NEVER, Slips, uncleared, unmoved
from course_utils.checks.scenes.lesson_09_practical_checklist.fine_tune import backbone_and_head
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, classes
from course_utils.graph.saved import saved


def _cases(seed: int) -> list[Case]:
    return [
        Case("three batches", {"seed": seed, "sizes": [5, 5, 4], "frozen": False}),
        Case("a head and a backbone of which a bias is frozen", {"seed": seed + 1, "sizes": [4, 6, 3], "frozen": True}),
    ]


def _tuned(case: Case, slips: Slips = frozenset()) -> tuple[Path, State, State]:
    """Return the head's path, and what the backbone's parameters and buffers are to stay."""
    backbone, head, optimizer = backbone_and_head(case)
    backbone.eval()

    left = left_in(head) if slips else {}
    start = parameters_of(head)
    frozen = {name: start.pop(name) for name, it in head.named_parameters() if not it.requires_grad}

    def still(steps: int) -> State:
        """Return where what is frozen stands: an old gradient that nobody clears moves it, too."""
        times = steps if NEVER in slips else min(steps, 1)
        return {name: it - RATE * times * left.get(name, 0) for name, it in frozen.items()}

    def loss(number: int, inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        with torch.no_grad():
            features = backbone(inputs)
        return lambda state: cross_entropy(on(head, features, state | still(number)), targets)

    losses = [loss(number, *batch) for number, batch in enumerate(classes(case))]
    moving = {name: optimizer.state[it]["momentum_buffer"] for name, it in head.named_parameters() if name in start}
    path = descend(start, losses, RATE, momentum=0.9, decay=0.1, left=left, moving=moving, adding=NEVER in slips)
    path = Path(path.losses, [state | still(number) for number, state in enumerate(path.states, 1)])
    return path, parameters_of(backbone), dict(backbone.named_buffers())


def _end(case: Case, slips: Slips) -> State:
    return _tuned(case, slips)[0].end


def _frozen(received: Any, right: State) -> bool:
    """Return whether nothing changed, to the bit."""
    return isinstance(received, dict) and received == {name: Array.of(it) for name, it in right.items()}


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    path, parameters, buffers = _tuned(case)
    text = "Parameters of the backbone are not what they were."
    yield Finding("backbone", _frozen(seen["parameters"][0], parameters), text)
    changed = [name for name, it in buffers.items() if seen["buffers"][0].get(name) != Array.of(it)]
    yield Finding("buffers", not changed, f"Buffers of the backbone changed: {listed(changed)}.")
    yield one_step_each(seen, len(case.given["sizes"]))
    yield from quiet(seen, modes=False, free=True)
    yield floats(seen["returned"], path.losses, "The list of losses")
    yield from right_end(seen, path.end, 1, "the head")
    text = "What a layer of the backbone returned had a graph. Nothing in there is to be trained."
    yield Finding("recorded", not seen["recorded"][0], text)


def _partly_training(case: Case, seen: Observation) -> bool:
    """Return whether a part of the backbone was in training mode in a run, and the first loss is wrong already."""
    first = next(iter(seen["returned"]), None)
    _, _, buffers = _tuned(case)
    return (
        any(not run["evaluating"] for run in seen["runs"] if run["of"] == 0)
        and _frozen(seen["buffers"][0], buffers)
        and type(first) is float
        and not close(first, _tuned(case)[0].losses[0])
    )


def _put_back(case: Case, seen: Observation) -> bool:
    """Return whether the losses are those with a backbone that moves in each step, and it is as it was at the end."""
    if not _frozen(seen["parameters"][0], _tuned(case)[1]):
        return False
    return any(floats(seen["returned"], _drifting(case, zeros), "").ok for zeros in (False, True))


def _drifting(case: Case, zeros: bool) -> list[float]:
    """Tune with what is left in the backbone's gradients, or with zeros in their place. Return the losses."""
    backbone, head, optimizer = backbone_and_head(case)
    backbone.eval()
    if zeros:
        backbone.zero_grad(set_to_none=False)
    losses = []
    for inputs, targets in classes(case):
        loss = cross_entropy(head(backbone(inputs).detach()), targets)
        head.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, _ = seen[0]
    backbone, _, _ = backbone_and_head(case)
    (inputs, _), *_ = classes(case)
    kept = sum(entry.bytes for entry in saved(backbone(inputs)))
    yield from work_done(seen, f"Recorded, the backbone alone would have kept {kept} bytes for the first batch.")


EXERCISE = Exercise(
    id="fine_tune",
    title="A frozen backbone that moves",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=3,
    call="fine_tune(backbone, head, optimizer, batches)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Copy backbone.state_dict() before the loop and compare it after each step. Parameters change and buffers "
        "change: two causes.",
        "The optimizer never looks at requires_grad. It looks at .grad, and the backbone has gradients left from "
        "earlier. And batch norm updates its statistics in training mode, gradients or not.",
        "backbone.eval(); clear with optimizer.zero_grad(), which knows the backbone as well: where .grad is None, "
        "momentum and weight decay are skipped. Compute the features under no_grad.",
    ),
    misconceptions=(
        Misconception(
            "old gradients",
            "Parameters of the backbone moved. The optimizer moves whatever has a gradient in .grad, be it zeros, and "
            "the backbone's parameters had one when it stepped. It passes over None alone.",
            lambda case, seen: (
                not _frozen(seen["parameters"][0], _tuned(case)[1])
                and any(step["first has a gradient"] for step in seen["steps"])
            ),
        ),
        Misconception(
            "running statistics",
            "Buffers of the backbone changed: it ran with batch norm in training mode.",
            # What batch norm counts in training mode; who puts the statistics back to their start puts this to 0.
            lambda case, seen: (
                seen["buffers"][0].get("2.num_batches_tracked") not in (None, Array.of(torch.tensor(0)))
                and any(not run["evaluating"] for run in seen["runs"] if run["of"] == 0)
            ),
        ),
        Misconception(
            "a part in training mode",
            "When your backbone ran, a part of it was in training mode, as a dropout that goes on dropping: the first "
            "loss is wrong already. The features are those of evaluation mode, and backbone.eval() reaches all parts.",
            _partly_training,
        ),
        Misconception(
            "put back too late",
            "Your losses are those of a backbone that moves with each step, because its parameters have gradients in "
            ".grad then. It has its numbers back in the end, but the later batches met others.",
            _put_back,
        ),
        Misconception(
            "recorded for nothing",
            "The backbone's forward pass was recorded, and its tensors were saved, for a gradient that nobody wants.",
            lambda case, seen: seen["recorded"][0] is True,
        ),
        *uncleared((CLEARING,), _end, 1),
        unmoved(lambda case: parameters_of(backbone_and_head(case)[1]), 1),
        Refused(
            "everything under no_grad",
            "Your code ended because the loss had no graph: the head must be recorded, and only the backbone need not.",
            words="does not require grad and does not have a grad_fn",
        ),
    ),
)
