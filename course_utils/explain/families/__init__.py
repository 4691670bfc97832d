"""What is said, a module for each family of messages. The first rule that fits and finds something to say wins."""

from __future__ import annotations

from course_utils.explain.families import in_place, no_graph, second_time
from course_utils.explain.rules import Rule

RULES: tuple[Rule, ...] = (*no_graph.RULES, *second_time.RULES, *in_place.RULES)
