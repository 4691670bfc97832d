"""Objectives, averages and adapters that work against the training: read at the end, or looked at there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

import torch

from course_utils.audit.book import Slot, listed
from course_utils.audit.check import Found
from course_utils.audit.classes import class_source
from course_utils.audit.lines import Spot, is_learners
from course_utils.audit.objectives import focal, minimised, unsquashed
from course_utils.audit.placing import along_batch
from course_utils.audit.reading import Reading
from course_utils.audit.source import assignments_to
from course_utils.audit.swaps import left_in
from course_utils.audit.tables import other_tables

_ADAPTERS = re.compile(r"lora|adapter|low_?rank", re.I)


class Composing(Reading):
    """What is minimised, what is evaluated in the model's place, tables of others, and adapters that never learn."""

    codes: ClassVar = (
        "score-minimised",
        "overlap-of-scores",
        "focal-reversed",
        "average-left-in",
        "adapter-frozen",
        "other-table",
        "positions-of-batch",
    )
    readers: ClassVar = (minimised, unsquashed, focal, left_in, other_tables, along_batch)

    def found(self) -> Iterator[Found]:
        yield from super().found()
        frozen = list(self._frozen_adapters()) if self.clock.steps else []
        if frozen:
            where = self._line(frozen[0][1])
            slots = [slot for slot, _ in frozen]
            yield self.say(
                "adapter-frozen",
                where,
                f"adapters are frozen together with what they adapt: {listed(slots)}",
                "The second factor of an adapter begins with zeros. Frozen as it is, the product stays 0, and the "
                "model is the one that it was: only what stands behind the adapters is trained.",
                'p.requires_grad = "lora" in name  # or freeze the model before the adapters are put in',
                certain=True,
                times=len(slots),
                about={slot.key for slot in slots},
                names=[slot.name for slot in slots],
            )

    def _frozen_adapters(self) -> Iterator[tuple[Slot, str]]:
        """Yield the zero factors of adapters that no step can move, with the file of their class."""
        for model in self.book.models.values():
            module = model.ref()
            for name, part in module.named_modules() if module is not None else ():
                own = dict(part.named_parameters(recurse=False))
                for key, parameter in own.items():
                    named = _ADAPTERS.search(f"{name}.{key} {type(part).__name__}")
                    slot = self.book.find(parameter)
                    if not named or slot is None or parameter.requires_grad or parameter.dim() < 2:
                        continue
                    if not slot.received and not bool(torch.count_nonzero(parameter)):
                        yield slot, class_source(type(part))[1]

    def _line(self, file: str) -> Spot | None:
        """Return the first line that freezes or thaws, in the file of a class or in what ran."""
        files = [file] if file and is_learners(file) else sorted({spot.file for spot in self.seen.spots})
        found = [it for name in files for it, _ in assignments_to(name, ("requires_grad", "requires_grad_"))]
        return found[0] if found else None
