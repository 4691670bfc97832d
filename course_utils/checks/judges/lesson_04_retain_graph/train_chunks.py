"""Judging `train_chunks`: repair truncated backpropagation through time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.compare import describe, right_floats, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.judges.loops import cleared_otherwise, lean, moved, no_gradient, retains, trains, turns
from course_utils.checks.scenes.lesson_04_retain_graph.train_chunks import groups, recurrent


def _cases(seed: int) -> list[Case]:
    ways = {"five chunks, two at a time": ([3, 1, 4, 2, 3], 2), "two chunks, one at a time": ([2, 3], 1)}
    return [
        Case(name, {"seed": seed + n, "lengths": lengths, "together": together, "far": 9e4 if n else 1.0})
        for n, (name, (lengths, together)) in enumerate(ways.items())
    ]


def _trained(
    case: Case,
    carry: str = "on",
    cleared: str = "each time",
    most: int | None = None,
    of: Callable[[torch.Tensor], torch.Tensor] = torch.sum,
) -> tuple[list[float], list[torch.Tensor], list[torch.Tensor]]:
    """Train each group as one sequence that starts from given numbers. Return losses, parameters and state.

    With another `carry` each chunk is a sequence of its own, and starts from the last numbers, the first, or zeros.
    `most` is how many groups are trained on, where that is not all, and `of` makes one loss of a group's.
    """
    lstm, readout, optimizer, chunks, state = recurrent(case)
    parameters = [*lstm.parameters(), *readout.parameters()]
    losses = []
    numbers = given = [part.tolist() for part in state]
    for group in groups(chunks, case.given["together"])[:most]:
        found = []
        for joined in [group] if carry == "on" else [[chunk] for chunk in group]:
            start = torch.tensor(numbers)
            outputs, end = lstm(torch.cat([inputs for inputs, _ in joined], dim=1), (start[0], start[1]))
            parts = outputs.split([inputs.shape[1] for inputs, _ in joined], dim=1)
            found += [mse_loss(readout(part), targets) for part, (_, targets) in zip(parts, joined, strict=True)]
            last = [part.tolist() for part in end]
            others = {"first": given, "zero": [(0 * part).tolist() for part in end]}
            numbers = others.get(carry, last)
        if cleared == "each time":
            optimizer.zero_grad()
        gradients = torch.autograd.grad(of(torch.stack(found)), parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        optimizer.step()
        if cleared == "after each step":
            optimizer.zero_grad()
        losses += [loss.item() for loss in found]
    return losses, [parameter.detach() for parameter in parameters], [torch.tensor(part) for part in last]


def _sizes(case: Case) -> list[int]:
    """Return how many chunks each step goes over."""
    return [len(group) for group in groups(case.given["lengths"], case.given["together"])]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, parameters, state = _trained(case)
    sizes = _sizes(case)
    yield from turns(seen, sum(sizes), "The LSTM", "chunks", (len(sizes), f", {case.given['together']} together"))
    returned = seen["returned"]
    if not isinstance(returned, list) or len(returned) != 2:
        yield Finding("two", False, f"What you returned is {describe(returned)}; expected two things: losses, state.")
    else:
        yield right_floats(returned[0], torch.tensor(losses), "The list of losses")
        yield from _last_state(returned[1], state)
    yield Finding("cut", seen["attached"] is False, "The state that you returned still has a graph behind it.")
    trained = moved(seen["parameters"], parameters)
    text = "After your loop the parameters are not those of training group by group with the state carried over."
    yield Finding("trained", trained, text)
    yield from lean(seen, "groups", sizes)
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


def _not_carried(seen: Observation) -> list[dict[str, bool]]:
    """Return what later runs of the LSTM started from, where that is not what the run before ended with."""
    return [state for state in seen["states"][1:] if not state["carried"]]


def _forgets(case: Case, seen: Observation) -> bool:
    others = _not_carried(seen)
    return bool(others) and all(state["zero"] for state in others)


def _restarts(case: Case, seen: Observation) -> bool:
    others = _not_carried(seen)
    once = seen["runs"] == len(case.given["lengths"])  # of more runs, nobody knows which is a chunk's
    return bool(others) and once and not any(state["zero"] for state in others)


def _several(case: Case) -> bool:
    return bool(case.given["together"] > 1)


def _in_each_chunk(case: Case, seen: Observation) -> bool:
    """Say whether gradients ended at the start of each chunk, in a sum over groups."""
    return _several(case) and moved(seen["parameters"], _trained(case, "apart")[1])


def _from_another_loss(case: Case, seen: Observation, *ways: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Say whether passes started from something else than the sum of a group's losses."""
    return _several(case) and any(moved(seen["parameters"], _trained(case, of=of)[1]) for of in ways)


