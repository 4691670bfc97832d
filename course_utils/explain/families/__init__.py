"""What is said, a module for each family of messages. The first rule that fits and finds something to say wins."""

from __future__ import annotations

from course_utils.explain.families import (
    functions,
    in_place,
    losses,
    no_graph,
    notices,
    numbers,
    second_time,
    shapes,
    state,
    training,
    transforms,
)
from course_utils.explain.rules import Rule

RULES: tuple[Rule, ...] = (
    *no_graph.RULES,
    *second_time.RULES,
    *in_place.RULES,
    *functions.RULES,
    *transforms.RULES,
    *losses.RULES,
    *shapes.RULES,
    *training.RULES,
    *state.RULES,
    *numbers.RULES,
    *notices.RULES,
)
