"""Judging `fit_classes`: a classifier that stays unsure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch.nn.functional import cross_entropy

from course_utils.checks.compare import close
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.lesson_09_practical_checklist.descent import (
    Path,
    State,
    descend,
    on,
    parameters_of,
    reached,
    right_end,
)
from course_utils.checks.judges.lesson_09_practical_checklist.session import (
    floats,
    one_float,
    one_step_each,
    part,
    parts,
    quiet,
    work_done,
)
from course_utils.checks.judges.lesson_09_practical_checklist.slips import (
    CLEARING,
    Slips,
    found,
    led,
    uncleared,
    unmoved,
    zeroed,
)
from course_utils.checks.scenes.lesson_09_practical_checklist.training import classes, network

TWICE = "softmax twice"

_SLIPS = ((TWICE,), CLEARING)


def _cases(seed: int) -> list[Case]:
    return [
        Case("three batches", {"seed": seed, "sizes": [5, 5, 4], "scale": 0.5, "rate": 3.0, "steep": 1e5}),
        Case(
            "a model that is not sure at all",
            {"seed": seed + 4, "sizes": [9, 6], "scale": 0.05, "rate": 0.1, "counts": True},
        ),
        Case("a model that is very sure", {"seed": seed + 1, "sizes": [6, 5], "scale": 6e4, "rate": 0.1}),
        Case(
            "old gradients, momentum, a frozen bias and a part that evaluates",
            {
                "seed": seed + 2,
                "sizes": [4, 6, 3],
                "scale": 0.5,
                "rate": 2.0,
                "oddities": True,
                "left": True,
                "momentum": 0.9,
                "decay": 0.05,
            },
        ),
    ]


def _classified(case: Case, slips: Slips = frozenset()) -> Path:
    model = network(case, case.given["scale"]).eval()  # what counts in training mode cannot do so under torch.func
    fixed = {name: it.detach().clone() for name, it in model.named_parameters() if not it.requires_grad}

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        def of(state: State) -> torch.Tensor:
            scores = on(model, inputs, state)
            return cross_entropy(scores.softmax(1) if TWICE in slips else scores, targets)

        return of

    return descend(
        parameters_of(model),
        [loss(*batch) for batch in classes(case)],
        case.given["rate"],
        momentum=case.given.get("momentum", 0.0),
        decay=case.given.get("decay", 0.0),
        afterwards=lambda state: {**state, **fixed},
        **found(slips, model, idle={"spare"}),
    )


def _end(case: Case, slips: Slips) -> State:
    return _classified(case, slips).end


def _hits(case: Case) -> list[torch.Tensor]:
    """Return for each batch at which samples the highest score was the right one when it came."""
    model, path = network(case, case.given["scale"]), _classified(case)
    batches = zip([parameters_of(model), *path.states], classes(case), strict=False)
    return [on(model, inputs, state).argmax(1) == targets for state, (inputs, targets) in batches]


def _share(case: Case) -> float:
    """Return the share of samples whose highest score was the right one when their batch came."""
    return float(torch.cat(_hits(case)).double().mean())


def _of_batches(case: Case, seen: Observation) -> bool | None:
    """Tell the mean of the batches' shares; it is None where that is the share of the samples."""
    hits, mine = [of_batch.double() for of_batch in _hits(case)], part(seen["returned"], 1)
    mean = float(torch.stack([of_batch.mean() for of_batch in hits]).mean())
    return None if close(mean, float(torch.cat(hits).mean())) else type(mine) is float and close(mine, mean)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _classified(case)
    yield parts(seen["returned"], 2, "losses, accuracy")
    yield one_step_each(seen, len(case.given["sizes"]))
    yield from quiet(seen)
    yield floats(part(seen["returned"], 0), right.losses, "The list of losses")
    yield from one_float(part(seen["returned"], 1), _share(case), "The accuracy")
    yield from right_end(seen, right.end)
    if case.given.get("counts"):
        count, runs = len(case.given["sizes"]), seen["buffers"][0].get("counter.runs")
        text = (
            f"A buffer of the model counts its runs in training mode. After {count} batches it should hold {count}, "
            "and does not. A second run for a batch moves a batch norm's statistics a second time."
        )
        yield Finding("counted", runs == Array.of(torch.tensor(count)), text)


