"""`course ask`: the entries that answer a question, in the terminal."""

from __future__ import annotations

import json

import click

from course_utils.ask.entries import FOLDER, Entry
from course_utils.ask.kept import index
from course_utils.ask.search import best
from course_utils.place import ROOT


@click.command(
    short_help="Find the answer to a question about autograd.", epilog="Example: course ask why is my grad None"
)
@click.argument("question", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the entries as JSON, for tools.")
@click.option("--show", type=click.IntRange(1, 3), help="Print the whole of the first, second or third entry.")
def ask(question: tuple[str, ...], as_json: bool, show: int | None) -> None:
    """Find the answer to a question about PyTorch's autograd, offline.

    Each answer is a run on the PyTorch that the course is made for. The text of an error is a question, too.
    """
    found = _found(" ".join(question))
    if as_json:
        click.echo(json.dumps([_plain(entry) for entry in found], indent=1))
    elif not found:
        click.echo(f"No entry has a word of that. {FOLDER}/README.md lists all questions.")
    elif show is not None:
        if show > len(found):
            raise click.UsageError(f"--show {show}: only {len(found)} were found")
        click.echo(whole(found[show - 1]))
    else:
        click.echo(listed(found))


def _found(question: str) -> list[Entry]:
    known, damaged = index(ROOT)
    if damaged and not known.among:
        raise click.ClickException(f"the questions cannot be read: {damaged[0]}")
    for trouble in damaged:
        click.echo(trouble, err=True)
    if not known.among:
        raise click.ClickException(f"{ROOT / FOLDER} has no questions: this copy of the course lacks them")
    return best(question, known)


def listed(found: list[Entry]) -> str:
    """Return entries as text: the question, the first sentence of its answer, and where it stands."""
    blocks = [f"{number}. {it.question}\n   {it.answer}\n   {it.link}" for number, it in enumerate(found, 1)]
    return "\n\n".join([*blocks, "The whole of the first, with its run: the same command with --show 1"])


def whole(entry: Entry) -> str:
    """Return an entry as text: question, answer, run and why."""
    run = "\n".join(f"    {line}" if line else "" for line in entry.run.splitlines())
    return f"{entry.question}\n\n{entry.answer}\n\n{run}\n\n{entry.why}\n\n{entry.link}"


def _plain(entry: Entry) -> dict[str, object]:
    return {
        "question": entry.question,
        "answer": entry.answer,
        "link": entry.link,
        "also": list(entry.also),
        "codes": list(entry.codes),
        "run": entry.run,
        "why": entry.why,
    }
