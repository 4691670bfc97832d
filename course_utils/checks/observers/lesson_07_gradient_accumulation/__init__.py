"""What runs answers to the exercises of lesson 07."""

from course_utils.checks.observers import warm  # noqa: F401
