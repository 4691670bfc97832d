"""Judging `saliency`: which pixels count?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import torch
from torch import nn

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_08_intermediate_gradients import LESSON
from course_utils.checks.judges.lesson_08_intermediate_gradients.layers import things, times
from course_utils.checks.scenes.lesson_08_intermediate_gradients.saliency import scorer_of_images

_Total: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # of scores and labels


def _cases(seed: int) -> list[Case]:
    kinds = {
        "a model in training mode": (4, False, False, False, False),
        "a frozen model": (3, True, False, False, False),
        "one image, called under no_grad": (1, False, True, False, False),
        "a model with dropout": (4, False, False, True, False),
        "a model that multiplies by another number in each run": (3, False, False, False, True),
    }
    return [
        Case(
            name,
            {
                **{"seed": seed + n, "count": count, "frozen": frozen, "no_grad": silent},
                **{"drops": drops, "turns": turns},
            },
        )
        for n, (name, (count, frozen, silent, drops, turns)) in enumerate(kinds.items())
    ]


def _own(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return scores.gather(1, labels[:, None]).sum()


def _loss(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(scores, labels, reduction="sum")


def _maps(case: Case, evaluating: bool = True, of: _Total = _own) -> torch.Tensor:
    """Return the gradient of each image's score, or of something else, each made in the first run of a model."""
    _, images, labels = scorer_of_images(case)

    def gradient(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        model = scorer_of_images(case)[0]
        if evaluating:
            model.eval()
        images = images.clone().requires_grad_()
        return torch.autograd.grad(of(model(images), labels), images)[0]

    if not evaluating:
        return gradient(images, labels)
    return torch.cat([gradient(images[n : n + 1], labels[n : n + 1]) for n in range(len(labels))])


def _strongest(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.abs().amax(1)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    if seen["runs"] == 1 or not case.given["turns"]:  # there, numbers tell whether it was the first run
        yield right_value(seen["returned"], _strongest(_maps(case)), "What you returned")
    yield Finding("graph", not seen["recorded"], "What you returned still has a graph.")
    yield Finding("runs", seen["runs"] == 1, f"The model ran {times(seen['runs'])}; once for the batch is enough.")
    text = f"{seen['passes']} backward passes ran; one for the batch is enough."
    yield Finding("passes", seen["passes"] <= 1, text)
    changed = seen["changed"]
    message = f"Afterwards the model is not as before. Your function changed {things(changed)}."
    yield Finding("model", not changed, message)
    yield Finding("images", seen["images"], "Your function changed the images, their requires_grad or their .grad.")
    message = "At the end the saved tensors were still there: your pass kept them for another, or none came by."
    yield Finding("kept", not seen["kept"], message)
    yield Finding("labels", seen["labels"], "Your function changed the labels.")
    left = "on" if case.given["no_grad"] else "off"
    yield Finding("mode", seen["mode"], f"Your function left gradients switched {left}.")


def _mapped(case: Case, seen: Observation, expected: torch.Tensor) -> bool:
    return close(seen["returned"], expected)


def _in_training_mode(case: Case, seen: Observation) -> bool:
    """Dropout is random, so in its case the traces that batch norm leaves must do."""
    if case.given["drops"]:
        return isinstance(seen["changed"], list) and "the numbers in 1.0.0.running_mean" in seen["changed"]
    return _mapped(case, seen, _strongest(_maps(case, evaluating=False)))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    count = seen[0][0].given["count"]
    yield f"The check saw the model run once for {count} images. One image at a time takes {count} runs and passes."
    yield (
        "One pass is enough because in evaluation mode no image influences another's score. In training mode batch "
        "norm mixes them, and the sum's gradient is another."
    )


EXERCISE = Exercise(
    id="saliency",
    title="Which pixels count?",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="saliency(model, images, labels)",
    counted=True,
    cases=_cases,
    judge=_judge,
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
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "gradients stay off",
            "Where the caller has switched gradients off, the scores that you differentiate have no graph. Switch "
            "gradients on around your forward pass: with torch.enable_grad().",
            ended=("RuntimeError",),
            ended_in=("one image, called under no_grad",),
            ended_saying="does not require grad and does not have a grad_fn",
        ),
        Misconception(
            "the loss in place of the score",
            "Your map is that of the cross-entropy loss. For a sure model it is nearly zero everywhere.",
            lambda case, seen: any(
                _mapped(case, seen, _strongest(_maps(case, of=_loss)) / count) for count in (1, case.given["count"])
            ),
        ),
        Misconception(
            "the highest score",
            "Your map is that of each image's highest score, whichever class has it. Asked for is the score of its "
            "label.",
            lambda case, seen: _mapped(case, seen, _strongest(_maps(case, of=lambda scores, _: scores.amax(1).sum()))),
        ),
        Misconception(
            "all scores",
            "Your map is that of all scores of an image together. Asked for is the score of its label.",
            lambda case, seen: _mapped(case, seen, _strongest(_maps(case, of=lambda scores, _: scores.sum()))),
        ),
        Misconception(
            "the probability in place of the score",
            "Your map is that of the label's probability, behind a softmax. For a sure model it is nearly zero "
            "everywhere.",
            lambda case, seen: _mapped(
                case, seen, _strongest(_maps(case, of=lambda scores, labels: _own(scores.softmax(1), labels)))
            ),
        ),
        Misconception(
            "channels together",
            "You put the channels together, by a sum, a mean or a norm. Asked for is the largest absolute value among "
            "them.",
            lambda case, seen: any(
                _mapped(case, seen, it)
                for maps in (_maps(case),)
                for it in (
                    maps.abs().sum(1),
                    maps.abs().mean(1),
                    maps.norm(dim=1),
                    maps.sum(1).abs(),
                    maps.mean(1).abs(),
                )
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
            lambda case, seen: any(_mapped(case, seen, it) for it in (_maps(case).amax(1), _maps(case).amax(1).abs())),
        ),
        Misconception(
            "parameters got gradients",
            "Your function filled or cleared .grad of the model's parameters. Nobody asked for that.",
            lambda case, seen: (
                bool(seen["changed"])
                and all(isinstance(what, str) and what.endswith(".grad") for what in seen["changed"])
            ),
        ),
    ),
)
