"""Judging `checkup`: write the checklist as a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from torch import nn

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Case, Observation, Value, plain
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.remembered import remembered
from course_utils.checks.scenes.lesson_09_practical_checklist.checkup import patient

_KINDS = ("no_gradient", "not_in_optimizer", "frozen_but_changed", "not_finite")

_MIDDLE = ["middle.weight", "middle.bias"]

_LAST = ["last.weight", "last.bias"]

_ALL = ["first.weight", "first.bias", *_MIDDLE, *_LAST, "gain.0.0.by"]

# What is wrong in each scene, worked out by hand.
_PATIENTS: dict[str, tuple[str, dict[str, list[str]]]] = {
    "a healthy step": ("healthy", {}),
    "a layer that is left out": ("skipped", {"no_gradient": _MIDDLE}),
    "an old gradient on a layer that is left out": ("stale", {"no_gradient": _MIDDLE}),
    "a step that clears at its end": ("cleared at the end", {"no_gradient": ["middle.bias"]}),
    "an optimizer made too early": ("replaced", {"not_in_optimizer": _LAST}),
    "an optimizer without one bias": ("left out: first.bias", {"not_in_optimizer": ["first.bias"]}),
    "a frozen layer": ("frozen", {}),
    "a frozen layer that moves, and one that is left out": (
        "frozen and moving",
        {"frozen_but_changed": ["first.weight"], "no_gradient": _MIDDLE},
    ),
    "a frozen layer that is written through .data": (
        "frozen, moved by data",
        {"frozen_but_changed": ["first.weight", "middle.bias"]},
    ),
    "a frozen layer whose rows are exchanged": (
        "frozen, rows exchanged",
        {"frozen_but_changed": ["first.weight", "first.bias"]},
    ),
    "a step that adds to an old NaN in .grad": ("old NaN", {}),
    "gradients that are huge": ("huge", {}),
    "infinity in the first of two passes": ("two passes", {"not_finite": ["middle.bias"]}),
    "infinity in the first of two passes that add": ("two passes, adding", {"not_finite": ["middle.bias"]}),
    "NaN in the second of two passes": ("two passes, then NaN", {"not_finite": ["middle.bias"]}),
    "a root of zero times 0": ("root, times 0", {"not_finite": ["middle.bias"]}),
    "a root of zero": ("root", {"not_finite": ["middle.bias"]}),
    "a root of zero that is covered up": ("root, hidden", {"not_finite": ["middle.bias"]}),
    "two layers with one weight": ("tied", {}),
    "two layers with one weight that is left out": ("tied, left out", {"not_in_optimizer": ["first.weight"]}),
    "a model with a hook and a part that evaluates": ("with hooks", {}),
    "a gradient of zeros": ("rounded", {}),
    "an optimizer with two groups": ("two groups", {}),
    "an optimizer for a copy of the model, which shares memory with it": ("a copy is held", {"not_in_optimizer": _ALL}),
    "a frozen layer that the optimizer does not hold": ("frozen, not held", {}),
    "a step that raises": ("healthy", {}),
    "a step that raises what is no Exception": ("with hooks", {}),
}

# A step that writes in place over what arrived.
_HIDDEN = "root, hidden"

_RAISES = {"a step that raises": "OwnError", "a step that raises what is no Exception": "Stopped"}


def _cases(seed: int) -> list[Case]:
    return [
        Case(name, {"seed": seed + n, "scene": scene, "raises": _RAISES.get(name, "")})
        for n, (name, (scene, _)) in enumerate(_PATIENTS.items())
    ]


@remembered
def _stepped(case: Case) -> dict[str, nn.Parameter]:
    """Return the model's parameters by name, as one step leaves them."""
    model, _, step = patient(case)
    step()
    return dict(model.named_parameters())


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    calls = seen["calls"]
    yield Finding("calls", calls == 1, f"Your function called step() {calls} times; once is right.")
    if case.given["raises"]:
        text = "step() raised, and your function did not let the exception through."
        yield Finding("raised", seen["raised"] is True or calls == 0, text)
    else:
        yield from _report(seen["returned"], _PATIENTS[case.name][1])
    after = _stepped(case)
    right = seen["parameters"] == {name: plain(it) for name, it in after.items()}
    yield Finding("step", right, "After your function the parameters are not what step() makes them.")
    right = seen["gradients"] == {name: plain(it.grad) for name, it in after.items()}
    yield Finding("grad", right, "After your function .grad is not what step() leaves there.")
    more = seen["hooks"]
    what = f"left {more} {'hook' if more == 1 else 'hooks'} behind" if more > 0 else "removed hooks of others"
    yield Finding("hooks", more == 0, f"Your function {what}.")
    yield Finding("flags", seen["flags"] is True, "Your function changed which parameters require a gradient.")
    yield Finding("modes", seen["modes"], "After your function a part of the model is in another mode than before.")


