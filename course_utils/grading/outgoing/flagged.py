"""What a report says about how far points hold: answers that a person should look at, and what was only observed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from html import escape

from course_utils.grading.submission import ExerciseResult, Result
from course_utils.inline import marked

ANCHOR = "to-look-at"
SENTENCES = 5  # of each submission; the JSON has all
ITEMS = 100  # on a page; the JSON has all


def section(results: Iterable[Result], who: Callable[[Sequence[str]], str]) -> str:
    """Return the part of a page about submissions with flags, those with the same flags together; empty for none.

    `who` names students in HTML.
    """
    why: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for it in results:
        if it.flags:
            names = tuple(row.id for row in it.exercises if row.flags)
            why[it.assignment, names, it.flags[:SENTENCES]].append(it.student)
    if not why:
        return ""
    items = []
    for (assignment, names, sentences), students in list(why.items())[:ITEMS]:
        codes = ", ".join(f"<code>{escape(name)}</code>" for name in names)
        said = "".join(f'<p class="said">{marked(text)}</p>' for text in sentences)
        items.append(f"<li><strong>{escape(assignment)}</strong>, {codes}{said}{who(students)}</li>")
    more = f"<p>And {len(why) - ITEMS} more: the JSON has all.</p>" if len(why) > ITEMS else ""
    head = f'<h2 id="{ANCHOR}">Answers to look at</h2><p>No score was changed for these.</p>'
    return f'{head}<ul class="found">{"".join(items)}</ul>{more}'


def resting(exercise: ExerciseResult) -> str:
    """Return a sentence in HTML on what an exercise's points rest on that no number proves; none where that is none."""
    if not exercise.score or not exercise.observed:
        return ""
    names = ", ".join(escape(name) for name in exercise.observed)
    return f'<p class="small">These points rest also on what was observed while the answer ran: {names}.</p>'
