"""What one student may hand in: so many files and bytes that no class waits for one of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TypeAlias

from course_utils.grading.intake.archives import MAX_RATIO
from course_utils.grading.intake.reading import MAX_REPAIRED

MAX_FILES = 100  # notebooks and zips: the course has twelve lessons
MAX_TOTAL = 100_000_000  # bytes, unpacked
SMALL = 1_000_000  # bytes that may have been packed however well


@dataclass
class _Spent:
    files: int = 0
    size: int = 0
    packed: int = 0
    repaired: int = 0


Student: TypeAlias = tuple[str, int]  # a name, and how far it lies: what may be another's counts for itself


class Budget:
    """What each student has handed in so far. All that lies in a student's folder counts together."""

    def __init__(self) -> None:
        self._spent: dict[Student, _Spent] = defaultdict(_Spent)

    def repairable(self, student: Student) -> int:
        """Return how many bytes of this student's may still be read that are no strict JSON: that takes long."""
        return MAX_REPAIRED - self._spent[student].repaired

    def repaired(self, student: Student, size: int) -> None:
        """Count bytes that were no strict JSON."""
        self._spent[student].repaired += size

    def is_over(self, student: Student) -> bool:
        """Count one more notebook or zip. Say whether it is beyond those that are looked at."""
        self._spent[student].files += 1
        return self._spent[student].files > MAX_FILES

    def overflow(self, student: Student) -> str:
        """Return a sentence on the files that are not looked at, or nothing where all are."""
        files = self._spent[student].files
        if files <= MAX_FILES:
            return ""
        return (
            f"This student handed in {files:,} notebooks and zips. The first {MAX_FILES} are looked at, and no others: "
            "keep those that count."
        )

    def take(self, student: Student, size: int, packed: int) -> str:
        """Count the bytes of a file, and those that it takes packed. Return why it is too much, or nothing."""
        spent = self._spent[student]
        spent.size += size
        spent.packed += packed
        if spent.size > MAX_TOTAL:
            return f"This student handed in more than {MAX_TOTAL // 1_000_000} MB. Keep what counts, without outputs."
        if spent.size > SMALL and spent.size > MAX_RATIO * spent.packed:
            return f"What this student handed in grows more than {MAX_RATIO} times when unpacked, as no notebooks do."
        return ""
