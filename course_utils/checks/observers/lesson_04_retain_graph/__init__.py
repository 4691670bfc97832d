"""What runs answers to the exercises of lesson 04."""

from course_utils.checks.observers import warm  # noqa: F401
