"""What is said, a module for each family of messages. The first rule that fits and finds something to say wins."""

from __future__ import annotations

from course_utils.explain.families import (
    asked,
    dtypes,
    empty_grads,
    functions,
    in_place,
    inputs,
    loss_dtypes,
    losses,
    meta,
    no_graph,
    not_tensors,
    notices,
    numbers,
    refused_writes,
    saved_hooks,
    schedules,
    second_time,
    shapes,
    starts_and_hooks,
    state,
    training,
    transforms,
)
from course_utils.explain.rules import Rule

RULES: tuple[Rule, ...] = (
    *no_graph.RULES,
    *not_tensors.RULES,
    *empty_grads.RULES,
    *asked.RULES,
    *second_time.RULES,
    *in_place.RULES,
    *refused_writes.RULES,
    *starts_and_hooks.RULES,
    *saved_hooks.RULES,
    *functions.RULES,
    *transforms.RULES,
    *losses.RULES,
    *loss_dtypes.RULES,
    *dtypes.RULES,
    *shapes.RULES,
    *meta.RULES,
    *training.RULES,
    *schedules.RULES,
    *state.RULES,
    *numbers.RULES,
    *notices.RULES,
    *inputs.RULES,
)
