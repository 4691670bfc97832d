"""The functions that run learner code: a folder for each lesson, a file for each exercise.

With `scenes` this is what the sandbox of a grader holds. It knows no right answers.
"""
