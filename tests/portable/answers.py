"""Verdicts on right and wrong answers, in this process.

`python -m tests.portable.answers FILE SEED COUNT [LESSON ...]` writes them to FILE as JSON: those on all right answers,
and on COUNT of the wrong ones, drawn by SEED.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

import torch

from course_utils.checks.examine import examine
from course_utils.checks.registry import exercises, observer_for
from tests.answers import MISCONCEIVED, RIGHT, WRONG

# A right answer may be slow on a busy machine. A wrong one may never end.
SECONDS_RIGHT, SECONDS_WRONG = 60, 5


def verdicts(seed: str, count: int, lessons: tuple[str, ...] = ()) -> dict[str, list[Any]]:
    """Return for each answer its outcome, its misconceptions and the first message, by the answer's name."""
    chosen = {name: it for name, it in exercises().items() if not lessons or it.lesson.startswith(lessons)}
    right = {f"{name}, right answer {n}": (name, it) for name in chosen for n, it in enumerate(RIGHT[name], 1)}
    wrong = {f"{name}, {idea!r}": (name, it) for (name, idea), it in MISCONCEIVED.items() if name in chosen}
    wrong |= {f"{name}, wrong answer {n}": (name, it) for name in chosen for n, it in enumerate(WRONG[name], 1)}
    drawn = random.Random(seed).sample(sorted(wrong), min(count, len(wrong)))
    # The first optimizer of a process imports for seconds. Cut off by a time limit, that import would stay half done.
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    found: dict[str, list[Any]] = {}
    for label, (name, answer) in (right | {label: wrong[label] for label in sorted(drawn)}).items():
        seconds = SECONDS_RIGHT if label in right else SECONDS_WRONG
        verdict = examine(chosen[name], observer_for(chosen[name]), answer, seconds=seconds)
        found[label] = [verdict.outcome, sorted(verdict.misconceptions), *verdict.messages[:1]]
    return found


if __name__ == "__main__":
    file, seed, count, *lessons = sys.argv[1:]
    Path(file).write_text(json.dumps(verdicts(seed, int(count), tuple(lessons))), encoding="utf-8")
