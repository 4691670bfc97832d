"""`predict`: a question that is answered by a run, after the learner has committed to an answer."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from course_utils.inline import marked
from course_utils.pictures.colours import style

# JupyterLab then leaves the keys to the form.
_KEYS = 'data-lm-suppress-shortcuts="true"'


@dataclass(frozen=True)
class Prediction:
    """A question, what may be answered, and what the run gave. Shows itself in notebooks as a form.

    `reasons` says of a choice why one might think so, and what is true of it. They are read after the choice is made.
    """

    question: str
    choices: tuple[str, ...]
    result: str
    details: str  # what the run printed, or the error in full
    reasons: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        options = "\n".join(
            f"  - {choice}" + (f"\n      {self.reasons[choice]}" if choice in self.reasons else "")
            for choice in self.choices
        )
        more = f"\n{self.details}" if self.details else ""
        return f"{self.question}\n{options}\nThe run gave: {self.result}{more}"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._html()}

    def _html(self) -> str:
        """Return the form. It needs no script: the result opens when a choice is made, where styles are allowed.

        Where they are not (a notebook that is not trusted), question, choices and a result to unfold remain.
        """
        options = "".join(
            f'<label{" class=right" if choice == self.result else ""}><input type="radio" name="choice" {_KEYS}> '
            f"<span>{escape(choice)}</span></label>"
            for choice in self.choices
        )
        more = f"<pre>{escape(self.details)}</pre>" if self.details else ""
        reasons = "".join(
            f"<dt>{escape(choice)}</dt><dd>{marked(reason)}</dd>" for choice, reason in self.reasons.items()
        )
        more += f"<dl>{reasons}</dl>" if reasons else ""
        return (
            f"<style>{_style()}</style>"
            '<div class="course-prediction"><form onsubmit="return false">'
            f"<fieldset><legend>{escape(self.question)}</legend>{options}</fieldset></form>"
            f"<details><summary {_KEYS}>What the run gave</summary><p>{escape(self.result)}</p>{more}</details></div>"
        )


def predict(question: str, experiment: Callable[[], object], *choices: str | Mapping[str, str]) -> Prediction:
    """Run `experiment` and ask what it gives, before showing it.

    The right choice is not told, it is run: it is the text of what `experiment` returns, or the name of the error that
    it raises, as in "RuntimeError". What it prints is shown with the result. Choices are texts, or one dict from each
    choice to its reason: why somebody may expect it, and what is true of it.

    Raises TypeError where `experiment` cannot be called, and ValueError for fewer than two choices, for equal ones, and
    where the run gives none of them.
    """
    if not callable(experiment):
        raise TypeError(
            f"predict() needs a function to run, got {type(experiment).__name__}: predict(question, f, ...)"
        )
    reasons: Mapping[str, str] = choices[0] if len(choices) == 1 and isinstance(choices[0], Mapping) else {}
    texts = tuple(str(choice) for choice in reasons or choices)
    if len(set(texts)) < max(len(texts), 2):
        raise ValueError(f"predict() needs at least two choices, all different; got {_listed(texts)}")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = str(experiment())
        except Exception as error:  # raising may be the answer
            result = type(error).__name__
            print(f"{result}: {error}", file=printed)
    if result not in texts:
        more = f" ({printed.getvalue().strip()})" if printed.getvalue() else ""
        raise ValueError(f"the run gave {result!r}{more}, which is none of the choices {_listed(texts)}")
    return Prediction(question, texts, result, printed.getvalue().rstrip(), reasons)


def _listed(choices: tuple[str, ...]) -> str:
    return ", ".join(map(repr, choices)) or "none"


@cache
def _style() -> str:
    return style(".course-prediction") + Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
