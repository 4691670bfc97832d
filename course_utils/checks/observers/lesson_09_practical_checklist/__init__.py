"""What runs answers to the exercises of lesson 09."""

from course_utils.checks.observers import warm  # noqa: F401
