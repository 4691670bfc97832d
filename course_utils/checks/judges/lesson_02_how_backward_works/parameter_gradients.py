"""Judging `parameter_gradients`: repair: gradients without touching .grad."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import describe, listed, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_02_how_backward_works import LESSON
from course_utils.checks.judges.put_back import put_back
from course_utils.checks.scenes.lesson_02_how_backward_works.parameter_gradients import kept, on_the_way, two_branches
from course_utils.graph.saved import saved

_HELD = {
    "no gradients before": [],
    "some gradients before": ["trunk.weight", "head.bias", "spare.weight", "frozen.weight"],
    "a batch of zeros": [],
}


def _cases(seed: int) -> Iterator[Case]:
    for offset, (name, held) in enumerate(_HELD.items()):
        # Large gradients and small ones: who clips, or takes what is small for zero, gives other numbers.
        times = {"no gradients before": 1e7, "some gradients before": 3e-6}.get(name, 1.0)
        yield Case(name, {"seed": seed + offset, "held": held, "zeros": name == "a batch of zeros", "times": times})


def _parameter_oracle(case: Case) -> dict[str, torch.Tensor | None]:
    model, loss = two_branches(case)
    wanted = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    found = dict(zip(wanted, torch.autograd.grad(loss, list(wanted.values()), allow_unused=True), strict=True))
    return {name: found.get(name) for name, _ in model.named_parameters()}


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    returned, expected = seen["returned"], _parameter_oracle(case)
    if not isinstance(returned, dict):
        message = f"What you returned is {describe(returned)}; expected a dict from parameter names to gradients."
        yield Finding("type", False, message)
    else:
        yield from _named_gradients(returned, expected, _without_grad(case))
    changed = [name for name, value in seen["before"].items() if seen["after"][name] != value]
    yield Finding("grad", not changed, f"Your function changed .grad of {listed(changed)}.")
    passes = seen["passes"]
    yield Finding(
        "passes", passes == 1, f"Your function ran {passes} backward passes over the loss; one is enough and needed."
    )
    why = "The pass has kept them for another pass." if _kept_all(case, seen) else "The pass did not come to them."
    message = (
        f"After your function the graph still holds {seen['kept']} saved tensors on the way to parameters that require "
        f"grad. {why}"
    )
    yield Finding("graph", passes != 1 or not seen["kept"], message)
    message = f"The gradients of {listed(seen['recorded'])} have a graph of their own: the backward pass was recorded."
    yield Finding("recorded", not seen["recorded"], message)
    yield Finding("unfrozen", not seen["unfrozen"], f"Your function unfroze {listed(seen['unfrozen'])}.")
    yield Finding("frozen", not seen["frozen"], f"Your function froze {listed(seen['frozen'])}.")
    yield Finding("values", not seen["moved"], f"Your function changed the numbers in {listed(seen['moved'])}.")
    message = "Your function switched the model, or a part of it, between training and evaluation."
    yield Finding("mode", not seen["mode"], message)
    message = "Your function left hooks on the model, which would run in each pass from now on."
    yield Finding("hooks", seen["hooks"] <= 0, message)
    yield Finding("own hooks", seen["hooks"] >= 0, "Your function took away a hook that was on the model.")


def _kept_all(case: Case, seen: Observation) -> bool:
    """Say whether all is held that was held before. A pass to a few parameters frees what it goes through."""
    model, loss = two_branches(case)
    return bool(seen["kept"] == kept(loss, on_the_way(model, loss)))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    model, loss = two_branches(seen[0][0])
    asked = sum(parameter.requires_grad for parameter in model.parameters())
    size = saved(loss).bytes
    yield (
        f"Your function ran one backward pass for {asked} parameters, and the graph holds none of its {size} bytes of "
        f"saved tensors any more. A pass for each parameter would have gone through the graph up to {asked} times."
    )


def _without_grad(case: Case) -> set[str]:
    """Return the names of the parameters that require no gradient now, even where the loss is computed from them."""
    return {name for name, parameter in two_branches(case)[0].named_parameters() if not parameter.requires_grad}


def _named_gradients(
    returned: dict[str, Value], expected: dict[str, torch.Tensor | None], without: set[str]
) -> Iterator[Finding]:
    missing = [name for name in expected if name not in returned]
    unknown = [name for name in returned if name not in expected]
    yield Finding("keys", not missing, f"Your dict has no entry for {listed(missing)}.")
    message = f"Your dict has entries for what named_parameters() does not name so: {listed(unknown)}."
    yield Finding("unknown keys", not unknown, message)
    for name, gradient in expected.items():
        if name not in returned:
            continue
        what = f"The gradient of {name}"
        if gradient is not None:
            yield right_value(returned[name], gradient, what)
        else:
            received = returned[name]
            why = "it does not require grad" if name in without else "the loss has no gradient for it"
            message = f"{what} is {describe(received)}; expected None, since {why}."
            yield Finding("unused", received is None, message)


def _changed_grads(seen: Observation) -> list[str]:
    return [name for name, value in seen["before"].items() if seen["after"][name] != value]


def _wrote_grad(case: Case, seen: Observation) -> bool:
    return any(seen["after"][name] is not None and seen["after"][name].tensor().any() for name in _changed_grads(seen))


def _only_zeros(seen: Observation, here: bool) -> bool | None:
    """Tell whether what changed holds zeros or None now, and an idea shows `here`: it fits elsewhere as well."""
    after = [seen["after"][name] for name in _changed_grads(seen)]
    return (here or None) if after and all(it is None or not it.tensor().any() for it in after) else False


def _zeros_for_none(case: Case, seen: Observation) -> bool | None:
    return _only_zeros(seen, any(seen["before"][name] is None for name in _changed_grads(seen)))


def _cleared_grad(case: Case, seen: Observation) -> bool | None:
    return _only_zeros(seen, any(seen["before"][name] is not None for name in _changed_grads(seen)))


EXERCISE = Exercise(
    id="parameter_gradients",
    title="Repair: gradients without touching .grad",
    lesson=LESSON,
    difficulty=3,
    minutes=10,
    points=3,
    call="parameter_gradients(loss, model)",
    cases=_cases,
    judge=_judge,
    hints=(
        "The deeper page compares two functions that start a backward pass. One of them writes into no .grad.",
        "torch.autograd.grad takes all parameters at once. It refuses those that do not require grad, and by default "
        "those that the loss does not depend on.",
        "Collect the parameters that require grad. Call torch.autograd.grad once, with allow_unused=True and without "
        "retain_graph. Start the result with None for every name, then fill in what came back.",
    ),
    misconceptions=(
        Misconception(
            "writes into .grad",
            "Your function left other numbers in the parameters' .grad, as backward() does. They have to be as before: "
            "somebody may be collecting there.",
            lambda case, seen: _wrote_grad(case, seen) and not seen["accumulated"],
        ),
        put_back("a pass that writes into no .grad"),
        Misconception(
            "clears .grad",
            "After your function, .grad of parameters that held a gradient is cleared. Somebody may be "
            "collecting there.",
            _cleared_grad,
        ),
        Misconception(
            "zeros in place of None",
            ".grad was None before and holds zeros now. None is not zeros: some optimizers step on zeros.",
            _zeros_for_none,
        ),
        Misconception(
            "one pass for each parameter",
            "You ran several backward passes, as if one for each parameter. Each goes through the same graph again: "
            "one pass can give all gradients.",
            lambda case, seen: seen["passes"] > 2,
        ),
        Misconception(
            "the graph is kept",
            "Your pass is the only one over this graph, yet it keeps the saved tensors for another one, and "
            "their memory with them.",
            lambda case, seen: seen["passes"] == 1 and _kept_all(case, seen) and not _changed_grads(seen),
        ),
    ),
    debrief=_debrief,
    reaches=("next_functions",),
)
