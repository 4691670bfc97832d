"""What the commands that grade print: sentences in which nothing of a learner's moves a cursor or turns the writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from course_utils.grading.errors import GradingError
from course_utils.grading.intake.identity import shown_lines


def plain(text: str) -> str:
    """Return the text with what does not print as Python writes it, but with its lines."""
    return shown_lines(text)


def say(text: str, err: bool = False) -> None:
    """Print a text that may hold names and words of learners, as `plain`."""
    click.echo(plain(text), err=err)


@contextmanager
def told() -> Iterator[None]:
    """Tell what goes wrong as click does: without a traceback, and with exit code 1."""
    try:
        yield
    except GradingError as error:
        raise click.ClickException(plain(str(error))) from error
