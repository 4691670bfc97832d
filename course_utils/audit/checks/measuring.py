"""What a script measures of a model, and keeps as its best: read at the end, in what ran."""

from __future__ import annotations

from typing import ClassVar

from course_utils.audit.bests import bests
from course_utils.audit.bootstraps import bootstraps
from course_utils.audit.bounds import bounds, class_axes
from course_utils.audit.reading import Reading
from course_utils.audit.stretched import stretched
from course_utils.audit.tallies import tallies
from course_utils.audit.validations import augmented, validations


class Measuring(Reading):
    """Bounds, axes, counts and data of an evaluation, and what is chosen by it."""

    codes: ClassVar = (
        "bound-misplaced",
        "class-axis",
        "metric-miscounted",
        "validated-on-training",
        "augmented-evaluation",
        "best-forgotten",
    )
    readers: ClassVar = (bounds, class_axes, bootstraps, tallies, stretched, validations, augmented, bests)
