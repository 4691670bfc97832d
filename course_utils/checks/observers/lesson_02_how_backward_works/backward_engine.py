"""Running an answer to `backward_engine`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, Other, plain, type_name
from course_utils.checks.observers.lesson_02_how_backward_works.mappings import entries, is_dict
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.scenes.lesson_02_how_backward_works.graphs import SCENES


def observe(answer: Answer, case: Case) -> Observation:
    scene = SCENES[case.given["scene"]](case.given["seed"])
    for position, leaf in enumerate(scene.leaves.values()):
        if position % 2:  # some hold a gradient from before, some hold none
            leaf.grad = torch.full_like(leaf, 7.0)
    before = {name: plain(leaf.grad) for name, leaf in scene.leaves.items()}
    numbers = {name: plain(leaf) for name, leaf in scene.leaves.items()}
    with every_pass(calling_nodes=True) as passes:
        if scene.earlier is not None:
            answer(scene.earlier)
        returned = answer(scene.loss)
    name_of = {id(leaf): name for name, leaf in scene.leaves.items()}
    items = entries(returned)
    return {
        "returned": Other("dict") if is_dict(returned) else plain(returned),
        "gradients": {name_of[id(key)]: plain(value) for key, value in items if id(key) in name_of},
        "recorded": [
            name_of[id(key)]
            for key, value in items
            if id(key) in name_of and type(value) is torch.Tensor and value.requires_grad
        ],
        "strangers": [type_name(key) for key, _ in items if id(key) not in name_of],
        "passes": len(passes),
        "before": before,
        "after": {name: plain(leaf.grad) for name, leaf in scene.leaves.items()},
        "moved": [name for name, leaf in scene.leaves.items() if plain(leaf) != numbers[name]],
        "frozen": [name for name, leaf in scene.leaves.items() if not leaf.requires_grad],
        "arrived": [Array.of(gradient) for gradient in scene.arrived[:5]],
        "runs": len(scene.arrived),
    }
