"""What a verdict may say of a wrong answer that is no misconception's own sample."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """A wrong answer, and the misconceptions whose sentences are true of it."""

    answer: object
    ideas: tuple[str, ...]


def said(answer: object, *ideas: str) -> Said:
    """Allow misconceptions to be said of a wrong answer. Read each sentence first: is it true of this one?"""
    return Said(answer, ideas)
