"""An explanation as it leaves a sandbox: data of fixed fields and sizes, which nobody has to trust.

Whoever runs untrusted code can make up any of it. So it is only shown, as text, and decides nothing; its section is
looked up by its code, and a code that does not exist makes it nothing at all.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from course_utils.explain.explanation import MAX_PLACES, Explanation, Place
from course_utils.explain.rules import MAX_LENGTH, plain
from course_utils.explain.sections import codes, section

Text = Annotated[str, msgspec.Meta(max_length=MAX_LENGTH)]


class ToldPlace(msgspec.Struct, frozen=True):
    """One line of the learner's. Its file stays behind: a path of the machine that ran it says nothing to a reader."""

    role: Text
    line: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
    text: Text


class Told(msgspec.Struct, frozen=True):
    """An explanation without its section. Decoding refuses what is longer, or of another type."""

    code: Text
    headline: Text
    where: Annotated[tuple[ToldPlace, ...], msgspec.Meta(max_length=MAX_PLACES)]
    why: Text
    fix: Text
    certain: bool


def told(it: Explanation) -> Told:
    """Return what crosses of an explanation, cut to the sizes that decoding allows."""
    places = tuple(
        ToldPlace(plain(place.role), max(0, min(place.line, 1_000_000)), plain(place.text))
        for place in it.where[:MAX_PLACES]
    )
    return Told(it.code, plain(it.headline), places, plain(it.why), plain(it.fix), it.certain)


def heard(it: Told) -> Explanation | None:
    """Return the explanation that crossed, as plain text; None for a code that the course does not have."""
    if it.code not in codes():
        return None
    where = tuple(Place(plain(place.role), "", place.line, plain(place.text)) for place in it.where)
    return Explanation(it.code, plain(it.headline), where, plain(it.why), plain(it.fix), it.certain, section(it.code))