def _report(received: Value, right: dict[str, list[str]]) -> Iterator[Finding]:
    if not isinstance(received, dict) or set(received) != set(_KINDS):
        what = (
            f"a dict with the keys {listed(received)}"
            if isinstance(received, dict) and received
            else describe(received)
        )
        yield Finding("keys", False, f"You returned {what}; expected a dict with the keys {listed(_KINDS)}.")
        return
    for kind in _KINDS:
        names = received[kind]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            yield Finding(kind, False, f"{kind} should be a list or a set of names; it is {describe(names)}.")
            continue
        wanted = set(right.get(kind, []))
        extra, missing = set(map(str, names)) - wanted, wanted - set(map(str, names))
        belongs = "does not belong there" if len(extra) == 1 else "do not belong there"
        text = f"{kind} names {listed(sorted(extra))}, which {belongs}." if extra else ""
        text += f"{' ' if extra else ''}{kind} lacks {listed(sorted(missing))}." if missing else ""
        yield Finding(kind, not text, text)
        double = len(names) != len(set(map(str, names)))
        yield Finding("once", not double, f"{kind} names a parameter more than once.")


def _reported(seen: Observation, kind: str) -> set[str]:
    returned = seen["returned"]
    names = returned.get(kind) if isinstance(returned, dict) else None
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _shown(case: Case) -> dict[str, set[str]]:
    """Return what .grad shows when the step is over: where nothing stands, and where no finite number does."""
    grads = {name: it.grad for name, it in _stepped(case).items() if it.requires_grad}
    return {
        "no_gradient": {name for name, grad in grads.items() if grad is None},
        "not_finite": {name for name, grad in grads.items() if grad is not None and not bool(grad.isfinite().all())},
    }


def _misleads(case: Case) -> bool:
    right = _PATIENTS[case.name][1]
    return any(names != set(right.get(kind, [])) for kind, names in _shown(case).items())


def _read_off(case: Case, seen: Observation) -> bool | None:
    """Tell a report that holds what .grad shows after the step, where that is not what arrived.

    It is None where gradients that a hook has kept show the same, as they share their memory with .grad.
    """
    same = all(_reported(seen, kind) == names for kind, names in _shown(case).items())
    told = isinstance(seen["returned"], dict) and same and _misleads(case)
    return None if told and case.given["scene"] == _HIDDEN else told


def _misses(*scenes: str) -> Callable[[Case, Observation], bool]:
    """Tell a report that misses what is not finite, in these scenes."""

    def seen(case: Case, it: Observation) -> bool:
        right = _PATIENTS[case.name][1].get("not_finite", [])
        return case.given["scene"] in scenes and not _reported(it, "not_finite") & set(right)

    return seen


def _first_group(case: Case, seen: Observation) -> bool:
    """Tell a report in which some of what the optimizer holds is lacking, and all of that is in a later group."""
    model, optimizer, _ = patient(case)
    extra = _reported(seen, "not_in_optimizer") - set(_PATIENTS[case.name][1].get("not_in_optimizer", []))
    later = {id(it) for group in optimizer.param_groups[1:] for it in group["params"]}
    return bool(extra) and extra <= {name for name, it in model.named_parameters() if id(it) in later}


