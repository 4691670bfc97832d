"""Judging `two_updates`: repair a step between two passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.compare import close, right_floats
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.as_found import as_found
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.judges.loops import times
from course_utils.checks.scenes.lesson_04_retain_graph.two_updates import two_headed


def _cases(seed: int) -> list[Case]:
    return [Case("three updates", {"seed": seed + 3, "sizes": [5, 1, 2]})]


def _updated(case: Case, trunk_gets: str = "its own", *ways: str) -> tuple[list[list[float]], list[list[torch.Tensor]]]:
    """Update with gradients that each come from a forward of their own. Return losses and parameters.

    `trunk_gets` says which gradients the second optimizer finds in the trunk, `ways` what else goes another way.
    """
    trunk, heads, optimizers, batches = two_headed(case)
    lists = [[*trunk.parameters(), *head.parameters()] for head in heads]
    shared = len(list(trunk.parameters()))
    piles: list[list[torch.Tensor | float]] = [[0.0] * len(own) for own in lists]
    pile = [torch.zeros_like(parameter) for parameter in trunk.parameters()]

    def gradients(number: int, inputs: torch.Tensor, targets: list[torch.Tensor]) -> tuple[float, list[torch.Tensor]]:
        loss = mse_loss(heads[number](trunk(inputs)), targets[number])
        return loss.item(), list(torch.autograd.grad(loss, lists[number]))

    losses = []
    for inputs, targets in batches:
        found = [gradients(number, inputs, targets) for number in (0, 1)]
        losses.append([loss for loss, _ in found])
        if trunk_gets.startswith("both"):
            both = [a + b for a, b in zip(found[0][1][:shared], found[1][1][:shared], strict=True)]
            if "trunk never cleared" in ways:
                pile = both = [old + new for old, new in zip(pile, both, strict=True)]
            firsts = both if trunk_gets == "both, twice" else found[0][1][:shared]
            found = [(loss, [*own, *row[shared:]]) for own, (loss, row) in zip((firsts, both), found, strict=True)]
        if trunk_gets == "the second's":
            found[0] = (found[0][0], [*found[1][1][:shared], *found[0][1][shared:]])
        for number, optimizer in enumerate(optimizers):
            if "new weights" in ways and number:
                found[1] = gradients(1, inputs, targets)
            for position, (parameter, gradient) in enumerate(zip(lists[number], found[number][1], strict=True)):
                if "heads never cleared" in ways and position >= shared:
                    gradient = piles[number][position] = piles[number][position] + gradient
                if "kept from before" in ways and not number:  # what the last step of the call before found there
                    gradient = gradient + (pile[position] if position < shared else piles[0][position])
                    piles[0][position] = gradient
                nothing = trunk_gets == "nothing" and number == 1 and position < shared
                parameter.grad = None if nothing else gradient
            optimizer.step()
        if "kept from before" in ways:
            pile = found[1][1][:shared]
    return losses, [[parameter.detach() for parameter in part.parameters()] for part in (trunk, *heads)]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, parameters = _updated(case)
    yield from _turns(seen, len(losses))
    for number, (received, expected) in enumerate(zip(seen["returned"], losses, strict=True), 1):
        finding = right_floats(received, torch.tensor(expected), f"The list of losses of update {number}")
        yield replace(finding, prop=f"losses' {finding.prop}")
    for name, mine, right in zip(("trunk", "first head", "second head"), seen["parameters"], parameters, strict=True):
        text = f"After {len(losses)} updates the parameters of the {name} are not where the two gradients lead."
        yield Finding(name, all(close(a, b) for a, b in zip(mine, right, strict=True)), text)
    text = (
        "When an optimizer stepped, a gradient in .grad had a graph of its own, as create_graph=True makes it. No pass "
        "will use it, and it keeps what the losses' graph has saved."
    )
    yield Finding("recorded", seen["recorded"] is False, text)
    text = f"When the last optimizer stepped, the trunk still kept {seen['kept']} bytes. Passes should be over then."
    yield Finding("kept", seen["kept"] == 0, text)
    yield as_found(seen)


def _turns(seen: Observation, updates: int) -> Iterator[Finding]:
    """Judge what each update ran. Where one ran something else, the numbers only follow from that."""
    order = seen["order"] == [0, 1] * updates
    yield Finding("order", order, f"The optimizers stepped in the order {seen['order']}; expected 0, 1 in each update.")
    runs = seen["forwards"]
    text = f"In {updates} updates the trunk ran {times(runs[0])}, the heads {times(runs[1])} and {times(runs[2])}."
    yield Finding("forwards", runs == [updates] * 3, text)
    through = seen["through the trunk"]
    text = f"{through} backward passes went through the trunk in {updates} updates; two in each are enough."
    yield Finding("passes", through <= 2 * updates, text)
    # Where the heads work on a cut of the trunk's result, each loss has a pass for the head and one for the trunk.
    text = f"{seen['passes']} backward passes ran in {updates} updates; one for each loss in each is enough."
    yield Finding("all passes", seen["passes"] <= 4 * updates, text)


# Known slips. Two that concern different things are tried together.
_TRUNK = {
    "gradients mixed": "both, twice",
    "the first gradient left over": "both",
    "the second loss cut off": "nothing",
    "the second gradient for both": "the second's",
}
_OTHER = {"a forward with new weights": "new weights", "heads never cleared": "heads never cleared"}
_NOTHING_CLEARED, _FIRST_ON_TOP = "nothing cleared", "the first on top of the call before"


def _slips(case: Case, seen: Observation) -> list[set[str]]:
    """Return the smallest sets of slips that lead to the learner's parameters: none, one slip, or two."""
    pairs = [{one, two} for one in _TRUNK for two in ("heads never cleared",)]
    for sets in (
        [set[str]()],
        [{slip} for slip in (*_TRUNK, *_OTHER, _NOTHING_CLEARED, _FIRST_ON_TOP)],
        [*pairs, set(_OTHER)],
    ):
        found = [slips for slips in sets if _ended_as(case, seen, slips)]
        if found:
            return found
    return []


