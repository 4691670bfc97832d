"""The engines of lesson 11 as programs, and which stage each part of them belongs to.

An engine is one answer to ten stages. A mutant of it is listed at the stage that its function is about, is judged
there first, and is killed by whichever stage it fails: a grader judges them all, too.
"""

import ast
import re
from pathlib import Path

from course_utils.checks.judges.lesson_11_build_your_own import ORDER

_FOLDER = Path(__file__).parents[1] / "answers" / "lesson_11_build_your_own"
_PACKAGE = "tests.answers.lesson_11_build_your_own"

# What each right engine is made of, and how it is made.
ENGINES = ((("counted", "handed_out", "counting"), "Counting()"), (("taping",), "taping()"))

# By the stage, the functions and classes that it is about. What is in none of them belongs to `record`.
_ABOUT = {
    "custom_function": "CountedContext CountedFunction Context Function",
    "train_digits": "loss train",
    "grad_and_sgd": "CountedSGD SGD accumulate fresh",
    "retain_grad_and_hooks": "CountedHandle register_hook retain_grad hooked call retain",
    "no_grad_and_detach": "CountedNoGrad no_grad detach",
    "create_graph": "grad unpacked inverse turned scatter one_over flipped put",
    "save_and_free": "both applied free",
    "backward": (
        "add subtract multiply matmul exp log relu sum spread reshape pick reduced backward run first passed counted "
        "joined fitted scaled same plus times dot total shaped picked pull_back started unfreed"
    ),
}


def trees() -> list[ast.Module]:
    """Return a program for each right engine; its last line is the expression that makes it."""
    made = []
    for names, call in ENGINES:
        source = "".join((_FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in names)
        body = [node for node in ast.parse(f"{source}\n{call}\n").body if not _between(node)]
        made.append(ast.Module(body, []))
    return made


def stage_of(key: str) -> str:
    """Return the stage that a mutant belongs to, by the innermost function or class that is about one."""
    place = key.partition(":")[0].split(".")
    for name in reversed(place):
        for stage, about in _ABOUT.items():
            if name in about.split():
                return stage
    return ORDER[0]


def judged_by(exercise: str) -> tuple[str, ...]:
    """Return the stages that an answer to an exercise is judged by: itself, then for a stage all others."""
    others = ORDER if exercise in ORDER else ()
    return (exercise, *(stage for stage in others if stage != exercise))


def _between(node: ast.stmt) -> bool:
    """Return whether a line is an engine's import of its own parts, or a text about a module."""
    if isinstance(node, ast.ImportFrom):
        return bool(re.match(_PACKAGE, node.module or ""))
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
