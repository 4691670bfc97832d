"""Running an answer to `one_pass`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.keeping import kept_bytes
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.scenes.lesson_04_retain_graph.one_pass import losses_and_leaves
from course_utils.checks.scenes.numbers import numbers


def observe(answer: Answer, case: Case) -> Observation:
    losses, leaves = losses_and_leaves(case)
    for name in case.given["held"]:
        leaves[name].grad = numbers(len(name) + case.given["seed"], *leaves[name].shape)
    before = {name: Array.of(leaf) for name, leaf in leaves.items()}
    given = list(losses), list(case.given["weights"])
    around = Surroundings(*losses, *leaves.values(), lists=given)
    with every_pass() as passes:
        answer(*given)
    return {
        "gradients": {name: plain(leaf.grad) for name, leaf in leaves.items()},
        "passes": len(passes),
        "retained": any(it.kept for it in passes),
        "kept": kept_bytes(*losses),
        "recorded": any(leaf.grad is not None and leaf.grad.requires_grad for leaf in leaves.values()),
        "moved": [name for name, leaf in leaves.items() if Array.of(leaf) != before[name]],
        "left": around.changed(),
    }