def _start(case: Case) -> State:
    return parameters_of(network(case, case.given["scale"]))


def _is_sure(case: Case) -> bool:
    return bool(case.given["scale"] > 1)


_NOTHING_MOVES = unmoved(_start)


def _nothing_moves(case: Case, seen: Observation) -> bool | None:
    """Say whether nothing moved. Where the model is very sure, that may come of the loss, so it tells nothing."""
    return None if _is_sure(case) else _NOTHING_MOVES.seen(case, seen)


def _nothing_of_the_sure(case: Case, seen: Observation) -> bool:
    return _is_sure(case) and _finite(seen) and bool(_NOTHING_MOVES.seen(case, seen))


def _finite(seen: Observation) -> bool:
    found = [it.tensor() for it in seen["parameters"][0].values() if isinstance(it, Array)]
    losses = part(seen["returned"], 0)
    numbers_ = [item for item in losses if type(item) is float] if isinstance(losses, list) else []
    return all(bool(it.isfinite().all()) for it in found) and bool(torch.tensor(numbers_).isfinite().all())


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    yield from work_done(
        seen,
        "A softmax before cross_entropy would have left scores between 0 and 1: with 3 classes no such loss is below "
        f"{float(cross_entropy(torch.eye(3)[:1], torch.tensor([0]))):.2f}, however sure the model is.",
    )


def _twice(case: Case, seen: Observation) -> bool | None:
    """Tell a softmax too many; where it moves nothing, other ways of losing the gradient lead to the same place."""
    fits = led(TWICE, _SLIPS, _end)(case, seen)
    return None if fits and reached(seen, parameters_of(network(case, case.given["scale"]))) else fits


EXERCISE = Exercise(
    id="fit_classes",
    title="A classifier that stays unsure",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="fit_classes(model, optimizer, batches)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Two things are wrong. One is in what the loss is given, the other in what the second step finds in .grad.",
        "Read what cross_entropy expects: scores of any size, which it normalises. And ask who clears the gradients.",
        "Give cross_entropy what the model returns. Clear the gradients once in every step, before backward. The "
        "highest score and the highest probability are at the same place, so the accuracy needs no softmax.",
    ),
    misconceptions=(
        Misconception(
            TWICE,
            "Your loss takes a softmax of a softmax: cross_entropy has one inside. Probabilities lie between 0 and 1, "
            "so as scores they are never far apart.",
            _twice,
        ),
        *uncleared(_SLIPS, _end),
        zeroed(_end),
        replace(_NOTHING_MOVES, seen=_nothing_moves),
        Misconception(
            "no gradient from what is very sure",
            "Where the model is very sure, your loss is finite and moves nothing. So it is where scores or "
            "probabilities are clamped on the way to the logarithm: beyond the bound no gradient goes through. "
            "cross_entropy takes the scores themselves.",
            _nothing_of_the_sure,
        ),
        Misconception(
            "a mean of means",
            "Your accuracy is the mean of the batches' accuracies. Batches differ in size, so a sample of a small one "
            "counts for more there than one of a large one. Count hits and samples, and divide at the end.",
            _of_batches,
        ),
        Misconception(
            "logarithm of a softmax",
            "For large scores your loss holds infinity or NaN. Where exp() and a logarithm are computed one after the "
            "other, exp() of such a score overflows, or it rounds to 0, whose logarithm is minus infinity. "
            "cross_entropy computes both at once, and avoids that.",
            lambda case, seen: _is_sure(case) and not _finite(seen),
        ),
    ),
)
