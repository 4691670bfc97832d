"""What all errors of the grader have in common."""

from __future__ import annotations


class GradingError(Exception):
    """Something that whoever grades can do something about. The message says which thing it is, and what to try."""
