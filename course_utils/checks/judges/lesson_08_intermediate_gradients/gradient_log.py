"""Judging `gradient_log`: repair a log whose hooks pile up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import nn

from course_utils.checks.compare import close, counted, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_08_intermediate_gradients import LESSON
from course_utils.checks.judges.lesson_08_intermediate_gradients.layers import left, results_of, times
from course_utils.checks.judges.put_back import PUT_BACK
from course_utils.checks.scenes.lesson_08_intermediate_gradients.gradient_log import logged


def _cases(seed: int) -> list[Case]:
    return [
        Case(name, {"seed": seed + n, "sizes": sizes, "fails at": fails, "stops": n == 3, "alone": "single" in name})
        for n, (name, sizes, fails) in enumerate(
            [
                ("three batches, one of them with an axis more", [[1, 4], [2, 7], [3, 5]], 0),
                ("one batch", [[1, 1]], 0),
                ("a loss function that raises", [[1, 4], [2, 3]], 2),
                ("a loss function that raises what is no Exception", [[1, 4], [2, 3]], 2),
                ("a model that is a single layer", [[1, 3], [2, 2]], 0),
            ]
        )
    ]


def _norms(case: Case, of_input: bool = False) -> list[dict[str, float]]:
    """Return the norms at each linear layer's result, or at its input."""
    model, batches = logged(case)
    names = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    log = []
    for x, targets in batches:
        _, results = results_of(model, names, x, None)
        zeros = [torch.zeros_like(result, requires_grad=True) for _, result in results]
        loss = nn.functional.mse_loss(results_of(model, names, x, zeros)[0], targets)
        gradients = torch.autograd.grad(loss, zeros)
        if of_input:
            weights = [model.get_submodule(name).get_parameter("weight") for name, _ in results]
            gradients = tuple(gradient @ weight for gradient, weight in zip(gradients, weights, strict=True))
        log.append({name: float(part.detach().norm()) for (name, _), part in zip(results, gradients, strict=True)})
    return log


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    if case.given["fails at"]:
        message = "The loss function raised an error, and your function swallowed it."
        if len(seen["hooks"]) < case.given["fails at"]:
            message = f"The loss function ran {times(len(seen['hooks']))} for {len(case.given['sizes'])} batches."
        yield Finding("raises", bool(seen["raised"]), message)
    else:
        wanted = _norms(case)
        received = seen["returned"]
        if not isinstance(received, list) or len(received) != len(wanted):
            text = (
                f"You returned {describe(received)}; expected a list with one dict for each of {len(wanted)} batches."
            )
            yield Finding("list", False, text)
        else:
            for number, (mine, right) in enumerate(zip(received, wanted, strict=True)):
                yield from _same_norms(mine, right, f"The dict for batch {number}")
        passes = len(case.given["sizes"])
        batches = "1 batch" if passes == 1 else f"{passes} batches"
        text = f"{counted(seen['passes'])} ran for {batches}."
        yield Finding("passes", seen["passes"] == passes, text)
        text = f"The model that was given ran {times(seen['runs'])} for {batches}."
        yield Finding("runs", seen["runs"] == passes, text)
        text = "When the next batch ran, or at the end, the saved tensors of a batch were still there: its pass kept "
        text += "them, or had not come."
        yield Finding("kept", not seen["kept"], text)
    hooks = seen["hooks"]
    text = f"When losses are computed, the model's modules have these counts of hooks: {hooks}."
    yield Finding("pile", len(set(hooks)) <= 1, text)
    alive = max(seen["alive"], default=0)
    text = f"While a later batch runs, {alive} graphs of earlier batches are alive."
    yield Finding("graphs", alive <= 1, text)
    yield from left(seen)


def _same_norms(received: Value, right: dict[str, float], what: str) -> Iterator[Finding]:
    if not isinstance(received, dict) or set(received) != set(right):
        keys = f" with the keys {listed(received)}" if isinstance(received, dict) else ""
        yield Finding("keys", False, f"{what} is {describe(received)}{keys}; expected the keys {listed(right)}.")
        return
    odd = next((name for name in right if type(received[name]) is not float), None)
    if odd is not None:
        text = f"{what} has {describe(received[odd])} for {odd}; expected a Python float."
        yield Finding("float", False, text)
        return
    for name, norm in right.items():
        yield right_value(received[name], norm, f"{what} has a norm for {name} that")


def _pile_up(case: Case, seen: Observation) -> bool:
    """With one batch, hooks that are left behind tell it, or another known slip explains the case."""
    hooks = seen["hooks"]
    if len(hooks) == 1 and not case.given["fails at"]:
        left = any(isinstance(what, str) and what.startswith("the hooks on") for what in seen["changed"])
        return left or _graded(case, seen)
    return len(hooks) > 1 and all(later > earlier for earlier, later in pairwise(hooks))


