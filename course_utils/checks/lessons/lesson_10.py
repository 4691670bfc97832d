"""Exercises of lesson 10: custom Functions, predicted, written, repaired and verified."""

from __future__ import annotations

from course_utils.checks.lessons.predict_10 import predict_functions
from course_utils.checks.lessons.repair_10 import agrees, log_cosh, swish
from course_utils.checks.lessons.thrift_10 import seeded_dropout, thrifty_linear
from course_utils.checks.lessons.writing_10 import clamp_inward, squash

EXERCISES = (predict_functions, squash, clamp_inward, swish, agrees, log_cosh, thrifty_linear, seeded_dropout)
