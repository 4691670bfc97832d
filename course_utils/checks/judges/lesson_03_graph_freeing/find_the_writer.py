"""Judging `find_the_writer`: which line saved, which wrote, which raises?"""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_03_graph_freeing import LESSON
from course_utils.checks.judges.predictions import one_case
from course_utils.checks.judges.programs import Choices, Program
from course_utils.graph.saved import kept
from course_utils.graph.trace import nodes_from, roots_of

PROGRAMS = {
    "a": Program("""
        w = torch.ones(3, requires_grad=True)
        h = w * 2
        y = h * h
        z = y + 1
        z.mul_(3)
        h.add_(1)
        loss = (y + z).sum()
        loss.backward()
    """),
    "b": Program("""
        x = torch.ones(2, 3, requires_grad=True)
        a = x + 1
        b = a.sin()
        c = b.exp()
        b = b * 2
        c = c + 1
        row = a[0]
        row.zero_()
        loss = (b + c).sum()
        loss.backward()
    """),
    "c": Program("""
        w = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        first = (w * 2).sum()
        second = (w * w).sum()
        first.backward()
        optimizer.step()
        second.backward()
        optimizer.step()
    """),
    "d": Program("""
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        z = y * 2
        z += 1
        y = y + z
        loss = y.sum()
        loss.backward()
    """),
}


def _found(program: Program) -> dict[str, int | None]:
    """Run a program and watch each node: which line made it, and which wrote into what it had saved."""
    made: dict[Any, int] = {}
    spoiled: dict[Any, int] = {}

    def watch(line: int, names: dict[str, Any]) -> None:
        tensors = [value for value in names.values() if isinstance(value, torch.Tensor) and value.grad_fn is not None]
        for node in nodes_from(roots_of(tuple(tensors))):
            made.setdefault(node, line)
        for node in made:
            if any(state == "modified" for _, state, _ in kept(node)):
                spoiled.setdefault(node, line)

    raised = program.run(watch=watch).line
    if raised is None:
        return {"saved": None, "wrote": None, "raises": None}
    node, wrote = min(spoiled.items(), key=lambda item: item[1])
    return {"saved": made[node], "wrote": wrote, "raises": raised}


def _right() -> dict[str, int | None]:
    return {f"{name}_{what}": line for name, it in PROGRAMS.items() for what, line in _found(it).items()}


_LINES = Choices(
    _right,
    reasons={
        "a_saved": "h * h saves h, both factors. y + 1 and the sum save nothing.",
        "a_wrote": "h.add_(1) writes into h. The write into z is harmless: nobody has saved z.",
        "a_raises": "The writing line raises nothing. The pass does, when it comes to h * h.",
        "b_saved": "The sine saves its input, a. exp saves its own result.",
        "b_wrote": "row is a view of a. b = b * 2 and c = c + 1 make new tensors, and write into none.",
        "b_raises": "The pass finds it out.",
        "c_saved": "w * w saves w. w * 2 saves only the 2.",
        "c_wrote": "A step writes into the parameters. The first pass wrote into w.grad, which no node saved.",
        "c_raises": "The first pass ran before the write. The second comes to w * w after it.",
        "d_raises": "z was written to, but y * 2 saved only the 2. y = y + z makes a new tensor and writes into none.",
    },
)


EXERCISE = Exercise(
    id="find_the_writer",
    title="Which line wrote?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=3,
    call=None,
    cases=one_case,
    judge=_LINES.judge,
    hints=(
        "Three things take part: a line whose operation saves a tensor, a later line that writes into that tensor, and "
        "a backward pass that comes to the operation.",
        "First list what each operation saves: a product its factors (with a number, only the number), sin its input, "
        "exp its result, sums and views nothing. Then look for writes: a method that ends in `_`, `+=`, a step. "
        "`b = b * 2` is none.",
        "`a`: h * h saves h, and h is written to. `b`: a view writes into what it views; look who saved a. `c`: a step "
        "writes into w; which of the two losses saved w? `d`: see whether anything that was written to had been saved.",
    ),
    debrief=_LINES.debrief,
    misconceptions=(
        Misconception(
            "a new name is a write",
            "You took an assignment such as `b = b * 2` for a write. It makes a new tensor and gives it the name; the "
            "old tensor keeps its numbers, and the node that saved it has them.",
            _LINES.any_but(
                *({"b_wrote": 5, "b_saved": 4}, {"b_wrote": 5}, {"b_wrote": 6, "b_saved": 4}),
                {"d_saved": 2, "d_wrote": 5, "d_raises": 7},
            ),
        ),
        Misconception(
            "every write harms",
            "You named a write into a tensor that no node has saved. Such a write is harmless.",
            _LINES.any_but({"a_wrote": 5}, {"d_saved": 3, "d_wrote": 4, "d_raises": 7}, {"d_wrote": 4, "d_raises": 7}),
        ),
        Misconception(
            "the write raises",
            "You took the writing line to raise. It runs without a word; the backward pass finds the write.",
            _LINES.any_but({"a_raises": 6, "b_raises": 8, "c_raises": 6}, {"a_raises": 6, "b_raises": 8}),
        ),
        Misconception(
            "the first line of the victim",
            "You named the line that made the tensor. Asked is the line whose operation keeps it for its own backward.",
            _LINES.any_but({"a_saved": 2, "b_saved": 2, "c_saved": 1}, {"a_saved": 2, "b_saved": 2}),
        ),
    ),
)
