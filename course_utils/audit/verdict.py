"""From what the checks found to what is said: one cause hides what follows from it."""

from __future__ import annotations

from collections.abc import Iterable

from course_utils.audit.check import Found
from course_utils.audit.events import Clock
from course_utils.audit.finding import Finding
from course_utils.audit.rules import RULES

_WITHOUT_PASSES = (
    "step-without-backward",
    "step-first",
    "misspelt-freeze",
    "freezes-nothing",
    "setting-ignored",
    "no-effect",
    "scheduler-first",
    "schedule-too-fast",
    "schedule-too-slow",
    "schedule-of-other",
    "hooks-pile-up",
    "nothing-loaded",
    "never-drawn",
    "iterator-spent",
    "name-fits-nothing",
    "schedule-doubled",
    "rate-zero",
    "not-saved",
    "one-member",
    "trained-elsewhere",
)
_OF_STEPS = (
    "no-zero-grad",
    "zero-before-step",
    "step-first",
    "not-in-optimizer",
    "other-tensors",
    "never-reached",
    "frozen",
    "frozen-moves",
    "left-in-eval",
    "eval-in-train",
    "not-divided",
    "leftover-window",
    "wrong-loss",
    "gan-detach",
    "scheduler-first",
    "schedule-too-fast",
    "schedule-too-slow",
    "schedule-of-other",
    "step-scaled",
    "clip-after-step",
    "state-is-alias",
    "update-lost",
    "clip-in-window",
    "schedule-doubled",
    "rate-zero",
    "rows-move",
    "held-out-trained",
    "optimizer-anew",
    "held-twice",
    "rate-far-off",
    "summed-loss",
    "sorted-batches",
    "plateau-direction",
    "decay-on-vectors",
    "seed-repeats",
    "ratio-one",
    "reward-minimised",
    "positive-repelled",
    "wrong-way",
    "other-sample",
    "wrong-return",
    "worst-kept",
    "noise-once",
    "tie-broken",
    "stale-statistics",
    "units-alike",
    "closure-draws",
    "state-of-others",
    "target-not-flipped",
    "scaled-apart",
    "selected-by-all",
    "bound-misplaced",
    "class-axis",
    "metric-miscounted",
    "validated-on-training",
    "augmented-evaluation",
    "best-forgotten",
    "bytes-wrap",
    "fitted-again",
    "labels-blended",
    "unmasked-asked",
    "mixed-apart",
    "score-minimised",
    "setting-far-off",
    "focal-reversed",
    "average-left-in",
    "adapter-frozen",
    "overlap-of-scores",
    "pixels-scaled",
    "loader-empty",
    "noise-copied",
    "ids-apart",
    "last-of-loop",
    "ascent-not-undone",
    "members-alike",
    "input-not-held",
    "adaptation-unmeasured",
)


def without_consequences(found: Iterable[Found]) -> list[Finding]:
    """Return the findings that no other explains, each place once.

    A finding explains those that its rule names, where both are about the same things, or where one of them is
    about nothing in particular.
    """
    found = list(found)
    kept: dict[tuple[str, str, int], Finding] = {}
    for one in found:
        if not any(_explains(other, one) for other in found if other is not one):
            place = (one.finding.code, one.finding.file, one.finding.line)
            kept.setdefault(place, one.finding)
    return list(kept.values())


def unseen(clock: Clock) -> dict[str, str]:
    """Return the codes that could not be looked for, as nothing happened that shows them, each with the reason."""
    if not clock.passes:
        return {code: "no backward pass ran" for code in RULES if code not in _WITHOUT_PASSES}
    if not clock.steps:
        return dict.fromkeys(_OF_STEPS, "no step was seen")
    return {}


def _explains(cause: Found, effect: Found) -> bool:
    if effect.finding.code not in RULES[cause.finding.code].hides or cause.finding.level == "note":
        return False
    return not cause.about or not effect.about or bool(cause.about & effect.about)
