"""Exercises: cases go to an observer, what it saw goes to a judge, and the judge's verdict to the learner."""
