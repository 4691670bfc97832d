"""Exercises of lesson 04 on loops: a constant that is none, and a state that is carried."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn.functional import cross_entropy, mse_loss

from course_utils.checks.compare import close, describe, right_floats, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predict_04 import LESSON, as_found
from course_utils.checks.observing.scenes_04 import recurrent, scaled_classifier


def _moved(received: Value, right: list[torch.Tensor]) -> bool:
    return isinstance(received, list) and all(close(mine, its) for mine, its in zip(received, right, strict=True))


def _lean(seen: Observation, count: int) -> Iterator[Finding]:
    forwards, passes, steps = seen["forwards"], seen["passes"], seen["steps"]
    yield Finding("forwards", forwards == count, f"The model ran {forwards} times for {count} batches.")
    yield Finding("passes", passes == count, f"{passes} backward passes ran for {count} batches.")
    yield Finding("steps", len(steps) == count, f"The optimizer made {len(steps)} steps for {count} batches.")
    kept = [step["kept"] for step in steps]
    text = f"Saved tensors still held when the optimizer steps, step by step: {kept}. No pass will use them."
    yield Finding("kept", not any(kept), text)
    graphs = [step["graphs"] for step in steps]
    text = f"Graphs alive at each optimizer step: {graphs}. Something refers to those of earlier batches."
    yield Finding("graphs", max(graphs, default=0) <= 2, text)
    yield as_found(seen)


def _trains(seen: Observation) -> bool:
    """Say whether a gradient reached the model's own parameters before some step."""
    return not all(step["no gradient"] for step in seen["steps"])


def _retains(seen: Observation) -> bool:
    return bool(seen["steps"]) and all(step["kept"] != 0 for step in seen["steps"])


# A constant that is none.


def _batches(seed: int) -> list[Case]:
    sizes = {"three batches": [5, 7, 4], "two batches": [6, 5]}
    return [
        Case(name, {"seed": seed + n, "sizes": size, "start": 0.3 + 0.2 * n})
        for n, (name, size) in enumerate(sizes.items())
    ]


def _fitted(case: Case, scaled: str = "anew") -> tuple[list[float], list[torch.Tensor], torch.Tensor]:
    """Run the loop with the scale's derivative by the product rule. Return losses, parameters and log_scale."""
    model, log_scale, optimizer, batches = scaled_classifier(case)
    start = log_scale.exp().item()
    losses = []
    for inputs, targets in batches:
        factor = start if scaled == "once" else log_scale.exp().item()
        scale = torch.tensor(factor, requires_grad=True)
        loss = cross_entropy(scale * model(inputs), targets)
        *own, slope = torch.autograd.grad(loss, [*model.parameters(), scale])
        for parameter, gradient in zip(model.parameters(), own, strict=True):
            parameter.grad = gradient
        log_scale.grad = None if scaled == "constant" else factor * slope
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach() for parameter in model.parameters()], log_scale.detach()


