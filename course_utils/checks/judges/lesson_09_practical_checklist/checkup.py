"""Judging `checkup`: write the checklist as a function."""

from __future__ import annotations

from collections.abc import Iterator

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Case, Observation, Value, plain
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.lesson_09_practical_checklist.session import session
from course_utils.checks.scenes.lesson_09_practical_checklist.checkup import patient

_KINDS = ("no_gradient", "not_in_optimizer", "frozen_but_changed", "not_finite")

_MIDDLE = ["middle.weight", "middle.bias"]

_LAST = ["last.weight", "last.bias"]

_ALL = ["first.weight", "first.bias", *_MIDDLE, *_LAST]

# What is wrong in each scene, worked out by hand.
_PATIENTS: dict[str, tuple[str, dict[str, list[str]]]] = {
    "a healthy step": ("healthy", {}),
    "a layer that is left out": ("skipped", {"no_gradient": _MIDDLE}),
    "an old gradient on a layer that is left out": ("stale", {"no_gradient": _MIDDLE}),
    "a step that clears at its end": ("cleared at the end", {"no_gradient": _MIDDLE}),
    "an optimizer made too early": ("replaced", {"not_in_optimizer": _LAST}),
    "an optimizer without one bias": ("left out: first.bias", {"not_in_optimizer": ["first.bias"]}),
    "a frozen layer": ("frozen", {}),
    "a frozen layer that moves": ("frozen and moving", {"frozen_but_changed": ["first.weight"]}),
    "a root of zero": ("root", {"not_finite": ["middle.bias"]}),
    "a root of zero, covered up": ("root, hidden", {"not_finite": ["middle.bias"]}),
    "two layers with one weight": ("tied", {}),
    "a gradient of zeros": ("rounded", {}),
    "an optimizer with two groups": ("two groups", {}),
    "an optimizer for a copy of the model": ("a copy is held", {"not_in_optimizer": _ALL}),
    "a frozen layer that the optimizer does not hold": ("frozen, not held", {}),
    "a step that raises": ("healthy", {}),
}


def _cases(seed: int) -> list[Case]:
    return [
        Case(name, {"seed": seed + n, "scene": scene, "raises": name == "a step that raises"})
        for n, (name, (scene, _)) in enumerate(_PATIENTS.items())
    ]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    model, _, step = patient(case)
    step()
    calls = seen["calls"]
    yield Finding("calls", calls == 1, f"Your function called step() {calls} times; once is right.")
    if case.given["raises"]:
        text = "step() raised, and your function did not let the exception through."
        yield Finding("raised", seen["raised"] is True, text)
    else:
        yield from _report(seen["returned"], _PATIENTS[case.name][1])
    after = {name: plain(it) for name, it in model.named_parameters()}
    yield Finding(
        "step", seen["parameters"] == after, "After your function the parameters are not what step() makes them."
    )
    gradients = {name: plain(it.grad) for name, it in model.named_parameters()}
    yield Finding("grad", seen["gradients"] == gradients, "After your function .grad is not what step() leaves there.")
    yield Finding("hooks", seen["hooks"] == 0, f"Your function left {seen['hooks']} hooks behind.")
    yield Finding("flags", seen["flags"] is True, "Your function changed which parameters require a gradient.")
    yield Finding("modes", seen["training"], "After your function a part of the model is in evaluation mode.")
    yield session(seen)


def _report(received: Value, right: dict[str, list[str]]) -> Iterator[Finding]:
    if not isinstance(received, dict) or set(received) != set(_KINDS):
        what = f"a dict with the keys {listed(received)}" if isinstance(received, dict) else describe(received)
        yield Finding("keys", False, f"You returned {what}; expected a dict with the keys {listed(_KINDS)}.")
        return
    for kind in _KINDS:
        names = received[kind]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            yield Finding(kind, False, f"{kind} should be a list or a set of names; it is {describe(names)}.")
            continue
        wanted = set(right.get(kind, []))
        extra, missing = set(map(str, names)) - wanted, wanted - set(map(str, names))
        text = f"{kind} names {listed(sorted(extra))}, which does not belong there." if extra else ""
        text += f"{' ' if extra else ''}{kind} lacks {listed(sorted(missing))}." if missing else ""
        yield Finding(kind, not text, text)
        double = len(names) != len(set(map(str, names)))
        yield Finding("once", not double, f"{kind} names a parameter more than once.")


def _reported(seen: Observation, kind: str) -> set[str]:
    returned = seen["returned"]
    names = returned.get(kind) if isinstance(returned, dict) else None
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


EXERCISE = Exercise(
    id="checkup",
    title="Write the checklist as a function",
    lesson=LESSON,
    difficulty=5,
    minutes=30,
    points=4,
    call="checkup(model, optimizer, step)",
    cases=_cases,
    judge=_judge,
    hints=(
        "Two of the four can be read off without running anything, or by comparing before and after. For the other "
        "two, what stands in .grad after the step does not tell what arrived.",
        "register_post_accumulate_grad_hook on a parameter calls you when a gradient has arrived there. It cannot be "
        "put on a parameter that requires none. Compare objects with the optimizer's by id().",
        "Before: ids of all tensors in optimizer.param_groups; copies of the frozen parameters; a hook on every other "
        "parameter, which notes its name, and whether its .grad is finite. Then step() inside try, and remove all "
        "hooks in finally. After: compare the frozen ones with their copies.",
    ),
    misconceptions=(
        Misconception(
            ".grad after the step",
            "You looked at .grad when the step was over. By then it may have been cleared, or it may be left from an "
            "earlier pass.",
            lambda case, seen: (
                (case.name == "a step that clears at its end" and _reported(seen, "no_gradient") == set(_ALL))
                or (case.given["scene"] == "stale" and _reported(seen, "no_gradient") < set(_MIDDLE))
                or (case.given["scene"] == "root, hidden" and not _reported(seen, "not_finite"))
            ),
        ),
        Misconception(
            "hooks left behind",
            "Hooks of yours are still there when your function has ended. They must go even where step() raises.",
            lambda case, seen: not isinstance(seen["hooks"], int) or seen["hooks"] > 0,
        ),
        Misconception(
            "frozen is not missing",
            "You reported a frozen layer for what only concerns parameters that require a gradient.",
            lambda case, seen: (
                case.given["scene"].startswith("frozen")
                and bool(_reported(seen, "no_gradient") & {"first.weight", "first.bias"})
            ),
        ),
    ),
)
