"""From an answer to a verdict: the one place where case, observer and judge meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from course_utils.checks.blame import raised_by_learner
from course_utils.checks.data import Case, Observation, Raised, TimedOut, decode, encode
from course_utils.checks.exercise import Exercise, Finding, Misconception, Outcome, Seen, Verdict, unusable
from course_utils.checks.guard import guarded
from course_utils.checks.observers.lookup import Observer
from course_utils.checks.observers.realising import realising
from course_utils.checks.settings import LEFT, changed_since, left_changed, settings
from course_utils.checks.timelimit import TimeUp, time_limit
from course_utils.explain.crossing import heard

SECONDS = 5.0
SEED = 20260101

# The finding by which a judge says that a part of the answer is not there yet: then the exercise is not attempted.
ATTEMPTED = "attempted"


def examine(
    exercise: Exercise, observer: Observer, answer: object, seed: int = SEED, seconds: float = SECONDS
) -> Verdict:
    """Try an answer in every case and judge what was seen.

    Raises nothing for whatever the answer does, except KeyboardInterrupt, which is the learner's own stop.
    """
    if answer is ...:
        message = f"`{exercise.name}` still holds `...`. Put your answer there, run that cell, then this check again."
        return Verdict(exercise.id, "not attempted", exercise.points, (message,))
    pairs: list[tuple[Case, Seen]] = []
    warnings: dict[str, None] = {}
    with guarded(seed):  # cases and judges use autograd, too, whatever mode the session is in
        problem = tried(lambda: unusable(exercise.name, exercise.call, answer), seconds)
        if isinstance(problem, str):
            return Verdict(exercise.id, "incorrect", exercise.points, (problem,), (Finding("kind", False, problem),))
        run = answer if exercise.call == exercise.name else realising(answer)
        for case in exercise.cases(seed):
            seen, caught = observe(observer, run, case, seed, seconds)
            pairs.append((case, seen))
            warnings |= dict.fromkeys(caught)
            if isinstance(seen, TimedOut):
                break
        verdict = judge(exercise, pairs, tuple(warnings))
        return replace(verdict, debrief=_debrief(exercise, pairs)) if verdict.outcome == "correct" else verdict


def observe(observer: Observer, answer: object, case: Case, seed: int, seconds: float) -> tuple[Seen, list[str]]:
    """Run the learner's code in one case. The half that a grader puts into its sandbox."""
    # Given and seen cross as bytes here too, so that nothing but plain data can ever reach a judge.
    inside = Case(case.name, decode(encode(case.given)))
    with guarded(seed) as warnings:
        before = settings()
        seen = tried(lambda: observer(answer, inside), seconds)
        if isinstance(seen, dict) and (left := changed_since(before)):
            seen[LEFT] = left
    return seen, warnings


@cache
def warm_up() -> None:
    """Let PyTorch import what its first `grad` with a seed imports. A grader does so once, before it forks."""
    with guarded(SEED):
        x = torch.ones(1, requires_grad=True)
        torch.autograd.grad(x * x, x, torch.ones(1))


def tried(run: Callable[[], Any], seconds: float) -> Any:
    """Return what `run` returns, or how it ended, as plain data in either case."""
    try:
        with time_limit(seconds):
            message = encode(run())
    except TimeUp:
        message = encode(TimedOut(seconds))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit and the like from learner code end a case, not the session
        message = encode(raised_by_learner(error))
    return decode(message)


def judge(exercise: Exercise, pairs: Iterable[tuple[Case, Seen]], warnings: tuple[str, ...] = ()) -> Verdict:
    """Turn what was seen in each case into a verdict without a debrief. Trusted and pure: no learner code runs here."""
    findings: list[Finding] = []
    failed: list[tuple[Case, Seen, set[str]]] = []  # with the properties whose findings failed
    raised: Raised | None = None
    pairs = list(pairs)
    for case, seen in pairs:
        aside: list[Finding] = []  # what no misconception is about
        if isinstance(seen, TimedOut):
            message = f"Your code was still running after {seen.seconds:g} seconds and was stopped."
            here = [Finding("ends", False, message)]
        elif isinstance(seen, Raised):
            here = [Finding("runs", False, _exception(seen))]
            raised = raised or seen
        else:
            here = _judged(exercise, case, seen)
            if all(finding.ok for finding in here):
                aside = list(left_changed(seen))
        if not all(finding.ok for finding in here):
            failed.append((case, seen, {finding.prop for finding in here if not finding.ok}))
        findings += [f if f.ok else replace(f, message=_in_case(f.message, case)) for f in (*here, *aside)]
    if all(finding.ok for finding in findings):
        return Verdict(exercise.id, "correct", exercise.points, (), tuple(findings), (), warnings)
    unjudged = any(finding.prop == "judged" for finding in findings)
    known = () if unjudged else exercise.misconceptions
    held = [wrong for wrong in known if _holds(wrong, failed)]
    first: dict[str, str] = {}
    for finding in findings:
        if not finding.ok:
            first.setdefault(finding.prop, finding.message)
    messages = (*(wrong.message for wrong in held), *first.values())
    names = tuple(wrong.name for wrong in held)
    outcome: Outcome = "error" if raised is not None and raised is failed[0][1] else "incorrect"
    if ATTEMPTED in first:
        outcome, messages = "not attempted", (first[ATTEMPTED],)
    withheld = tuple(dict.fromkeys(finding.withheld for finding in findings if finding.withheld and not finding.ok))
    return Verdict(exercise.id, outcome, exercise.points, messages, tuple(findings), names, warnings, withheld)


def _judged(exercise: Exercise, case: Case, seen: Observation) -> list[Finding]:
    try:
        return list(exercise.judge(case, seen))
    except Exception as error:  # forged data, or a session in which the learner's code changed PyTorch itself
        message = (
            f"The check itself failed on your answer ({type(error).__name__}). If your code changes PyTorch or the "
            "course, restart the kernel. Otherwise the check has a bug: please report it with your answer."
        )
        return [Finding("judged", False, message)]


def _debrief(exercise: Exercise, pairs: Iterable[tuple[Case, Seen]]) -> tuple[str, ...]:
    try:
        return tuple(exercise.debrief([(case, seen) for case, seen in pairs if isinstance(seen, dict)]))
    except Exception:  # forged data: the answer is judged, only there is nothing to tell of it
        return ()


def _holds(wrong: Misconception, failed: Sequence[tuple[Case, Seen, set[str]]]) -> bool:
    told = [_explains(wrong, *it) for it in failed]
    return any(told) and all(fits is None or fits for fits in told)


def _explains(wrong: Misconception, case: Case, seen: Seen, props: set[str]) -> bool | None:
    try:
        return wrong.explains(case, seen, props)
    except Exception:  # forged data, which no misconception explains
        return False


def _exception(seen: Raised) -> str:
    message = f": {seen.message}" if seen.message and seen.message != "None" else ""
    message = message.replace("\n", "\n    ")
    where = f"\n    line {seen.line_number}: {seen.line}" if seen.line else ""
    known = heard(seen.explanation) if seen.explanation is not None else None
    meaning = f"\n{known.text}" if known is not None else ""
    return f"Your code raised {seen.kind}{message}{where}{meaning}"


def _in_case(message: str, case: Case) -> str:
    first, newline, rest = message.partition("\n")
    colon = ":" if first.endswith(":") else ""
    return f"{first.removesuffix(':')} (case: {case.name}){colon}{newline}{rest}" if case.name else message
