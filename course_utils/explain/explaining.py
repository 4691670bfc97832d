"""`explain`: from an error or a warning to the card that says what it means here."""

from __future__ import annotations

import warnings

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.families import RULES
from course_utils.explain.fixes import in_own_names
from course_utils.explain.rerun import Writes
from course_utils.explain.situation import Situation, situation_of

# How far back an error is followed to the one that it was raised from.
MAX_CAUSES = 5


def explain(error: BaseException | warnings.WarningMessage) -> Explanation | None:
    """Return what an error or warning of PyTorch's means in the learner's own lines and names.

    `error` is an exception that was caught, with its traceback, or a `warnings.WarningMessage`. The cause is looked
    for in the frames of the traceback and in the graph that is still there; of a graph at most 5,000 nodes are looked
    at, nothing is run, and nothing is kept. Returns None where nothing specific can be said: for anything that is not
    PyTorch's, for errors that the learner's own code raised, and for what it does not know. Never raises.
    """
    try:
        return explained(error)
    except Exception:
        return None


def explained(error: object, writes: Writes | None = None) -> Explanation | None:
    """Do what `explain` does, but raise where that fails: the extension says so in one line."""
    with torch._C.DisableTorchFunction():  # a subclass of the learner's, or a mode, sees nothing of this
        return _explained(error, writes)


def _explained(error: object, writes: Writes | None) -> Explanation | None:
    for _ in range(MAX_CAUSES):
        situation = situation_of(error)
        if situation is not None:
            situation.writes = writes
        found = None if situation is None else by_rule(situation)
        cause = getattr(error, "__cause__", None)
        if found is not None or cause is None:
            return found
        error = cause
    return None


def by_rule(situation: Situation) -> Explanation | None:
    """Return what the first rule that fits says."""
    for rule in RULES:
        found = rule.applied(situation)
        if found is not None:
            return in_own_names(found, situation)
    return None
