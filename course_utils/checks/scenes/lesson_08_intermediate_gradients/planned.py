"""A model with what is asked of its layers."""

from __future__ import annotations


class Planned(Exception):
    """An error that belongs to a case."""
