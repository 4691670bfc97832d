"""Judging `td_loss`: repair a loss that chases itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.func import functional_call, vjp

from course_utils.checks.compare import close, listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_06_detach_vs_no_grad import LESSON
from course_utils.checks.judges.lesson_06_detach_vs_no_grad.taken import NO_GRADIENT, alone
from course_utils.checks.judges.loops import times
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.td_loss import q_networks
from course_utils.checks.scenes.numbers import numbers


def _cases(seed: int) -> list[Case]:
    cases = []
    single, double = torch.float32, torch.float64
    kinds = (
        *(("5 transitions", 5, 0.9, single), ("3 transitions", 3, 1.0, single)),
        *(("5 other transitions", 5, 0.7, single), ("one transition, in double precision", 1, 0.0, double)),
    )
    for number, (name, rows, discount, dtype) in enumerate(kinds):
        own = seed + 10 * number
        generator = torch.Generator().manual_seed(own)
        given: dict[str, Any] = {
            "states": Array.of(numbers(own, rows, 4, dtype=dtype)),
            "actions": Array.of(torch.randint(3, (rows,), generator=generator)),
            "rewards": Array.of(numbers(own + 1, rows, dtype=dtype)),
            "next_states": Array.of(numbers(own + 2, rows, 4, dtype=dtype)),
            "done": Array.of((torch.arange(rows) % 3 == 1).to(dtype)),
        }
        given |= {"seed": own, "discount": discount, "frozen": rows == 3, "low": number == 2}
        if given["low"]:  # beyond what anybody would clip to
            given["rewards"] = Array.of(300 * given["rewards"].tensor())
        cases.append(Case(name, given))
    return cases


def _goals(case: Case, old: bool = True, masked: bool = True, turned: bool = False) -> torch.Tensor:
    """Return what the chosen values should be, one transition after the other."""
    network, target_network = q_networks(case)
    given = {name: case.given[name].tensor() for name in ("rewards", "next_states", "done")}
    with torch.no_grad():
        later = (target_network if old else network)(given["next_states"]).tolist()
    rewards, done = given["rewards"].tolist(), given["done"].tolist()
    return torch.tensor(
        [
            reward + (0.0 if masked and bool(ended) is not turned else case.given["discount"] * max(values))
            for reward, ended, values in zip(rewards, done, later, strict=True)
        ],
        dtype=given["rewards"].dtype,
    )


def _td(case: Case, goals: torch.Tensor) -> tuple[float, list[torch.Tensor]]:
    """Return the loss for fixed goals, and its gradient: each error times the derivative of the chosen value."""
    network, _ = q_networks(case)
    states, actions = case.given["states"].tensor(), case.given["actions"].tensor()
    start = {name: parameter.detach() for name, parameter in network.named_parameters()}
    values, pull, *_ = vjp(lambda parameters: functional_call(network, parameters, (states,)), start)
    rows = torch.arange(len(actions))
    errors = values[rows, actions] - goals
    cotangent = torch.zeros_like(values)
    cotangent[rows, actions] = 2 * errors / len(errors)
    return float(errors.square().mean()), list(pull(cotangent)[0].values())


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    value, gradients = _td(case, _goals(case))
    yield right_value(seen["returned"], torch.tensor(value, dtype=gradients[0].dtype), "The loss")
    graph = seen["graph"] or not alone(seen)
    yield Finding("graph", graph, "The loss has no graph, so no gradient can go through it.")
    yield Finding("untouched", seen["touched"] == [], f"Your function changed {listed(seen['touched'])}.")
    text = f"After your function something is not as it was before: {listed(seen['modes'])}."
    yield Finding("modes", seen["modes"] == [], text)
    yield Finding("batch", seen["batch"], "Your function changed a tensor of the batch.")
    yield Finding("hooks", seen["hooks"], "Your function left a hook on a network, or removed one.")
    yield Finding("graded", not seen["graded"], "Your function changed a .grad. It should return the loss only.")
    measured = isinstance(seen["gradients"], list) and len(seen["gradients"]) == len(gradients)
    yield Finding("graph", measured or not seen["graph"] or seen["touched"] != [], NO_GRADIENT)
    if measured:
        names = [name for name, _ in q_networks(case)[0].named_parameters()]
        for name, mine, right in zip(names, seen["gradients"], gradients, strict=True):
            yield right_value(mine, right, f"The gradient of network's {name}")
        text = "A gradient reaches target_network. The goal should be a constant."
        yield Finding("constant", not seen["old gradients"], text)
    text = "target_network's run was recorded, and nobody needs that graph."
    yield Finding("recorded", not seen["recorded"], text)
    yield Finding("old runs", seen["old runs"] == 1, _ran("target_network", seen["old runs"]))
    yield Finding("runs", seen["runs"] == 1, _ran("network", seen["runs"]))


def _ran(name: str, runs: int) -> str:
    return f"{name} ran {times(runs)}. Expected one run."


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case = seen[0][0]
    right, open_ended = _td(case, _goals(case))[0], _td(case, _goals(case, masked=False))[0]
    yield "Each network ran once, target_network unrecorded, and the gradient reached network alone."
    yield f"Had the goals counted a next state after an end, the first loss would be {open_ended:.2f}, not {right:.2f}."


def _loss_is(case: Case, seen: Observation, **changed: bool) -> bool:
    return close(seen["returned"], _td(case, _goals(case, **changed))[0])


def _gradients_right(case: Case, seen: Observation) -> bool:
    right, received = _td(case, _goals(case))[1], seen["gradients"]
    return isinstance(received, list) and all(close(mine, its) for mine, its in zip(received, right, strict=True))


def _pulled(case: Case, seen: Observation) -> bool:
    """Return whether the goal is pulled towards the value. With a discount of 0 the pull is zero."""
    return bool(seen["pulled"] or (not case.given["discount"] and seen["old gradients"]))


def _none_reaches(seen: Observation) -> bool:
    """Return whether no parameter of network got a gradient."""
    received = seen["gradients"]
    return isinstance(received, list) and bool(received) and all(it is None for it in received)


def _by_network(seen: Observation) -> bool:
    """Return whether network itself gave the values of the next states."""
    return bool(seen["old runs"] == 0 and seen["runs"] > 1)


def _uncounted(case: Case, seen: Observation) -> bool:
    """Return whether something else is wrong, and no loss tells what the goals count: a discount of 0 hides it."""
    return not case.given["discount"] and _by_network(seen)


def _every_pair(case: Case, seen: Observation) -> bool:
    """Tell whether each chosen value was compared with every goal, as shapes (n, 1) and (n,) are."""
    chosen = _values(case).gather(1, case.given["actions"].tensor()[:, None])
    return not _loss_is(case, seen) and close(seen["returned"], (chosen - _goals(case)).square().mean())


def _best_actions(case: Case, seen: Observation) -> bool:
    return not _loss_is(case, seen) and close(seen["returned"], (_values(case).amax(1) - _goals(case)).square().mean())


def _nothing_at_the_end(case: Case, seen: Observation) -> bool | None:
    """Tell whether the goal is 0 where the episode has ended, the reward included; None where the loss is right."""
    goals = _goals(case)
    goals[case.given["done"].tensor().bool()] = 0.0
    return None if _loss_is(case, seen) else close(seen["returned"], _td(case, goals)[0])


def _chosen_by_network(case: Case, seen: Observation) -> bool | None:
    """Tell whether target_network gave the values of the actions that network likes best; None as above."""
    next_states = case.given["next_states"].tensor()
    with torch.no_grad():
        liked, later = (network(next_states) for network in q_networks(case))
    best = later.gather(1, liked.argmax(1, keepdim=True))[:, 0] * (1 - case.given["done"].tensor().to(later.dtype))
    goals = case.given["rewards"].tensor() + case.given["discount"] * best
    return None if _loss_is(case, seen) else close(seen["returned"], _td(case, goals)[0])


def _values(case: Case) -> torch.Tensor:
    result: torch.Tensor = q_networks(case)[0](case.given["states"].tensor()).detach()
    return result


EXERCISE = Exercise(
    id="td_loss",
    title="Repair a loss that chases itself",
    lesson=LESSON,
    difficulty=3,
    minutes=12,
    points=3,
    call="td_loss(network, target_network, batch, discount)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "The loss compares two things. Which of them is to move towards the other, and which is to stay?",
        "Everything that makes the goal runs without recording, and the values of the next states come from the older "
        "copy. Where an episode has ended there is no next state to count.",
        "Under torch.no_grad(): best = target_network(next_states).max(dim=1).values, and goals = rewards + discount * "
        "(1 - done) * best. Outside: the chosen values with their graph, and mse_loss(chosen, goals).",
    ),
    misconceptions=(
        Misconception(
            "cut on the wrong side",
            "No gradient reaches network, whose values are to learn.",
            lambda case, seen: _none_reaches(seen),
        ),
        Misconception(
            "a goal that moves",
            "The loss is right, and its gradient goes into target_network, too: the goal is pulled towards the value.",
            lambda case, seen: _loss_is(case, seen) and _pulled(case, seen) and not _none_reaches(seen),
        ),
        Misconception(
            "recorded for nothing",
            "The loss and its gradients are right, and target_network ran with recording on: what it saved was thrown "
            "away.",
            lambda case, seen: (
                _loss_is(case, seen)
                and _gradients_right(case, seen)
                and seen["recorded"]
                and seen["old gradients"] is False
            ),
        ),
        Misconception(
            "its own judge",
            "Your goals take the values of the next states from network itself, not from target_network.",
            lambda case, seen: (
                _by_network(seen) and (_loss_is(case, seen, old=False) or _loss_is(case, seen, old=False, masked=False))
            ),
        ),
        Misconception(
            "every pair",
            "Your loss compares each chosen value with every goal. Shapes (n, 1) and (n,) broadcast to (n, n): bring "
            "both to one shape.",
            _every_pair,
        ),
        Misconception(
            "the best action's value",
            "Your loss takes the largest value of each state. What is to learn is the value of the action that was "
            "taken.",
            _best_actions,
        ),
        Misconception(
            "nothing at the end",
            "Your goals are 0 where the episode has ended. The reward counts there, too: only the next state does not.",
            _nothing_at_the_end,
        ),
        Misconception(
            "chosen by network",
            "Your goals take the action that network likes best in the next state. Asked for is the best one by "
            "target_network's own values.",
            _chosen_by_network,
        ),
        Misconception(
            "done turned round",
            "Your goals count the next state where the episode has ended, and leave it out where it goes on.",
            lambda case, seen: _loss_is(case, seen, turned=True) and not _loss_is(case, seen),
        ),
        Misconception(
            "after the end",
            "Your goals count a next state where the episode has ended.",
            lambda case, seen: (
                _loss_is(case, seen, masked=False, old=seen["old runs"] != 0)
                and (not _loss_is(case, seen) or _uncounted(case, seen))
            ),
        ),
    ),
)
