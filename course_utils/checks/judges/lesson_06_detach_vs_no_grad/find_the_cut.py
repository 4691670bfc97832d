"""Judging `find_the_cut`: which line keeps the gradient from w?"""

from __future__ import annotations

import torch

from course_utils.checks.exercise import Exercise, Misconception
from course_utils.checks.judges.lesson_06_detach_vs_no_grad import LESSON
from course_utils.checks.judges.predictions import one_case
from course_utils.checks.judges.programs import Choices, Program, Ran

PROGRAMS = {
    "a": Program("""
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        b = torch.tensor([0.5, 0.5], requires_grad=True)
        h = w * 3
        h.detach()
        with torch.no_grad():
            largest = h.max()
        y = h / largest + b
        loss = y.sum()
        loss.backward()
    """),
    "b": Program("""
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        b = torch.tensor([0.5, 0.5], requires_grad=True)
        with torch.no_grad():
            h = w.exp()
        y = h * b
        target = (y + 1).detach()
        loss = (y - target).square().sum()
        loss.backward()
    """),
    "c": Program("""
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        b = torch.tensor([0.5, 0.5], requires_grad=True)
        layer = nn.Linear(2, 3)
        layer.eval()
        layer.requires_grad_(False)
        h = layer(w)
        size = h.norm().item()
        y = b / size
        loss = y.sum()
        loss.backward()
    """),
    "d": Program("""
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        b = torch.tensor([0.5, 0.5], requires_grad=True)
        h = w * 2
        with torch.no_grad():
            h.mul_(3)
        h = h.detach().requires_grad_()
        loss = (h * b).sum()
        loss.backward()
    """),
    "e": Program("""
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        b = torch.tensor([0.5, 0.5], requires_grad=True)
        h = torch.zeros(2)
        for x in (1.0, 2.0, 3.0):
            h = (h.detach() * w + x).tanh()
        loss = (h * b).sum()
        loss.backward()
    """),
}

# What may cut in a line, and the line without it.
_CUTS = {".detach()": "", ".item()": "", "torch.no_grad()": "torch.enable_grad()", "(False)": "(True)", ".eval()": ""}


def _uncut(line: str) -> str:
    for cut, instead in _CUTS.items():
        line = line.replace(cut, instead)
    return line


def reaches(ran: Ran, name: str) -> bool:
    """Return whether a program ended without an error and left a gradient in a tensor."""
    tensor = ran.names[name]
    return ran.error is None and isinstance(tensor, torch.Tensor) and tensor.grad is not None


def _cut(program: Program) -> int | None:
    """Return the line that, with what may cut taken out of it alone, lets a gradient reach w; None where one does."""
    if reaches(program.run(), "w"):
        return None
    changed = {number: _uncut(line) for number, line in enumerate(program.lines, 1)}
    (found,) = [number for number, line in changed.items() if reaches(program.run({number: line}), "w")]
    return found


_LINES = Choices(
    lambda: {name: _cut(program) for name, program in PROGRAMS.items()},
    reasons={
        "a": "Nobody uses what line 4 returned, and the block makes only the number to divide by: h itself goes on.",
        "b": "What runs in the block leaves no node, so y leads to b and not to w. Line 6 changes nothing of that.",
        "c": "item() gives a Python number. eval() cuts nothing, and a frozen layer lets the gradient through to w.",
        "d": "The new h is a leaf. Its requires_grad_() hides that the way back to w is gone. The write under no_grad "
        "changed numbers and no graph.",
        "e": "Each detach cuts the way to the step before. In every step w itself takes part anew.",
    },
)

EXERCISE = Exercise(
    id="find_the_cut",
    title="Which line cuts?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_LINES.judge,
    hints=(
        "Go backwards from the loss, from each name to the line that made it, and look for a way to w. One way is "
        "enough.",
        "Ask of each suspicious line: does the loss depend on what it gives? A detach whose result nobody uses cuts "
        "nothing. Neither do eval() and a frozen layer.",
        "`a` and `e`: is there a way past the detach and past the block? `b`: which line of the two suspicious ones is "
        "on the only way to w? `c`: what type has size? `d`: which tensor does h name in line 7, and is it a leaf?",
    ),
    debrief=_LINES.debrief,
    misconceptions=(
        Misconception(
            "every detach cuts",
            "You named a detach that leaves a way to w. What counts is whether every way is cut, and whether anybody "
            "uses what detach returned.",
            _LINES.any_but({"a": 4}, {"e": 5}, {"a": 4, "e": 5}, {"a": 4, "b": 6, "e": 5}),
        ),
        Misconception(
            "every no_grad cuts",
            "You named a no_grad block that leaves a way to w. It stops the recording of what runs inside it, and "
            "takes nothing away from tensors that were recorded before.",
            _LINES.any_but({"a": 5}, {"d": 4}, {"a": 5, "d": 4}),
        ),
        Misconception(
            "eval or freezing cuts",
            "You took eval(), or a layer that is frozen, to stop the gradient. Both let it through to w.",
            _LINES.any_but({"c": 4}, {"c": 5}),
        ),
        Misconception(
            "a new leaf mends",
            "You took requires_grad_() to lead back to w. It makes a leaf, where every way back ends.",
            _LINES.but(d=None),
        ),
    ),
)
