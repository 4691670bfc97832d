"""What is said about an error or a silent mistake: plain data, and the card that shows it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import PurePath

from course_utils.ask.codes import asked
from course_utils.explain.sections import readable

WIDTH = 100
# With the headline, the word before the fix, the section and the last line these make at most 14.
MAX_PLACES, MAX_WHY, MAX_FIX = 3, 3, 4


@dataclass(frozen=True)
class Place:
    """One line of the learner's code and the part it plays ("saved here", "overwritten here", "needed here")."""

    role: str
    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Explanation:
    """Why an error happened and what to change. `str()` is the card, of at most 14 lines.

    `code` is stable and short; `headline` says what happened, with the learner's names; `where` holds their lines;
    `fix` is code to paste, with their names, the most frequent cause first where several are possible. `certain` is
    true only where the cause was proved. `section` names the notebook and heading that teach it, as in
    "03_graph_freeing#Heading".
    """

    code: str
    headline: str
    where: tuple[Place, ...]
    why: str
    fix: str
    certain: bool
    section: str

    def __str__(self) -> str:
        return f"{self.text}\nMore: %explain in a notebook; %%explain runs a cell again to find the exact line."

    @property
    def text(self) -> str:
        """The card without its last line, which names the magics: for where they cannot be used."""
        lines = [_shortened(f"[{self.code}] {self.headline}", WIDTH + 20)]
        lines += marked(self.where[:MAX_PLACES])
        lines += textwrap.wrap(self.why, WIDTH, max_lines=MAX_WHY, placeholder=" ...")
        fix = self.fix.splitlines()[:MAX_FIX]
        lines += [f"Fix ({self.sureness}):", *(_shortened(f"    {line}", WIDTH + 20) for line in fix)] if fix else []
        lines += textwrap.wrap(f"Taught in {readable(self.section)}.", WIDTH + 30)  # headings hold whole messages
        lines += filter(None, [asked(self.code)])
        return "\n".join(lines)

    @property
    def sureness(self) -> str:
        """Whether the cause was proved: "cause certain" or "cause probable". A fix is one of what would mend it."""
        return f"cause {'certain' if self.certain else 'probable'}"


def located(place: Place) -> str:
    """Return "train.py:12", or "line 12" for a cell of a notebook, whose file has no name that means anything."""
    name = PurePath(place.file).name
    cell = "ipykernel_" in place.file or place.file.startswith("<")
    return f"line {place.line}" if cell or not name else f"{name}:{place.line}"


def marked(places: tuple[Place, ...]) -> list[str]:
    """Lay out lines of code with what each is at its end, in columns."""
    texts = [_shortened(place.text, 64) for place in places]
    left = max((len(located(place)) for place in places), default=0)
    middle = max(map(len, texts), default=0)
    return [
        f"  {located(place):>{left}} | {text:<{middle}}  <- {place.role}"
        for place, text in zip(places, texts, strict=True)
    ]


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 4]} ..."
