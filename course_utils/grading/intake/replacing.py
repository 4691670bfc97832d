"""Whose results stay: a file that lies elsewhere than the one that was graded may be another student's work."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from course_utils.grading.intake.identity import shown_path
from course_utils.grading.submission import Submission


def from_elsewhere(
    submissions: Iterable[Submission], kept: Mapping[tuple[str, str], str], named: Iterable[Path]
) -> dict[tuple[str, str], str]:
    """Return a sentence for each submission whose student has a result from outside what is named now.

    The keys are student and assignment, as those of `kept`, which says where the file lay whose result is kept. `named`
    are the folders, zips and notebooks that the teacher named: what lies in them may have been handed in again.
    """
    places = [_absolute(shown_path(str(path))) for path in named]
    found = {}
    for one in submissions:
        path = kept.get((one.student, one.assignment))
        if path and not any(_absolute(path).is_relative_to(place) for place in places):
            found[one.student, one.assignment] = f"{one.path}: {one.student}, {one.assignment} is from {path}"
    return found


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 what lies in a zip is no path of the system
