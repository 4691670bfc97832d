"""Judging `evaluate`: an evaluation that leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_06_detach_vs_no_grad import LESSON
from course_utils.checks.judges.loops import times
from course_utils.checks.scenes.batches import Batch
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.evaluate import evaluated, loss_of

# Each: modes, sizes, the batch that cannot be read, gradients on, inputs that require a gradient, a layer that turns.
_EVALUATIONS: dict[str, tuple[str, list[int], str, bool, bool, bool]] = {
    "a part that evaluates already": ("mixed", [5, 2, 3], "", True, False, False),
    "all in training": ("train", [4, 7], "", True, True, False),
    "only one part in training, and targets that are shares of the classes": ("head", [3, 4], "", True, False, False),
    "evaluating, gradients off, and several targets for each sample": ("eval", [3, 6], "", False, False, False),
    "a batch that cannot be read": ("mixed", [3, 2, 4], "an error", True, False, False),
    "a first batch that raises what is no Exception": ("mixed", [3, 2], "a stop", True, False, False),
    "a layer that multiplies by another number in each run": ("mixed", [2, 4, 3], "", True, False, True),
}


def _cases(seed: int) -> list[Case]:
    return [
        Case(
            name,
            {
                **{"seed": seed + n, "modes": modes, "sizes": sizes, "bad": bad, "gradients on": on},
                **{"live inputs": live, "turns": turns, "shares": "shares" in name, "several": "several" in name},
            },
        )
        for n, (name, (modes, sizes, bad, on, live, turns)) in enumerate(_EVALUATIONS.items())
    ]


def _losses(model: nn.Module, batches: list[Batch]) -> list[float]:
    """Return the loss of each sample by itself, every part of the model evaluating."""
    model.eval()
    with torch.no_grad():
        each = [loss_of(model(x), y, reduction="none").reshape(len(x), -1).mean(dim=1) for x, y in batches]
    return [value for losses in each for value in losses.tolist()]


def _average(case: Case) -> float:
    losses = _losses(*evaluated(case))
    return sum(losses) / len(losses)


def _average_of_averages(case: Case) -> float:
    losses, averages = _losses(*evaluated(case)), list[float]()
    for size in case.given["sizes"]:
        averages.append(sum(losses[:size]) / size)
        losses = losses[size:]
    return sum(averages) / len(averages)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    model, batches = evaluated(case)
    before = [module.training for module in model.modules()]
    if not case.given["bad"]:
        number = type(seen["returned"]) is float
        text = f"You returned {describe(seen['returned'])}; expected a Python float."
        yield Finding("number", number, text)
        count = len(case.given["sizes"])
        yield Finding("runs", seen["runs"] == count, f"The model ran {times(seen['runs'])}; there are {count} batches.")
        if number and (seen["runs"] == count or not case.given["turns"]):  # there, numbers tell of each run
            losses = _losses(model, batches)
            yield right_value(seen["returned"], torch.tensor(sum(losses) / len(losses)), "The average loss")
    else:
        text = "The batches raised an exception, and your function hid it. Let it through."
        yield Finding("raised", seen["raised"], text)
    text = "A copy of the model ran. Evaluate the model itself: a copy holds all its numbers a second time."
    yield Finding("copied", not seen["copied"], text)
    yield Finding("training", not seen["in training"], "A part of the model was in training mode while it ran.")
    tensors = "1 tensor was" if seen["saved"] == 1 else f"{seen['saved']} tensors were"
    text = f"{tensors} saved for a backward pass while your function ran. Expected none."
    if seen["recorded"] and seen["saved"] == 0:
        text = "A part of the model was recorded for a backward pass while your function ran."
    yield Finding("saved", seen["saved"] == 0 and not seen["recorded"], text)
    after = seen["modes"] if isinstance(seen["modes"], list) else []
    wrong = sum(now is not then for now, then in zip(after, before, strict=False))
    are = "is" if wrong == 1 else "are"
    text = f"{wrong} of the model's {len(before)} parts {are} in another mode than before your function ran."
    yield Finding("modes", after == before, text)
    yield Finding("grad mode", seen["grad mode"], "Recording is not switched as it was before your function ran.")
    yield Finding("model", seen["touched"] == [], f"Your function changed {listed(seen['touched'])}.")
    yield Finding("buffers", seen["buffers"], "Your function changed the model's buffers: batch norm's statistics.")
    yield Finding("hooks", seen["hooks"], "Your function left a hook on the model, or removed one.")
    yield Finding("random", seen["random"], "Your function changed the state of the random numbers.")


def _modes_before(case: Case) -> list[bool]:
    return [module.training for module in evaluated(case)[0].modules()]


def _modes_wrong(case: Case, seen: Observation) -> bool:
    return bool(seen["modes"] != _modes_before(case))


def _left_in(case: Case, seen: Observation, training: bool) -> bool:
    """Return whether an ordinary run leaves all parts in one mode, where they were in another."""
    modes = seen["modes"] if seen["modes at first"] is None else seen["modes at first"]
    return isinstance(modes, list) and modes != _modes_before(case) and all(mode is training for mode in modes)


def _given_back_by_train(case: Case, seen: Observation) -> bool:
    """Return whether the modes are those that train(mode) leaves, called on the model and its children, or on all."""
    modes = seen["modes"] if seen["modes at first"] is None else seen["modes at first"]

    def left(deep: bool) -> list[bool]:
        model, _ = evaluated(case)
        noted = [(it, it.training) for it in (model.modules() if deep else (model, *model.children()))]
        for module, mode in noted:
            module.train(mode)
        return [module.training for module in model.modules()]

    return bool(modes != _modes_before(case)) and modes in (left(deep=False), left(deep=True))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, ran = seen[0]
    sizes, losses = case.given["sizes"], _losses(*evaluated(case))
    yield (
        f"For batches of {listed(sizes)} samples the model ran {times(ran['runs'])}, and no tensor was saved for a "
        "backward pass."
    )
    yield (
        f"The average over the samples is {sum(losses) / len(losses):.2f}; the average of the batches' averages would "
        f"be {_average_of_averages(case):.2f}."
    )


EXERCISE = Exercise(
    id="evaluate",
    title="An evaluation that leaves no trace",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=4,
    call="evaluate(model, loss_function, batches)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Two switches are needed, one for recording and one for dropout and batch norm. Which of the two puts itself "
        "back?",
        "model.eval() reaches every part, and model.train() would reach every part, too. Note the mode of each part in "
        "model.modules() before. And ask what happens if a batch raises.",
        "Keep a list of pairs (module, module.training). In try: model.eval(), and under torch.no_grad() the loop, "
        "which adds loss.item() * len(targets) and counts targets. In finally: give each module its "
        "mode back.",
    ),
    misconceptions=(
        Misconception(
            "recorded",
            "The model ran with recording on, and tensors were saved for a pass that no evaluation needs. eval() does "
            "not stop that, and detaching afterwards is too late.",
            lambda case, seen: seen["saved"] != 0 if seen["runs"] else None,
        ),
        Misconception(
            "not evaluating",
            "A part of the model was in training mode while it ran. There dropout drops numbers, and batch norm uses "
            "the batch's statistics and changes its own. no_grad does not stop that.",
            lambda case, seen: seen["in training"] if seen["runs"] and any(_modes_before(case)) else None,
        ),
        Misconception(
            "all to training",
            "Afterwards every part of the model is in training mode, also those that were evaluating before. A batch "
            "norm among them would change its statistics again.",
            lambda case, seen: _left_in(case, seen, True),
        ),
        Misconception(
            "one mode for all",
            "Afterwards every part has the mode that the model itself had before. Its parts may have had others.",
            lambda case, seen: _left_in(case, seen, _modes_before(case)[0]),
        ),
        Misconception(
            "given back by train()",
            "Afterwards parts have the mode of a part that they are in. So it is where module.train(mode) gives modes "
            "back: it sets all that is inside as well. Assign module.training, for each of model.modules().",
            _given_back_by_train,
        ),
        Misconception(
            "left evaluating",
            "Afterwards the model is still evaluating, also where it was in training before.",
            lambda case, seen: _left_in(case, seen, False),
        ),
        Misconception(
            "stuck after an error",
            "When a batch raises, the model is left in the wrong mode: what puts things back does not run then, or not "
            "for every kind of exception. `finally` runs for each, KeyboardInterrupt as well.",
            lambda case, seen: (
                bool(case.given["bad"])
                and seen["raised"] is True
                and seen["modes at first"] == _modes_before(case)
                and _modes_wrong(case, seen)
            ),
        ),
        Misconception(
            "average of averages",
            "Your number is the average of the batches' averages. A small batch counts as much as a large one.",
            lambda case, seen: (
                not case.given["bad"]
                and close(seen["returned"], _average_of_averages(case))
                and not close(seen["returned"], _average(case))
            ),
        ),
    ),
)
