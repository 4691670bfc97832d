"""Judging `train`: repair a loop that hoards graphs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import nn

from course_utils.checks.compare import close, describe, right_floats, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_03_graph_freeing import LESSON
from course_utils.checks.scenes.lesson_03_graph_freeing.train import trainee

_ROW = 3 * 4  # bytes of one prediction


def _cases(seed: int) -> list[Case]:
    sizes = {"five batches": [7, 5, 6, 8, 3], "two batches": [4, 6]}
    return [Case(name, {"seed": seed + 10, "sizes": size}) for name, size in sizes.items()]


def _trained(case: Case) -> tuple[list[float], list[torch.Tensor], list[torch.Tensor]]:
    """Train as PyTorch's own tutorial does. Return losses, each batch's first prediction, and the parameters."""
    with torch.random.fork_rng(devices=[]):
        model, optimizer, batches = trainee(case)
    losses, samples = [], []
    for inputs, targets in batches:
        optimizer.zero_grad()
        predictions = model(inputs)
        loss = nn.functional.mse_loss(predictions, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        samples.append(predictions[0].detach().clone())
    return losses, samples, [parameter.detach() for parameter in model.parameters()]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, samples, parameters = _trained(case)
    returned = seen["returned"]
    if not isinstance(returned, list) or len(returned) != 3:
        message = f"You returned {describe(returned)}; expected three things: losses, average, samples."
        yield Finding("three", False, message)
    else:
        yield right_floats(returned[0], torch.tensor(losses), "The list of losses")
        number = type(returned[1]) is float
        yield Finding("average type", number, f"The average is {describe(returned[1])}; expected a Python float.")
        if number:
            yield right_value(returned[1], sum(losses) / len(losses), "The average")
        yield from _samples(returned[2], samples)
    trained = all(close(mine, right) for mine, right in zip(seen["parameters"], parameters, strict=True))
    yield Finding(
        "state", seen["as before"], "Your loop left the model in eval mode, or a parameter without requires_grad."
    )
    yield Finding(
        "trained", trained, "After your loop the model's parameters are not what the given loop makes of them."
    )
    passes = len(case.given["sizes"])
    yield Finding("passes", seen["passes"] == passes, f"{seen['passes']} backward passes ran; {passes} were needed.")
    yield from _freed_on_the_way(case, seen)


def _freed_on_the_way(case: Case, seen: Observation) -> Iterator[Finding]:
    graphs = [step["graphs"] for step in seen["steps"]]
    text = f"Graphs alive at each optimizer step: {graphs}. Something keeps those of earlier batches."
    yield Finding("flat", max(graphs, default=0) <= 2, text)
    held = max((step["bytes"] for step in seen["steps"]), default=0)
    text = (
        "When the optimizer steps, the hidden layer's saved numbers are still held. That pass was the last to use them."
    )
    yield Finding("saved", held == 0, text)
    sizes = [size * _ROW for size in case.given["sizes"]]
    kept = [step["predictions"] for step in seen["steps"]]
    most = max((sum(pair) for pair in pairwise(sizes)), default=0)
    text = f"Bytes of predictions alive at each optimizer step: {kept}. Something keeps those of earlier batches."
    yield Finding("predictions on the way", max(kept, default=0) <= most, text)
    text = (
        f"Graphs alive after your function returned: {seen['graphs']}. What it returned still refers to them, or "
        "something outside does."
    )
    yield Finding("end", seen["graphs"] == 0, text)
    text = f"Your function returned, and {seen['predictions']} bytes of the model's predictions are still held."
    yield Finding("predictions", seen["predictions"] == 0, text)
    text = f"Your samples keep {seen['beyond the rows']} bytes beyond their own numbers: a view keeps all of its base."
    yield Finding("rows", seen["beyond the rows"] <= 0 or seen["predictions"] > 0, text)


def _samples(received: Value, samples: list[torch.Tensor]) -> Iterator[Finding]:
    if not isinstance(received, list) or len(received) != len(samples):
        yield Finding("samples", False, f"The samples are {describe(received)}; expected a list, one for each batch.")
        return
    for number, (item, right) in enumerate(zip(received, samples, strict=True)):
        yield right_value(item, right, f"samples[{number}]")


def _grows(seen: Observation) -> bool:
    return bool(seen["steps"]) and seen["steps"][-1]["graphs"] == len(seen["steps"]) > 1


def _held_inside(seen: Observation) -> bool:
    return any(step["bytes"] > 0 for step in seen["steps"])


EXERCISE = Exercise(
    id="train",
    title="Repair a loop that hoards graphs",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="train(model, optimizer, batches)",
    cases=_cases,
    judge=_judge,
    hints=(
        "Go through everything that outlives a step: the two lists, the total. For each ask what it refers to.",
        "A number needs no graph: item() gives a Python float. A row that is kept needs neither the graph nor the "
        "rest of the tensor.",
        "Append loss.item() and add the same float to the total. Keep predictions[0].detach().clone(): detach lets go "
        "of the graph, clone of the other rows. And ask whether any second pass needs what retain_graph keeps.",
    ),
    misconceptions=(
        Misconception(
            "losses with graphs",
            "The list of losses holds tensors, each with the graph of its batch behind it.",
            lambda case, seen: (
                seen["graphs"] == len(case.given["sizes"])
                and isinstance(seen["returned"], list)
                and bool(seen["returned"])
                and isinstance(seen["returned"][0], list)
                and any(isinstance(item, Array) for item in seen["returned"][0])
            ),
        ),
        Misconception(
            "a total with a graph",
            "While the loop runs, the graphs of all batches so far are alive; at the end they are gone. A running "
            "total of tensors does that, since each sum refers to the one before. So does a list of losses that is "
            "converted at the end.",
            lambda case, seen: _grows(seen) and seen["graphs"] == 0,
        ),
        Misconception(
            "retained for nothing",
            "Your passes keep what the graph saved, as if a second pass were to follow. None does.",
            lambda case, seen: _held_inside(seen) and seen["graphs"] == 0 and seen["predictions"] == 0,
        ),
        Misconception(
            "a row that keeps the rest",
            "Your samples have no graph, but each is a view: it keeps the memory of all predictions of its batch.",
            lambda case, seen: (
                seen["graphs"] == 0 and seen["predictions"] > 0 and seen["beyond the rows"] > 0 and not _grows(seen)
            ),
        ),
    ),
)