def _ended_as(case: Case, seen: Observation, slips: set[str]) -> bool:
    right = _ending(case.given["seed"], tuple(case.given["sizes"]), frozenset(slips))
    return all(
        close(a, b) for mine, its in zip(seen["parameters"], right, strict=True) for a, b in zip(mine, its, strict=True)
    )


@lru_cache(maxsize=64)
def _ending(seed: int, sizes: tuple[int, ...], slips: frozenset[str]) -> list[list[torch.Tensor]]:
    if _NOTHING_CLEARED in slips:
        ways = ("heads never cleared", "trunk never cleared")
        return _updated(Case("", {"seed": seed, "sizes": sizes}), "both, twice", *ways)[1]
    if _FIRST_ON_TOP in slips:
        return _updated(Case("", {"seed": seed, "sizes": sizes}), "its own", "kept from before")[1]
    trunk = next((_TRUNK[slip] for slip in slips if slip in _TRUNK), "its own")
    others = (_OTHER[slip] for slip in slips if slip in _OTHER)
    return _updated(Case("", {"seed": seed, "sizes": sizes}), trunk, *others)[1]


def _slipped(slip: str) -> Callable[[Case, Observation], bool]:
    return lambda case, seen: any(slip in slips for slips in _slips(case, seen))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, result = seen[0]
    updates = len(case.given["sizes"])
    yield (
        f"{updates} updates took {result['forwards'][0]} forwards of the trunk. A forward for each loss would have "
        f"taken {2 * updates}. Both gradients were there before a step, so no pass met a weight that a step had moved."
    )


EXERCISE = Exercise(
    id="two_updates",
    title="Repair a step between two passes",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=4,
    call="two_updates(trunk, heads, optimizers, inputs, targets)",
    cases=_cases,
    judge=_judge,
    hints=(
        "A step writes the weights that the second pass needs. So which comes first: all steps, or all passes?",
        "Both losses send a gradient to the trunk, and .grad adds them up. Each optimizer wants its own loss's "
        "gradient alone, so the two must be held apart until their steps.",
        "Call torch.autograd.grad once for each loss, on the trunk's and the head's parameters; the first call "
        "retains. Then, optimizer by optimizer: put its gradients into .grad of its parameters, and step.",
    ),
    misconceptions=(
        Misconception(
            "gradients mixed",
            "Both optimizers moved the trunk by the sum of the two gradients. Each should use its own loss's alone.",
            _slipped("gradients mixed"),
        ),
        Misconception(
            "the first gradient left over",
            "The second optimizer moved the trunk by the sum of the two gradients. It should use its own loss's alone.",
            _slipped("the first gradient left over"),
        ),
        Misconception(
            "the second loss cut off",
            "The second optimizer left the trunk where it was: no gradient of the second loss was there, as where a "
            "cut keeps it from the trunk. Both losses should move the trunk.",
            _slipped("the second loss cut off"),
            hint="Does a graph lead from the second loss to the trunk's parameters?",
        ),
        Misconception(
            "the second gradient for both",
            "Both optimizers moved the trunk by the gradient of the second loss. So it is where the first gradient is "
            "kept as the tensors of .grad: the second pass writes into the same ones. Keep clones, or put None into "
            ".grad before that pass.",
            _slipped("the second gradient for both"),
            hint="Which tensors does the second pass write to? Compare what you kept of the first, before and after.",
        ),
        Misconception(
            _FIRST_ON_TOP,
            "What .grad held from the call before counts in the first optimizer's step: your pass for the first loss "
            "adds to it. The second optimizer's gradients are right.",
            _slipped(_FIRST_ON_TOP),
            hint="What is in .grad when your function is called for the second time?",
        ),
        Misconception(
            "a forward with new weights",
            "Your second gradient belongs to weights that the first step had already moved.",
            _slipped("a forward with new weights"),
        ),
        Misconception(
            "heads never cleared",
            "The heads moved by all gradients since your function was first called: their .grad was never cleared.",
            _slipped("heads never cleared"),
            hint="What is in a head's .grad when your function is called for the second time?",
        ),
        Misconception(
            _NOTHING_CLEARED,
            "Each optimizer moved by all gradients since your function was first called, in the trunk by those of both "
            "losses: no .grad was cleared, and none was held apart.",
            _slipped(_NOTHING_CLEARED),
            hint="What is in .grad when your function is called for the second time?",
        ),
        Misconception(
            "retained to the end",
            "Your second pass through the trunk retained as well, though it was the last one there.",
            lambda case, seen: (
                seen["kept"] != 0 and not seen["recorded"] and seen["forwards"] == [3, 3, 3] and seen["passes"] == 6
            ),
        ),
    ),
    debrief=_debrief,
)
