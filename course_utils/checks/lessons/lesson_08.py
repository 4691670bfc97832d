"""Exercises of lesson 08: what hooks see and change, and where gradients get lost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import nn

from course_utils.checks.compare import close, listed, right_entries, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.layers_08 import layer_gradients
from course_utils.checks.lessons.log_08 import gradient_log
from course_utils.checks.lessons.passing_08 import clip_passing, reverse_gradient
from course_utils.checks.lessons.predict_08 import LESSON, hook_order, predict_retain_grad, times
from course_utils.checks.lessons.predictions import one_case
from course_utils.checks.observing.scenes_08 import batch_for_patients, patients, score_of_patients, scorer_of_images

# Saliency.


def _images(seed: int) -> list[Case]:
    kinds = {
        "a model in training mode": (4, False, False, False),
        "a frozen model": (3, True, False, False),
        "called under no_grad": (5, False, True, False),
        "a model with dropout": (4, False, False, True),
    }
    return [
        Case(name, {"seed": seed + n, "count": count, "frozen": frozen, "no_grad": silent, "drops": drops})
        for n, (name, (count, frozen, silent, drops)) in enumerate(kinds.items())
    ]


def _maps(case: Case, evaluating: bool = True, of_loss: bool = False) -> torch.Tensor:
    """Return the gradient of each image's score, or of its loss."""
    model, images, labels = scorer_of_images(case)
    if evaluating:
        model.eval()

    def gradient(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        images = images.clone().requires_grad_()
        scores: torch.Tensor = model(images)
        if of_loss:
            total = nn.functional.cross_entropy(scores, labels, reduction="sum")
        else:
            total = scores.gather(1, labels[:, None]).sum()
        return torch.autograd.grad(total, images)[0]

    if not evaluating:
        return gradient(images, labels)
    return torch.cat([gradient(images[n : n + 1], labels[n : n + 1]) for n in range(len(labels))])


def _strongest(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.abs().amax(1)


def _judge_saliency(case: Case, seen: Observation) -> Iterator[Finding]:
    yield right_value(seen["returned"], _strongest(_maps(case)), "What you returned")
    yield Finding("graph", not seen["recorded"], "What you returned still has a graph.")
    yield Finding("runs", seen["runs"] == 1, f"The model ran {times(seen['runs'])}; once for the batch is enough.")
    changed = seen["changed"]
    message = f"Afterwards the model is not as before. Your function changed {listed(changed)}."
    yield Finding("model", not changed, message)
    yield Finding("images", seen["images"], "Your function changed the images, their requires_grad or their .grad.")
    yield Finding("kept", not seen["kept"], "Your pass kept the saved tensors for another pass. None follows.")
    yield Finding("labels", seen["labels"], "Your function changed the labels.")
    yield Finding("mode", seen["mode"], "Your function left gradients switched on or off.")


def _mapped(case: Case, seen: Observation, expected: torch.Tensor) -> bool:
    return close(seen["returned"], expected)


def _in_training_mode(case: Case, seen: Observation) -> bool:
    """Dropout is random, so in its case the traces that batch norm leaves must do."""
    if case.given["drops"]:
        return isinstance(seen["changed"], list) and "the numbers in 1.running_mean" in seen["changed"]
    return _mapped(case, seen, _strongest(_maps(case, evaluating=False)))


saliency = Exercise(
    id="saliency",
    title="Which pixels count?",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="saliency(model, images, labels)",
    cases=_images,
    judge=_judge_saliency,
    hints=(
        "The score of an image's own label is one number for each image. Their sum has the same gradient for an image "
        "as that image's score alone, where images do not influence each other. When do they?",
        "Work on a copy of the images that requires a gradient, with the model in evaluation mode and with gradients "
        "switched on. torch.autograd.grad touches no .grad. Put every module's mode back, since not all were the same.",
        "modes = {module: module.training for module in model.modules()}; model.eval(); under torch.enable_grad(): "
        "pixels = images.detach().clone().requires_grad_(), scores = model(pixels), pick scores[range, labels], and "
        "torch.autograd.grad of their sum. Absolute values, then the largest over dimension 1. In finally: set "
        "module.training for all.",
    ),
    misconceptions=(
        Misconception(
            "the loss in place of the score",
            "Your map is that of the cross-entropy loss. For a sure model it is nearly zero everywhere.",
            lambda case, seen: any(
                _mapped(case, seen, _strongest(_maps(case, of_loss=True)) / count) for count in (1, case.given["count"])
            ),
        ),
        Misconception(
            "in training mode",
            "Your map was made in training mode, where batch norm lets each image influence the others.",
            _in_training_mode,
        ),
        Misconception(
            "with a sign",
            "You took the largest value over the channels and not the largest absolute value: strong negative ones "
            "are lost.",
            lambda case, seen: _mapped(case, seen, _maps(case).amax(1)),
        ),
        Misconception(
            "parameters got gradients",
            "Your function filled or cleared .grad of the model's parameters. Nobody asked for that.",
            lambda case, seen: (
                bool(seen["changed"])
                and all(isinstance(what, str) and what.startswith("the gradient that") for what in seen["changed"])
            ),
        ),
    ),
)

# Where does the gradient get lost? What is right is measured.

CAUSES = ("saturated", "dead", "small weights", "cut", "all blocks")
LOST = 50.0


@cache
def _measured() -> dict[str, dict[str, Any]]:
    return {name: _measure(net) for name, net in patients().items()}


def _measure(net: nn.Sequential) -> dict[str, Any]:
    """Return the block where the gradient gets lost, and why, from measurements alone."""
    outputs: list[torch.Tensor] = []
    h = batch_for_patients().requires_grad_()
    for block in net:
        h = block(h)
        outputs.append(h)
    gradients = torch.autograd.grad(score_of_patients(h), outputs, allow_unused=True)
    sizes = [0.0 if gradient is None else float(gradient.norm()) for gradient in gradients]
    falls = [sizes[n] / max(sizes[n - 1], 1e-30) for n in range(1, len(sizes))]
    worst = max(range(len(falls)), key=falls.__getitem__) + 1
    steep = sum(fall > 2 for fall in falls)
    if steep == len(falls):
        return {"block": "all", "cause": "all blocks"}
    if not _connected(net, worst):
        return {"block": worst, "cause": "cut"}
    if not bool(outputs[worst].any()):
        return {"block": worst, "cause": "dead"}
    saturated = float((outputs[worst].abs() > 0.99).float().mean()) > 0.5
    return {"block": worst, "cause": "saturated" if saturated else "small weights"}


def _connected(net: nn.Sequential, number: int) -> bool:
    x = batch_for_patients().requires_grad_()
    result: torch.Tensor = net[number](x)
    return result.requires_grad and torch.autograd.grad(result.sum(), x, allow_unused=True)[0] is not None


def _right_diagnosis() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, facts in _measured().items():
        found |= {f"{name}_block": facts["block"], f"{name}_cause": facts["cause"]}
    return found


def _judge_diagnosis(case: Case, seen: Observation) -> Iterator[Finding]:
    yield from right_entries(seen["value"], _right_diagnosis(), "Your diagnosis")


def _shifted(case: Case, seen: Observation) -> bool:
    right = _right_diagnosis()
    moved = {key: value - 1 if isinstance(value, int) else value for key, value in right.items()}
    return bool(seen["value"] == moved)


diagnosis = Exercise(
    id="diagnosis",
    title="Where does the gradient get lost, and why?",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call=None,
    cases=one_case,
    judge=_judge_diagnosis,
    hints=(
        "Read the plot from the right, as the gradient goes. It is large at a block's output and small at the output "
        "of the block before. Which of the two blocks did it have to pass?",
        "Then look at that block's numbers in the table. A tanh near 1 or -1 is flat. A ReLU that gives zeros only "
        "passes nothing. Small weights make the output small, too, and the gradient in the same measure.",
        "None in the table means that no pass came there at all. Zero means that one came with nothing. A line that "
        "falls in each block has no single culprit.",
    ),
    misconceptions=(
        Misconception(
            "one block too early",
            "You named the first block that has little gradient at its output. It is a victim: the loss happened in "
            "the block behind it, on the gradient's way.",
            _shifted,
        ),
        Misconception(
            "zero is cut",
            "You took a gradient of zeros for a cut graph, or the other way round. Where the graph is cut there is no "
            "gradient at all.",
            lambda case, seen: bool(
                seen["value"] == {**_right_diagnosis(), "B_cause": "cut", "D_cause": "dead"}
                or seen["value"] == {**_right_diagnosis(), "B_cause": "cut"}
                or seen["value"] == {**_right_diagnosis(), "D_cause": "dead"}
            ),
        ),
    ),
)

# Starting a deep stack so that gradients arrive.

FACTOR = 50.0


def _stacks(seed: int) -> list[Case]:
    widths = [31, 24, 40, 28, 36, 22, 33, 27, 38, 25]
    return [
        Case("20 layers with ReLU", {"seed": seed, "activation": "relu", "widths": [*widths, *widths]}),
        Case("16 layers with tanh", {"seed": seed + 1, "activation": "tanh", "widths": [*widths, *widths[:6]]}),
    ]


def _judge_rescue(case: Case, seen: Observation) -> Iterator[Finding]:
    message = "Your function replaced or changed layers. Only the numbers in their parameters may change."
    yield Finding("layers", seen["kept"] is True, message)
    changed = seen["changed"]
    message = f"Your function changed {listed(changed)}. Only the numbers in parameters may change."
    yield Finding("model", not changed, message)
    gradients, outputs = _floats(seen["gradients"]), _floats(seen["outputs"])
    if not gradients or not outputs:
        message = "After your function the model's result has no graph, or is no number."
        yield Finding("graph", bool(changed) or seen["kept"] is not True, message)
        return
    share = gradients[0] / gradients[-1] if gradients[-1] else 0.0
    message = (
        f"The gradient at the first activation is {share:.2g} times that at the last; it should be between "
        f"1/{FACTOR:g} and {FACTOR:g} times."
    )
    yield Finding("gradient", 1 / FACTOR <= share <= FACTOR, message)
    low, high = min(outputs), max(outputs)
    message = f"The activations have typical sizes from {low:.2g} to {high:.2g}; expected are sizes from 0.02 to 20."
    yield Finding("activations", low >= 0.02 and high <= 20, message)
    message = "Units of one layer do the same as others, or nothing: the layers' weights have too low a rank."
    yield Finding("ranks", all(seen["ranks"]), message)
    spread = min(_floats(seen["spread"]), default=0.0)
    message = f"Behind one of the activations, numbers of different inputs differ by {spread:.2g} only: too little."
    yield Finding("spread", spread >= 0.005, message)


def _floats(values: Any) -> list[float]:
    if not isinstance(values, list) or not all(isinstance(value, float) and value == value for value in values):
        return []
    return values


def _share(seen: Observation) -> float:
    gradients = _floats(seen["gradients"])
    return gradients[0] / gradients[-1] if gradients and gradients[-1] else 0.0


rescue = Exercise(
    id="rescue",
    title="Start a deep net so that gradients arrive",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="rescue(model)",
    cases=_stacks,
    judge=_judge_rescue,
    hints=(
        "On its way back a gradient is multiplied by each layer's weights. If that makes it shorter on average, twenty "
        "layers make it vanish. How large must weights be so that it stays as long?",
        "A sum of n products grows with the square root of n, so the weights' size is gain / sqrt(n). A ReLU lets half "
        "of the gradient pass, which takes a gain of sqrt(2). A tanh near zero changes little. nn.init knows gains.",
        "Go through model.modules(). For each nn.Linear: nn.init.kaiming_normal_(weight, nonlinearity='relu') if the "
        "model has ReLUs, otherwise nn.init.xavier_normal_(weight, gain=nn.init.calculate_gain('tanh')), and zeros in "
        "the bias.",
    ),
    misconceptions=(
        Misconception(
            "still vanishing",
            "The gradient at the first activation is still more than a thousand times smaller than at the last: your "
            "weights are too small for the depth.",
            lambda case, seen: 0 < _share(seen) < 1e-3 and max(_floats(seen["outputs"]), default=99) < 20,
        ),
        Misconception(
            "too much",
            "Your weights are too large: numbers or gradients grow from layer to layer.",
            lambda case, seen: (
                max(_floats(seen["outputs"]), default=0) > 20
                or (case.given["activation"] == "tanh" and _share(seen) > FACTOR)
            ),
        ),
        Misconception(
            "new parameters",
            "You put new parameters into the layers. An optimizer that was made before still holds the old ones, and "
            "would train those.",
            lambda case, seen: (
                isinstance(seen["changed"], list)
                and any(isinstance(what, str) and what.startswith("which tensor") for what in seen["changed"])
            ),
        ),
    ),
)

EXERCISES = (
    *(predict_retain_grad, hook_order, reverse_gradient, clip_passing, saliency),
    *(diagnosis, rescue, gradient_log, layer_gradients),
)