def _averaged(case: Case, seen: Observation) -> bool:
    return _from_another_loss(case, seen, torch.mean, lambda losses: losses.sum() / case.given["together"])


def _cleared(case: Case, seen: Observation, when: str) -> bool:
    """Say whether .grad was cleared at another time, whatever the chunks started from."""
    return any(moved(seen["parameters"], _trained(case, carry, when)[1]) for carry in ("on", "first", "zero"))


def _without_the_last(case: Case, seen: Observation) -> bool:
    """Say whether training ended before the last group, whose chunks were read: fewer groups may be larger ones."""
    sizes = _sizes(case)
    once = len(sizes) - 1 == len(seen["steps"]) == seen["passes"] and seen["runs"] == sum(sizes)
    return once and moved(seen["parameters"], _trained(case, most=-1)[1])


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, first = seen[0]
    lengths, together = case.given["lengths"], case.given["together"]
    further = sum(sum(lengths[: n + together]) for n in range(0, len(lengths), together))
    yield (
        f"{first['passes']} passes for {len(lengths)} chunks: each went back over the moments of its own group, "
        f"{sum(lengths)} together. Passes to the start of the sequence would have gone over {further}, and would have "
        "needed weights that steps had changed. A cut after each chunk would have let no gradient over a border."
    )


EXERCISE = Exercise(
    id="train_chunks",
    title="Repair truncated backpropagation through time",
    lesson=LESSON,
    difficulty=3,
    minutes=12,
    points=3,
    call="train_chunks(lstm, readout, optimizer, chunks, state, together)",
    cases=_cases,
    judge=_judge,
    hints=(
        "The second pass runs into the graph of the first group. Two things lead it there: what is carried, and what "
        "is added up. Of how many tensors is the first one made?",
        "Inside a group everything stays joined: the state as it comes, and the losses in a sum. After its step "
        "nothing may lead back: the state goes on as numbers, and the sum starts anew. And what of a last group that "
        "is not full?",
        "Count the chunks. Where the count is a multiple of `together`, or the last chunk was read: clear, one pass "
        "for the sum, one step. Then make a new pair from the state, each part detached, and set the sum to 0. No "
        "pass reaches an older group then, and the flag can go.",
    ),
    misconceptions=(
        Misconception(
            "cut after each chunk",
            "Your parameters are those of a loop whose gradients end at the start of each chunk. The task lets them go "
            "back to the start of their group: inside a group the state keeps its graph.",
            _in_each_chunk,
        ),
        Misconception(
            "a step for each chunk",
            "Your optimizer stepped as often as there are chunks. The task asks for one step for each group, after a "
            "pass for the sum of its losses.",
            lambda case, seen: _several(case) and len(seen["steps"]) == len(case.given["lengths"]) == seen["passes"],
        ),
        Misconception(
            "the last group forgotten",
            "The last chunks do not fill a group. Your loop read them, and never went back for them.",
            _without_the_last,
        ),
        Misconception(
            "averaged, not summed",
            "Your parameters are those of passes from a group's losses divided by how many they are, or by `together`. "
            "The task asks for their sum.",
            _averaged,
        ),
        Misconception(
            "the last loss alone",
            "Your parameters are those of passes from the loss of a group's last chunk. The task asks for the sum of "
            "the group's losses.",
            lambda case, seen: _from_another_loss(case, seen, lambda losses: losses[-1]),
        ),
        Misconception(
            "the state thrown away",
            "Your LSTM starts later chunks from nothing, all of them or some. The sequence goes on, and the state with "
            "it; only its graph has to go.",
            _forgets,
        ),
        Misconception(
            "the first state again",
            "Your LSTM starts later chunks, all of them or some, from other numbers than the state that the chunk "
            "before ended with.",
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
            lambda case, seen: (
                retains(seen) and trains(seen) and seen["passes that retain"] == seen["passes"] == len(_sizes(case))
            ),
        ),
        *cleared_otherwise(_cleared),
        no_gradient("the LSTM"),
    ),
    debrief=_debrief,
)
