"""Features that are chosen by the labels of all rows, those that are held out among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import ran
from course_utils.audit.selections import selections

_MOST = 8


class Selecting(Check):
    """Where columns are chosen, and where rows are set aside."""

    codes: ClassVar = ("selected-by-all",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._ran: set[Spot] = set()

    def called(self, event: Call) -> None:
        if len(self._ran) < _MOST:
            self._ran.update(event.spots)

    def found(self) -> Iterator[Found]:
        for file, scope in ran(sorted(self._ran)) if self.clock.steps else ():
            for spot, data, labels, line in selections(file, scope):
                yield self.say(
                    "selected-by-all",
                    spot,
                    f"columns of {data} are chosen or made by {labels} of all rows, and line {line} splits them after",
                    "The labels of the rows that are held out have a say in which columns stay, or are in them. Of "
                    "many columns, some fit those labels by chance, and the mean of a small category is nearly the "
                    "label itself: the score on the held-out rows is too good, and tells nothing.",
                    "split first: choose and compute by x_train and y_train, and apply that to both parts",
                    certain=False,
                    names=(data, labels),
                )
