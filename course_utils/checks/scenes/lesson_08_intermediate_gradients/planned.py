"""A model with what is asked of its layers."""

from __future__ import annotations

from course_utils.checks.scenes.zoo import OwnError


class Planned(OwnError):
    """An error that belongs to a case."""
