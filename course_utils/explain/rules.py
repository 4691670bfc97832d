"""What one family of messages has: rules that say which message they explain, and how a card is put together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.sections import section
from course_utils.explain.situation import Situation

# A headline, a reason and a fix may be so long; the card shows less.
MAX_LENGTH = 600


@dataclass(frozen=True)
class Rule:
    """A kind of error or warning, the text that PyTorch gives it, and the function that explains it.

    `within` is a file of PyTorch's that must be at work where the text alone could be anybody's.
    """

    kind: type[BaseException]
    pattern: str
    explain: Callable[[Situation, re.Match[str]], Explanation | None]
    within: str = ""

    def applied(self, situation: Situation) -> Explanation | None:
        if not issubclass(situation.kind, self.kind):
            return None
        match = re.search(self.pattern, situation.text, re.DOTALL)
        if match is None or (self.within and situation.within(self.within) is None):
            return None
        return self.explain(situation, match)


def card(
    code: str, headline: str, why: str, fix: str, where: Iterable[Place] = (), certain: bool = True
) -> Explanation:
    """Put an explanation together. Everything that quotes the learner's code is made plain text here."""
    places: dict[tuple[str, int], Place] = {}
    for it in where:
        if it.line > 0:
            known = places.get((it.file, it.line))
            role = it.role if known is None or it.role in known.role else f"{known.role}, {it.role}"
            places[it.file, it.line] = Place(role, plain(it.file), it.line, plain(it.text))
    return Explanation(code, plain(headline), tuple(places.values()), plain(why), plain(fix), certain, section(code))


def told(code: str, headline: str, why: str, fix: str) -> Callable[[Situation, re.Match[str]], Explanation]:
    """Return what explains a message whose text names the cause: its groups stand for {0}, {1} in all sentences.

    {0:a} is the first one with its article.
    """

    def explain(s: Situation, m: re.Match[str]) -> Explanation:
        groups = [_Word(it or "") for it in m.groups()]
        where = s.at_start() or s.needed()
        return card(code, headline.format(*groups), why.format(*groups), fix.format(*groups), where)

    return explain


class _Word(str):
    def __format__(self, form: str) -> str:
        return with_article(self) if form == "a" else super().__format__(form)


def with_article(kind: str) -> str:
    """Return "an int" for "int", "a list" for "list"."""
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def plain(text: str) -> str:
    """Return text without control characters other than line ends, and not too long."""
    text = "".join(char if char.isprintable() or char == "\n" else " " for char in text)
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 4]} ..."


def shape_in(text: str) -> str:
    """Return a shape that PyTorch wrote into a message as Python writes it: "(2, 3)" for "[2, 3]"."""
    numbers = re.findall(r"\d+", text)
    return f"({', '.join(numbers)}{',' if len(numbers) == 1 else ''})"
