"""The memory of one run over time, as plain data."""

from __future__ import annotations

from typing import Any

import msgspec

from course_utils.graph.owners import GRADIENTS, ITSELF, OUTSIDE
from course_utils.graph.trace import shortened


class Sample(msgspec.Struct, frozen=True, gc=False):
    """The bytes alive after `operation` operations, one number for each of the timeline's owners.

    `in_backward` says whether a backward pass ran the last of them.
    """

    operation: int
    bytes: tuple[int, ...]
    in_backward: bool

    @property
    def total(self) -> int:
        """Bytes of all owners."""
        return sum(self.bytes)


class Timeline(msgspec.Struct, frozen=True):
    """The bytes alive during one run, by the part of the model that made them.

    `owners` are names as in `named_modules`, then "the model itself" (what the model's own forward does between
    its parts), "outside" (what ran outside the model) and "gradients" (what a backward pass made: gradients, and
    what computing them takes). `samples` are in order of time and end with `end`; of a long run some are left out,
    the highest never. `forward` is the moment before the first backward pass, or where there was none the one when
    the function had returned; `end` is after that, when its result is dropped too. `passes` tells for each backward
    pass how many operations had run before it.

    A Timeline holds numbers and names only; it keeps no tensor alive.
    """

    owners: tuple[str, ...]
    samples: tuple[Sample, ...]
    forward: Sample
    peak: Sample
    end: Sample
    passes: tuple[int, ...]
    operations: int

    def merged(self, depth: int) -> Timeline:
        """Return a timeline in which parts whose names agree in the first `depth` words are one owner."""
        names = [_outer(name, depth) for name in self.owners]
        kept = tuple(dict.fromkeys(names))
        places = [kept.index(name) for name in names]

        def merge(sample: Sample) -> Sample:
            sums = [0] * len(kept)
            for place, size in zip(places, sample.bytes, strict=True):
                sums[place] += size
            return Sample(sample.operation, tuple(sums), sample.in_backward)

        return msgspec.structs.replace(
            self,
            owners=kept,
            samples=tuple(map(merge, self.samples)),
            forward=merge(self.forward),
            peak=merge(self.peak),
            end=merge(self.end),
        )

    def __str__(self) -> str:
        scale, unit = unit_for(self.peak.total)
        moments = (self.forward, self.peak, self.end)
        head = (f"{unit} alive", "when forward ended", "at the peak", "at the end")
        rows = [
            (name, *(amount(moment.bytes[place], scale) for moment in moments))
            for place, name in enumerate(self.owners)
        ]
        rows.append(("total", *(amount(moment.total, scale) for moment in moments)))
        width = max(len(row[0]) for row in (head, *rows))
        columns = [max(len(row[place]) for row in (head, *rows)) for place in (1, 2, 3)]
        lines = [
            "  ".join([row[0].ljust(width), *(text.rjust(size) for text, size in zip(row[1:], columns, strict=True))])
            for row in (head, *rows)
        ]
        shown = [lines[0], *([shortened(lines[1:-1], "owners")] if self.owners else []), lines[-1], repr(self)]
        return "\n".join(shown)

    def __repr__(self) -> str:
        if not self.operations:
            return "Timeline of 0 operations: no tensor was made"
        count = "1 operation" if self.operations == 1 else f"{self.operations:,} operations"
        where = "in a backward pass" if self.peak.in_backward else "in a forward pass"
        peak = f"the peak of {self.peak.total:,} bytes came after operation {self.peak.operation:,}, {where}"
        return f"Timeline of {count}: {peak}; {self.end.total:,} bytes are left at the end"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def unit_for(largest: int) -> tuple[int, str]:
    """Return the bytes and the name of the unit in which sizes up to `largest` bytes read well."""
    if largest < 10_000:
        return 1, "bytes"
    return (1_000, "kB") if largest < 10_000_000 else (1_000_000, "MB")


def amount(size: int, scale: int) -> str:
    """Return bytes as text in a unit of `scale` bytes; fractions of a unit have one digit."""
    return f"{size:,}" if scale == 1 else f"{size / scale:,.1f}"


def _outer(name: str, depth: int) -> str:
    return name if name in (ITSELF, OUTSIDE, GRADIENTS) else ".".join(name.split(".")[:depth])