def _entries(seen: Observation) -> list[Value]:
    """Return the log's entries; where the loss function fails, those of a run in which it does not."""
    returned = seen["returned"] if seen["otherwise"] is None else seen["otherwise"]
    return returned if isinstance(returned, list) else []


def _only_the_last(case: Case, seen: Observation) -> bool:
    """Return whether each dict has one key: the name of the last linear layer, or that of the last module."""
    names = [[name] for name, _ in logged(case)[0].named_modules()][-2:]
    entries = _entries(seen)
    return bool(entries) and all(isinstance(entry, dict) and list(entry) in names for entry in entries)


def _plain_ones(case: Case, seen: Observation) -> bool:
    """Return whether each dict has the layers whose class is nn.Linear, and lacks one of a derived class."""
    linear = {name: it for name, it in logged(case)[0].named_modules() if isinstance(it, nn.Linear)}
    names = {name for name, it in linear.items() if type(it) is nn.Linear}
    entries = _entries(seen)
    return bool(entries) and names != linear.keys() and all(isinstance(it, dict) and set(it) == names for it in entries)


def _tensors(case: Case, seen: Observation) -> bool:
    entries = [entry for entry in _entries(seen) if isinstance(entry, dict)]
    return any(isinstance(item, Array) for entry in entries for item in entry.values())


def _last(case: Case) -> list[dict[str, float]]:
    right = _norms(case)
    return [right[-1]] * len(right)


def _gave_norms(case: Case, seen: Observation, right: list[dict[str, float]]) -> bool:
    returned = seen["returned"]
    if not isinstance(returned, list) or len(returned) != len(right):
        return False
    return all(
        isinstance(mine, dict)
        and set(mine) == set(wanted)
        and all(type(mine[name]) is float and close(mine[name], norm) for name, norm in wanted.items())
        for mine, wanted in zip(returned, right, strict=True)
    )


def _graded(case: Case, seen: Observation) -> bool:
    return any(isinstance(what, str) and what.endswith(".grad") for what in seen["changed"])


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, it = seen[0]
    yield (
        f"For {len(case.given['sizes'])} batches the check saw {it['runs']} runs and {it['passes']} backward passes, "
        "the same number of hooks at each, and none of yours afterwards."
    )
    yield "With three new hooks for each batch, the last of n batches would run 3 n of them."


EXERCISE = Exercise(
    id="gradient_log",
    title="Repair a log whose hooks pile up",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="gradient_log(model, batches, loss_fn)",
    cases=_cases,
    judge=_judge,
    hints=(
        "Four things are wrong. Count the hooks after each batch. Print the keys of a dict. Look at the type of an "
        "entry, and at .grad of the parameters after the call.",
        "A function that is made in a loop looks a name up when it runs, not when it is made. By then the loop is "
        "over. A default argument or functools.partial holds what the name meant at the time.",
        "Register one hook for each linear layer, before the loop over batches, each with its own name. Let it write "
        "into a dict that you empty for each batch. Use torch.autograd.grad for the pass, .item() for the numbers, "
        "and take the hooks away in a finally.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "hooks pile up",
            "With each batch the model has more hooks. Each of them runs in every later pass.",
            _pile_up,
            among=frozenset({"pile"}),
        ),
        Misconception(
            "the name of the last layer",
            "Each dict has one key, that of the last module of the loop. Where a hook made in a loop looks a name up "
            "when it runs, the name means the last one by then.",
            _only_the_last,
            among=frozenset({"keys"}),
        ),
        Misconception(
            "one dict for all batches",
            "Every dict of your list holds the norms of the last batch. Where it is one dict, which each batch writes "
            "into, give each batch one of its own, or a copy.",
            lambda case, seen: not seen["raised"] and len(_norms(case)) > 1 and _gave_norms(case, seen, _last(case)),
        ),
        Misconception(
            "the gradient of the input",
            "Your norms are those of the gradient at each layer's input. Asked for is its result.",
            lambda case, seen: not seen["raised"] and _gave_norms(case, seen, _norms(case, of_input=True)),
        ),
        Misconception(
            "gradients left behind",
            "After your function .grad of the model's parameters is not as before. A log must leave it alone.",
            lambda case, seen: _graded(case, seen) and not seen["accumulated"],
        ),
        PUT_BACK,
        Misconception(
            "a derived class left out",
            "Your dicts have no entry for a layer whose class is derived from nn.Linear. It is an nn.Linear, too: ask "
            "by isinstance, and not for the type.",
            _plain_ones,
        ),
        Misconception(
            "hooks of others removed",
            "Afterwards the model has fewer hooks than before your function: some were not yours. Keep the handles of "
            "those that you register, and remove these alone.",
            lambda case, seen: seen["more hooks"] < 0,
        ),
        Misconception(
            "tensors in the log",
            "Your dicts hold tensors where floats are expected.",
            _tensors,
        ),
    ),
)
