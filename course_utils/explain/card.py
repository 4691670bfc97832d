"""The card as a notebook shows it: HTML with text beside it, and in three lengths."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from course_utils.ask.codes import asked
from course_utils.explain.explanation import MAX_PLACES, Explanation, located
from course_utils.explain.sections import readable
from course_utils.inline import marked

# Only the border is coloured, for any theme; what matters is said in words.
_COLOUR = "#0072B2"
_MORE = "More: <code>%explain</code>; <code>%%explain</code> runs a cell again to find the exact line."


@dataclass(frozen=True)
class Card:
    """An explanation to display. `short` leaves out why it happened."""

    explanation: Explanation
    short: bool = False

    def __str__(self) -> str:
        if not self.short:
            return str(self.explanation)
        it = self.explanation
        fix = it.fix.partition("\n")[0]
        return "\n".join(
            [
                f"[{it.code}] {it.headline}",
                f"Fix ({it.sureness}): {fix}",
                f"Taught in {readable(it.section)}. More: %explain",
            ]
        )

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": html(self.explanation, self.short)}


def html(it: Explanation, short: bool = False) -> str:
    """Return a card as HTML. Everything is escaped: names and lines are the learner's text."""
    parts = [f"<strong>{marked(it.headline)}</strong> <small>[{escape(it.code)}]</small>"]
    if it.where and not short:
        rows = "\n".join(
            f"<tr><td>{escape(located(place))}</td><td><code>{escape(place.text)}</code></td><td>{escape(place.role)}</td></tr>"
            for place in it.where[:MAX_PLACES]
        )
        parts.append(f'<table style="margin:0.3em 0"><caption hidden>Your lines</caption>{rows}</table>')
    if not short:
        parts.append(f'<p style="margin:0.3em 0">{marked(it.why)}</p>')
    fix = it.fix.partition("\n")[0] if short else it.fix
    parts.append(
        f'<p style="margin:0.3em 0 0">Fix ({it.sureness}):</p><pre style="margin:0.2em 0 0.3em 1em">{escape(fix)}</pre>'
    )
    further = " ".join(filter(None, [f"Taught in {readable(it.section)}.", asked(it.code)]))
    parts.append(f'<p style="margin:0.3em 0"><small>{escape(further)} {_MORE}</small></p>')
    style = f"border-left:0.4em solid {_COLOUR};padding:0.2em 0.8em;margin:0.3em 0"
    return f'<div role="note" aria-label="Explanation of the error above" style="{style}">{"".join(parts)}</div>'
