"""Judging `ema_update`: an average that follows a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from course_utils.checks.compare import OF_VALUES, close, listed, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_06_detach_vs_no_grad import LESSON
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.ema_update import average_pair


def _cases(seed: int) -> list[Case]:
    kinds = (
        ("all require a gradient", "all", 0.9),
        ("none does, recording off", "none", 0.7),
        ("some do", "some", 0.25),
        ("a decay of 1", "all", 1.0),
    )
    return [
        Case(name, {"seed": seed + 10 * n, "live": live, "decay": decay, "recording": live != "none"})
        for n, (name, live, decay) in enumerate(kinds)
    ]


def _averages(
    case: Case, shared_times: int = 1, pair: tuple[nn.Module, nn.Module] | None = None
) -> dict[str, torch.Tensor]:
    target, source = pair or average_pair(case)
    theirs = dict(source.named_parameters())
    result = {}
    for name, parameter in target.named_parameters():
        count = shared_times if name == "2.weight" else 1
        result[name] = torch.lerp(theirs[name].detach(), parameter.detach(), case.given["decay"] ** count)
    return result


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    pair = average_pair(case)
    for name, right in _averages(case, pair=pair).items():
        yield _entry(seen["parameters"], name, right, f"The average of {name}")
    for name, buffer in pair[1].named_buffers():
        yield _entry(seen["buffers"], name, buffer, f"The buffer {name}")
    yield Finding("graph", not seen["graph"], "A tensor of the target has a graph after your update.")
    text = (
        "The target has other parameters or buffers than before. Whoever holds the old ones will not see your update."
    )
    yield Finding("objects", seen["same objects"], text)
    yield Finding("place", seen["in place"], "The target's numbers lie in other memory than before. Write in place.")
    names = seen["unmoved"]
    counters = f"version {'counter' if len(names) == 1 else 'counters'} of {listed(names)}"
    text = f"The {counters} did not move: nothing was written there, or past the counter, as through .data."
    yield Finding("counted", not names, text)
    yield Finding("flags", seen["flags"], "After your update requires_grad is not what it was for every parameter.")
    yield Finding("source", seen["source"], "Your update changed the source: its numbers or its .grad.")
    yield Finding("grad mode", seen["grad mode"], "Recording is not switched as it was before your update.")
    yield Finding("gradients", seen["target gradients"], "Your update changed the .grad of the target.")
    yield Finding("modes", seen["modes"], "After your update a part of a model is in another mode.")
    yield Finding("hooks", seen["hooks"], "Your update left a hook on a model, or removed one.")


def _entry(received: Value, name: str, right: torch.Tensor, what: str) -> Finding:
    return right_value(received.get(name) if isinstance(received, dict) else None, right, what)


def _averaged_as(seen: Observation, right: dict[str, torch.Tensor]) -> bool:
    received = seen["parameters"]
    return isinstance(received, dict) and all(close(received.get(name), value) for name, value in right.items())


def _buffers_of(model: nn.Module, seen: Observation) -> bool:
    received = seen["buffers"]
    return isinstance(received, dict) and all(close(received.get(name), it) for name, it in model.named_buffers())


def _buffers_right(case: Case, seen: Observation) -> bool:
    return _buffers_of(average_pair(case)[1], seen)


def _buffers_as_before(case: Case, seen: Observation) -> bool:
    return _buffers_of(average_pair(case)[0], seen)


def _buffers_averaged(case: Case, seen: Observation) -> bool:
    """Say whether the buffers of decimals moved as parameters do, whatever became of a whole number."""
    target, source = (dict(model.named_buffers()) for model in average_pair(case))
    decimals = [name for name, buffer in target.items() if buffer.is_floating_point()]
    return all(
        close(seen["buffers"].get(name), torch.lerp(source[name], target[name], case.given["decay"]))
        for name in decimals
    )


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    names = average_pair(seen[0][0])[0].state_dict()
    parameters, buffers = seen[0][1]["parameters"], seen[0][1]["buffers"]
    yield (
        f"The check compared {len(parameters)} parameters and {len(buffers)} buffers. state_dict() has {len(names)} "
        "entries for them: it names the shared weight twice, and leaves out a buffer that is no part of the state."
    )


EXERCISE = Exercise(
    id="ema_update",
    title="An average that follows a model",
    lesson=LESSON,
    difficulty=3,
    minutes=12,
    points=3,
    call="ema_update(target, source, decay)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Writing to a leaf that requires a gradient is refused while recording is on. Which switch fits a manual "
        "update?",
        "Under no_grad, an in-place method on each of the target's parameters. parameters() gives a shared weight "
        "once; state_dict() gives it under each of its names. Then the buffers, some of which are integers.",
        "Under torch.no_grad(), for the pairs of zip(target.parameters(), source.parameters()): "
        "mine.lerp_(its, 1 - decay). For the pairs of buffers(): mine.copy_(its).",
    ),
    misconceptions=(
        Misconception(
            "behind the counter's back",
            "The numbers are right, and a version counter did not move: something was written through .data or in a "
            "like way, or not at all. By the counter a graph notices that numbers which it saved were written to.",
            lambda case, seen: (
                _averaged_as(seen, _averages(case))
                and _buffers_right(case, seen)
                and seen["unmoved"]
                and seen["in place"]
                and seen["same objects"]
            ),
        ),
        Misconception(
            "weights changed places",
            "The new average took decay times the source. With a decay near 1 it would forget nearly all it held.",
            lambda case, seen: _averaged_as(
                seen,
                {
                    name: torch.lerp(parameter.detach(), its.detach(), case.given["decay"])
                    for (name, parameter), its in zip(
                        average_pair(case)[0].named_parameters(), average_pair(case)[1].parameters(), strict=True
                    )
                },
            ),
        ),
        Misconception(
            "buffers forgotten",
            "The parameters are right. The buffers are those that the target had: batch norm would go on with old "
            "statistics.",
            lambda case, seen: _averaged_as(seen, _averages(case)) and _buffers_as_before(case, seen),
        ),
        Misconception(
            "buffers averaged",
            "The parameters are right. The buffers with decimals were averaged as well; each becomes a copy of the "
            "source's.",
            lambda case, seen: _averaged_as(seen, _averages(case)) and _buffers_averaged(case, seen),
        ),
        Misconception(
            "the shared weight twice",
            "The weight that two layers share was averaged twice: your loop met it once for each of them.",
            lambda case, seen: (
                _averaged_as(seen, _averages(case, shared_times=2))
                and (case.given["decay"] < 1 or "0.weight" not in seen["unmoved"])
            ),
            among=OF_VALUES,
        ),
    ),
    reaches=("_parameters", "_buffers", "_modules"),
)
