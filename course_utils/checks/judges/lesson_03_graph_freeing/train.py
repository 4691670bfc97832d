"""Judging `train`: repair a loop that hoards graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import nn

from course_utils.checks.compare import close, describe, right_floats, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_03_graph_freeing import LESSON
from course_utils.checks.judges.loops import cleared_otherwise, lean, moved, retains, times, turns
from course_utils.checks.scenes.lesson_03_graph_freeing.train import trainee


def _cases(seed: int) -> list[Case]:
    sizes = {"five batches": [7, 5, 6, 1, 3], "two batches": [4, 6]}
    kinds = {"five batches": (1.0, "float32"), "two batches": (9e4, "float64")}  # and targets so far: long gradients
    return [
        Case(name, {"seed": seed + 10, "sizes": size, **dict(zip(("far", "dtype"), kinds[name], strict=True))})
        for name, size in sizes.items()
    ]


def _row(case: Case) -> int:
    """Return the bytes of one prediction."""
    return 3 * int(getattr(torch, case.given["dtype"]).itemsize)


def _trained(case: Case, cleared: str = "each time") -> tuple[list[float], list[torch.Tensor], list[torch.Tensor]]:
    """Train as PyTorch's own tutorial does. Return losses, each batch's first prediction, and the parameters."""
    with torch.random.fork_rng(devices=[]):
        model, optimizer, batches = trainee(case)
        losses, samples = [], []
        for inputs, targets in batches:
            if cleared in ("each time", "to zeros"):
                optimizer.zero_grad(set_to_none=cleared == "each time")
            predictions = model(inputs)
            loss = nn.functional.mse_loss(predictions, targets)
            loss.backward()
            optimizer.step()
            if cleared == "after each step":
                optimizer.zero_grad()
            losses.append(loss.item())
            samples.append(predictions[0].detach().clone())
    return losses, samples, [parameter.detach() for parameter in model.parameters()]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, samples, parameters = _trained(case)
    yield from turns(seen, len(case.given["sizes"]))
    returned = seen["returned"]
    if not isinstance(returned, list) or len(returned) != 3:
        message = f"You returned {describe(returned)}; expected three things: losses, average, samples."
        yield Finding("three", False, message)
    else:
        yield right_floats(returned[0], torch.tensor(losses), "The list of losses")
        number = type(returned[1]) is float
        yield Finding("average type", number, f"The average is {describe(returned[1])}; expected a Python float.")
        if number:
            # The given loop adds up losses of float32 in float32: its own rounding is no fault.
            right = torch.tensor(sum(losses) / len(losses))
            yield replace(right_value(returned[1], right, "The average"), prop="average")
        yield from _samples(returned[2], samples)
    trained = moved(seen["parameters"], parameters)
    text = "After your loop the model's parameters are not what the given loop makes of them."
    yield Finding("trained", trained, text)
    yield from lean(seen)
    count, begun, ran = len(case.given["sizes"]), seen["begun"], seen["runs"]
    text = f"The first layer ran {times(begun)}, and the last {times(ran)}, for {count} batches."
    yield Finding("forwards", begun <= count or ran != count, text)
    yield from _held(case, seen)


def _held(case: Case, seen: Observation) -> Iterator[Finding]:
    sizes = [size * _row(case) for size in case.given["sizes"]]
    kept = [step["results"] for step in seen["steps"]]
    text = f"Bytes of predictions alive at each optimizer step: {kept}. Something keeps those of earlier runs."
    yield Finding("predictions on the way", max(kept, default=0) <= max(sizes), text)
    left = seen["left alive"]
    text = f"Graphs alive after your function returned: {left['graphs']}. What it returned still refers to them, or "
    yield Finding("end", left["graphs"] == 0, text + "something outside does.")
    text = f"Your function returned, and {left['results']} bytes of the model's predictions are still held."
    yield Finding("predictions", left["results"] == 0, text)
    text = f"Your samples keep {seen['beyond the rows']} bytes beyond their own numbers: a view keeps all of its base."
    yield Finding("rows", seen["beyond the rows"] <= 0 or left["results"] > 0, text)


def _samples(received: Value, samples: list[torch.Tensor]) -> Iterator[Finding]:
    if not isinstance(received, list) or len(received) != len(samples):
        yield Finding("samples", False, f"The samples are {describe(received)}; expected a list, one for each batch.")
        return
    for number, (item, right) in enumerate(zip(received, samples, strict=True)):
        finding = right_value(item, right, f"samples[{number}]")
        yield replace(finding, prop=f"sample {finding.prop}")


def _grows(seen: Observation) -> bool:
    """Say whether each step found the graphs of all batches so far."""
    graphs = [step["graphs"] for step in seen["steps"]]
    return len(graphs) > 1 and graphs == list(range(1, len(graphs) + 1))


def _cleared(case: Case, seen: Observation, when: str) -> bool:
    return moved(seen["parameters"], _trained(case, when)[2])


def _averaged_over_rows(case: Case, seen: Observation) -> bool:
    """Tell whether only the average is wrong, and each batch counts in it by its size."""
    returned, sizes = seen["returned"], torch.tensor(case.given["sizes"], dtype=torch.float64)
    losses = torch.tensor(_trained(case)[0], dtype=torch.float64)
    return (
        isinstance(returned, list)
        and len(returned) == 3
        and type(returned[1]) is float
        and close(returned[1], float((losses * sizes).sum() / sizes.sum()))
    )


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, first = seen[0]
    sizes = case.given["sizes"]
    graphs, held = max(step["graphs"] for step in first["steps"]), max(step["results"] for step in first["steps"])
    given = sum(sizes) * _row(case)
    yield (
        f"With {len(sizes)} batches at most {graphs} {'graph' if graphs == 1 else 'graphs'} and {held} bytes of "
        f"predictions were alive at a step. The given loop comes to {len(sizes)} graphs and {given} bytes."
    )


EXERCISE = Exercise(
    id="train",
    title="Repair a loop that hoards graphs",
    lesson=LESSON,
    difficulty=3,
    minutes=12,
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
            "The list of losses holds tensors with graphs. Such a tensor keeps the whole graph behind it.",
            lambda case, seen: seen["attached losses"] > 0,
        ),
        Misconception(
            "rows with graphs",
            "The samples hold rows with graphs. Such a row keeps the whole graph of its batch.",
            lambda case, seen: seen["attached rows"] > 0,
        ),
        Misconception(
            "a total with a graph",
            "While the loop runs, the graphs of all batches so far are alive; at the end they are gone. A running "
            "total of tensors does that, since each sum refers to the one before. So does a list of losses or rows "
            "that is cut off at the end.",
            lambda case, seen: _grows(seen) and seen["left alive"]["graphs"] == 0,
        ),
        Misconception(
            "retained for nothing",
            "Your passes keep what the graph saved, as if a second pass were to follow. None does.",
            lambda case, seen: retains(seen) and seen["runs"] == seen["passes"] == seen["passes that retain"],
        ),
        Misconception(
            "a row that keeps the rest",
            "Your samples are views: each keeps the memory of all predictions of its batch.",
            lambda case, seen: seen["beyond the rows"] > 0 and seen["left alive"]["results"] > 0,
        ),
        Misconception(
            "an average over rows",
            "Your average counts each loss as often as its batch has rows. The given loop's counts each loss once.",
            _averaged_over_rows,
        ),
        *cleared_otherwise(_cleared),
        Misconception(
            "zeros for no gradient",
            "Your parameters are those of a loop that leaves zeros in .grad. For a parameter that takes no part in the "
            "loss, zeros are a gradient, and weight decay moves it. Where .grad is None the optimizer skips it, as in "
            "the given loop.",
            lambda case, seen: _cleared(case, seen, "to zeros"),
        ),
    ),
    debrief=_debrief,
)
