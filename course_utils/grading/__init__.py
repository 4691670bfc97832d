"""Grading a class: submissions are found, run in a sandbox, judged outside it, kept and reported."""
