"""What a training within a training is measured by: read at the end, in what ran."""

from __future__ import annotations

from typing import ClassVar

from course_utils.audit.events import Pass
from course_utils.audit.inner_steps import outer_losses
from course_utils.audit.reading import Reading


class Adapting(Reading):
    """The losses after inner steps."""

    codes: ClassVar = ("adaptation-unmeasured",)
    readers: ClassVar = (outer_losses,)

    def pass_ended(self, event: Pass) -> None:
        if event.spot is not None and not self.seen.spots:  # weights that are called as plain tensors
            self.seen.spots.add(event.spot)
