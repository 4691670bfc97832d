"""The functions that run learner code, one for each exercise, and the models that they run it on.

This half knows no right answers. In a grader it is what the sandbox holds.
"""