def _judge_scale(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, parameters, log_scale = _fitted(case)
    yield right_floats(seen["returned"], torch.tensor(losses), "The list of losses")
    yield right_value(seen["log_scale"], log_scale, "log_scale after your loop")
    text = "After your loop the model's parameters are not what the loop should make of them."
    yield Finding("trained", _moved(seen["parameters"], parameters), text)
    yield from _lean(seen, len(case.given["sizes"]))


def _scale_as(case: Case, seen: Observation, scaled: str) -> bool:
    _, parameters, log_scale = _fitted(case, scaled)
    return close(seen["log_scale"], log_scale) and _moved(seen["parameters"], parameters)


fit_scale = Exercise(
    id="fit_scale",
    title="Remove needless retention from a loop",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=3,
    call="fit_scale(model, log_scale, optimizer, batches)",
    cases=_batches,
    judge=_judge_scale,
    hints=(
        "Take the flag away and read what the loop raises in its second step. Which tensor belongs to the first?",
        "log_scale changes with every step. Does scale?",
        "What is computed from a parameter belongs inside the loop, next to the forward of the model. Then each step "
        "has a graph of its own, and no pass needs the flag.",
    ),
    misconceptions=(
        Misconception(
            "a stale scale",
            "Your numbers are those of a loop that computes the scale once, before the first step. log_scale moves, "
            "and the model goes on with the scale that it started from.",
            lambda case, seen: _scale_as(case, seen, "once"),
        ),
        Misconception(
            "the scale made a constant",
            "log_scale is where it started. Your loop cut it off, and with it its gradient.",
            lambda case, seen: _trains(seen) and close(seen["log_scale"], torch.tensor(case.given["start"])),
        ),
        Misconception(
            "retained for nothing",
            "The scale is computed where it should be, and your passes retain all the same. Nothing needs that now.",
            lambda case, seen: _retains(seen) and _scale_as(case, seen, "anew"),
        ),
    ),
)

# A state that is carried.


def _chunks(seed: int) -> list[Case]:
    lengths = {"three chunks": [3, 2, 4], "two chunks": [2, 3]}
    return [Case(name, {"seed": seed + n, "lengths": length}) for n, (name, length) in enumerate(lengths.items())]


def _trained(case: Case) -> tuple[list[float], list[torch.Tensor], list[torch.Tensor]]:
    """Train each chunk as a sequence of its own that starts from given numbers. Return losses, parameters and state."""
    lstm, readout, optimizer, chunks, state = recurrent(case)
    parameters = [*lstm.parameters(), *readout.parameters()]
    losses = []
    numbers = [part.tolist() for part in state]
    for inputs, targets in chunks:
        start = torch.tensor(numbers)
        outputs, end = lstm(inputs, (start[0], start[1]))
        loss = mse_loss(readout(outputs), targets)
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        numbers = [part.tolist() for part in end]
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach() for parameter in parameters], [torch.tensor(part) for part in numbers]


def _judge_chunks(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, parameters, state = _trained(case)
    returned = seen["returned"]
    if not isinstance(returned, list) or len(returned) != 2:
        yield Finding("two", False, f"What you returned is {describe(returned)}; expected two things: losses, state.")
    else:
        yield right_floats(returned[0], torch.tensor(losses), "The list of losses")
        yield from _last_state(returned[1], state)
    yield Finding("cut", seen["attached"] is False, "The state that you returned still has a graph behind it.")
    trained = _moved(seen["parameters"], parameters)
    text = "After your loop the parameters are not those of training chunk by chunk with the state carried over."
    yield Finding("trained", trained, text)
    yield from _lean(seen, len(case.given["lengths"]))
    yield Finding("start", seen["start"] is True, "Your function changed the numbers of the state that it was given.")


def _last_state(received: Value, right: list[torch.Tensor]) -> Iterator[Finding]:
    if not isinstance(received, list) or len(received) != 2:
        yield Finding(
            "state", False, f"The state is {describe(received)}; expected a pair of tensors, as it was given."
        )
        return
    for name, mine, its in zip(("h", "c"), received, right, strict=True):
        yield right_value(mine, its, f"The last state's {name}")


def _forgets(case: Case, seen: Observation) -> bool:
    later = seen["states"][1:]
    return bool(later) and all(state["zero"] and not state["carried"] for state in later)


def _restarts(case: Case, seen: Observation) -> bool:
    later = seen["states"][1:]
    return bool(later) and not any(state["carried"] or state["zero"] for state in later)


train_chunks = Exercise(
    id="train_chunks",
    title="Repair truncated backpropagation through time",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="train_chunks(lstm, readout, optimizer, chunks, state)",
    cases=_chunks,
    judge=_judge_chunks,
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
            lambda case, seen: seen["passes"] == 0 and bool(seen["steps"]) and not _trains(seen),
        ),
        Misconception(
            "retained for nothing",
            "The state is cut, and your passes retain all the same. No pass will come back to these chunks.",
            lambda case, seen: _retains(seen) and all(state["carried"] for state in seen["states"]) and _trains(seen),
        ),
    ),
)
