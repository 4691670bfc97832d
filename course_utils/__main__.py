"""`python -m course_utils` is the command `course`."""

from course_utils.cli import course

course()
