"""Judging `train_chunks`: repair truncated backpropagation through time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.compare import describe, right_floats, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.judges.loops import cleared_otherwise, lean, moved, retains, trains, turns
from course_utils.checks.scenes.lesson_04_retain_graph.train_chunks import recurrent


def _cases(seed: int) -> list[Case]:
    lengths = {"three chunks": [3, 1, 4], "two chunks": [2, 3]}
    return [
        Case(name, {"seed": seed + n, "lengths": length, "far": 9e4 if n else 1.0})
        for n, (name, length) in enumerate(lengths.items())
    ]


def _trained(
    case: Case, carry: str = "on", cleared: str = "each time"
) -> tuple[list[float], list[torch.Tensor], list[torch.Tensor]]:
    """Train each chunk as a sequence of its own that starts from given numbers. Return losses, parameters and state."""
    lstm, readout, optimizer, chunks, state = recurrent(case)
    parameters = [*lstm.parameters(), *readout.parameters()]
    losses = []
    numbers = given = [part.tolist() for part in state]
    for inputs, targets in chunks:
        start = torch.tensor(numbers)
        outputs, end = lstm(inputs, (start[0], start[1]))
        loss = mse_loss(readout(outputs), targets)
        if cleared == "each time":
            optimizer.zero_grad()
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        last = [part.tolist() for part in end]
        numbers = {"on": last, "first": given, "zero": [(0 * part).tolist() for part in end]}[carry]
        optimizer.step()
        if cleared == "after each step":
            optimizer.zero_grad()
        losses.append(loss.item())
    return losses, [parameter.detach() for parameter in parameters], [torch.tensor(part) for part in last]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, parameters, state = _trained(case)
    yield from turns(seen, len(case.given["lengths"]), "The LSTM", "chunks")
    returned = seen["returned"]
    if not isinstance(returned, list) or len(returned) != 2:
        yield Finding("two", False, f"What you returned is {describe(returned)}; expected two things: losses, state.")
    else:
        yield right_floats(returned[0], torch.tensor(losses), "The list of losses")
        yield from _last_state(returned[1], state)
    yield Finding("cut", seen["attached"] is False, "The state that you returned still has a graph behind it.")
    trained = moved(seen["parameters"], parameters)
    text = "After your loop the parameters are not those of training chunk by chunk with the state carried over."
    yield Finding("trained", trained, text)
    yield from lean(seen, "chunks")
    yield Finding("start", seen["start"] is True, "Your function changed the numbers of the state that it was given.")


def _last_state(received: Value, right: list[torch.Tensor]) -> Iterator[Finding]:
    if not isinstance(received, list) or len(received) != 2:
        yield Finding(
            "state", False, f"The state is {describe(received)}; expected a pair of tensors, as it was given."
        )
        return
    for name, mine, its in zip(("h", "c"), received, right, strict=True):
        finding = right_value(mine, its, f"The last state's {name}")
        yield replace(finding, prop=f"state's {finding.prop}")


def _forgets(case: Case, seen: Observation) -> bool:
    later = seen["states"][1:]
    return bool(later) and all(state["zero"] and not state["carried"] for state in later)


def _restarts(case: Case, seen: Observation) -> bool:
    later = seen["states"][1:]
    once = seen["runs"] == len(case.given["lengths"])  # of more runs, nobody knows which is a chunk's
    return bool(later) and once and not any(state["carried"] or state["zero"] for state in later)


def _cleared(case: Case, seen: Observation, when: str) -> bool:
    """Say whether .grad was cleared at another time, whatever the chunks started from."""
    return any(moved(seen["parameters"], _trained(case, carry, when)[1]) for carry in ("on", "first", "zero"))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, first = seen[0]
    lengths = case.given["lengths"]
    further = sum(sum(lengths[: n + 1]) for n in range(len(lengths)))
    yield (
        f"{first['passes']} passes for {len(lengths)} chunks: each went back over the moments of its own chunk, "
        f"{sum(lengths)} together. Passes to the start of the sequence would have gone over {further}, and would have "
        "needed weights that steps had changed."
    )


EXERCISE = Exercise(
    id="train_chunks",
    title="Repair truncated backpropagation through time",
    lesson=LESSON,
    difficulty=3,
    minutes=10,
    points=3,
    call="train_chunks(lstm, readout, optimizer, chunks, state)",
    cases=_cases,
    judge=_judge,
    hints=(
        "The second chunk's pass runs into the first chunk's graph. Through which tensors does it get there?",
        "The state should go on as numbers: the same values, without the graph behind them. How many tensors is the "
        "state of an LSTM made of?",
        "After each chunk make a new pair from the old one, each part detached. Detach the last one, too, since it "
        "is returned. Then no pass reaches an older chunk, and the flag can go.",
    ),
    misconceptions=(
        Misconception(
            "the state thrown away",
            "From the second chunk on your LSTM starts from nothing. The sequence goes on, and the state with it; "
            "only its graph has to go.",
            _forgets,
        ),
        Misconception(
            "the first state again",
            "Your LSTM starts later chunks from other numbers than the state that the chunk before ended with.",
            _restarts,
        ),
        Misconception(
            "cut inside the chunk",
            "No backward pass came back to the LSTM, so its parameters got no gradient.",
            lambda case, seen: seen["reached"] == 0 and bool(seen["steps"]) and not trains(seen),
        ),
        Misconception(
            "retained for nothing",
            "Your passes retain what the graph saved, and no pass will come back to these chunks.",
            lambda case, seen: retains(seen) and trains(seen) and seen["passes"] == seen["runs"],
        ),
        *cleared_otherwise(_cleared),
    ),
    debrief=_debrief,
)