def _zeros_are_none(case: Case, seen: Observation) -> bool:
    """Tell a report in which nothing arrived where zeros did."""
    extra = _reported(seen, "no_gradient") - set(_PATIENTS[case.name][1].get("no_gradient", []))
    zeros = {name for name, it in _stepped(case).items() if it.grad is not None and not bool(it.grad.any())}
    return bool(extra) and extra <= zeros


def _cleared_before(case: Case, seen: Observation) -> bool:
    """Tell gradients that are those of a step before which every .grad was cleared, where it does not clear."""
    model, _, step = patient(case)
    model.zero_grad()
    step()
    alone = {name: plain(it.grad) for name, it in model.named_parameters()}
    return bool(seen["gradients"] == alone != {name: plain(it.grad) for name, it in _stepped(case).items()})


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    fooled = [case.name for case, _ in seen if not case.given["raises"] and _misleads(case)]
    yield f"Your function was tried on {len(seen)} steps, {len(_RAISES)} of which raise. Nothing of it was left behind."
    yield f"What stands in .grad after the step misleads in {len(fooled)} of them: {listed(fooled)}."


EXERCISE = Exercise(
    id="checkup",
    title="Write the checklist as a function",
    lesson=LESSON,
    difficulty=5,
    minutes=25,
    points=4,
    call="checkup(model, optimizer, step)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Two of the four can be read off without running anything, or by comparing before and after. For the other "
        "two, what stands in .grad after the step does not tell what arrived.",
        "parameter.register_hook(function) calls the function with each gradient that arrives there, before it is "
        "added to what stands in .grad. It cannot be put on a parameter that requires none. Compare objects with the "
        "optimizer's by id().",
        "Before: ids of all tensors in optimizer.param_groups; copies of the frozen parameters; a hook on every other "
        "parameter, which notes its name, and whether the gradient that it is given is finite everywhere. Then step() "
        "inside try, and remove all hooks in finally. After: compare the frozen ones with their copies.",
    ),
    misconceptions=(
        Misconception(
            ".grad after the step",
            "Your report goes by what .grad holds. When the step is over that may have been cleared or mended, and at "
            "any time it may hold what an earlier pass left.",
            _read_off,
        ),
        Misconception(
            "kept without a copy",
            "Where the step wrote into .grad in place, after a gradient with NaN had arrived, your report misses it. "
            "What a hook is given may share its memory with .grad: look at it inside the hook, or keep a clone.",
            _misses(_HIDDEN),
        ),
        Misconception(
            "the last pass",
            "Of a step with two passes, of which the first brought infinity, your not_finite says nothing: a later "
            "pass must not take back what an earlier one has shown.",
            _misses("two passes", "two passes, adding"),
        ),
        Misconception(
            "the first group",
            "You report as not held what the optimizer holds in a group after its first one. Go through all of "
            "optimizer.param_groups.",
            _first_group,
        ),
        Misconception(
            "zeros are none",
            "Where a gradient of zeros arrived, you report that none did. Zeros are a gradient.",
            _zeros_are_none,
        ),
        Misconception(
            "cleared before the step",
            "What stood in .grad before the step was gone when it ran, and this step adds to what stands there. You "
            "may look, and not clear.",
            _cleared_before,
        ),
        Misconception(
            "hooks left behind",
            "Hooks of yours are still there when your function has ended. They must go even where step() raises.",
            lambda case, seen: seen["hooks"] > 0,
        ),
        Misconception(
            "frozen is not missing",
            "You reported a frozen layer for what only concerns parameters that require a gradient.",
            lambda case, seen: (
                case.given["scene"].startswith("frozen")
                and bool(
                    (_reported(seen, "no_gradient") | _reported(seen, "not_in_optimizer"))
                    & {"first.weight", "first.bias"}
                )
            ),
        ),
    ),
    reaches=("register_prehook", "next_functions"),
)
