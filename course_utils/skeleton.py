"""The skeleton of a new exercise: its four files, its place in the order, and its cells in the master."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

import nbformat

from course_utils import notebooks
from course_utils.checks.guidance import BEGIN, END
from course_utils.checks.registry import LESSONS, exercises

# Where the files of an exercise stand, below the root of the course, and what a new one holds. What is still to be
# done says TODO: the suite lists these lines, and fails until they are gone.
FILES = {
    "course_utils/checks/scenes": '''"""What an answer to `$name` is tried on."""

from __future__ import annotations

import torch

from course_utils.checks.data import Case
from course_utils.checks.scenes.numbers import numbers


# TODO: what an answer is given, from the case alone. Judge and observer both make it, each anew.
def leaf(case: Case) -> torch.Tensor:
    """Return a leaf with numbers that the case's seed decides."""
    return numbers(case.given["seed"], *case.given["shape"]).requires_grad_()
''',
    "course_utils/checks/observers": '''"""Running an answer to `$name`."""

from __future__ import annotations

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.scenes.lesson_$lesson.$name import leaf


# TODO: what is seen of an answer, as plain data. An answer that is a value needs no observer: delete this file.
def observe(answer: Answer, case: Case) -> Observation:
    x = leaf(case)
    before = plain(x)
    return {"returned": plain(answer(x)), "moved": plain(x) != before}
''',
    "course_utils/checks/judges": '''"""Judging `$name`: TODO: its title."""

from __future__ import annotations

from collections.abc import Iterator

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_$lesson import LESSON
from course_utils.checks.scenes.lesson_$lesson.$name import leaf


# TODO: cases that tell wrong ideas from right ones: several, uneven sizes, no zeros or ones.
def _cases(seed: int) -> list[Case]:
    shapes = {"a vector": [3], "a matrix": [2, 5]}
    return [Case(name, {"seed": seed + n, "shape": shape}) for n, (name, shape) in enumerate(shapes.items())]


# TODO: one finding for each sentence of the task. What is right comes from autograd or a counted fact.
def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    yield right_value(seen["returned"], leaf(case).sum().detach(), "What you returned")
    yield Finding("moved", seen["moved"] is False, "Your function changed the numbers in x.")


EXERCISE = Exercise(
    id="$name",
    title="TODO: its title",
    lesson=LESSON,
    difficulty=1,
    minutes=5,
    points=1,
    call="$name(x)",
    cases=_cases,
    judge=_judge,
    hints=("TODO: a nudge.", "TODO: an approach.", "TODO: an outline."),
    misconceptions=(
        Misconception(
            "TODO: its name",
            "TODO: a sentence that says what the learner's code did.",
            lambda case, seen: close(seen["returned"], leaf(case).mean()),
        ),
    ),
)
''',
    "tests/answers": '''"""Right and wrong answers to `$name`."""

# TODO: at least two right ways that differ.
RIGHT = [lambda x: x.sum().detach()]

MISCONCEIVED = {
    "TODO: its name": lambda x: x.mean().detach(),
}

# TODO: every other plausible wrong answer. Mutants that are right, if any: STILL_RIGHT = {"keeps every graph"}, say.
WRONG = [lambda x: x.prod().detach()]
''',
}
_TASK = """## TODO: its number in the lesson, a dot, and its title as in the judge's file

TODO: the task, with every condition that the check judges.

Difficulty 1 of 5, about 5 minutes, 1 point."""
_ANSWER = f"""# A function, called as $name(x).
$name = ...


{BEGIN}
def $name(x):
    return x.sum().detach()  # TODO


{END}"""
_CHECK = 'check("$name", $name)'


class SkeletonError(Exception):
    """A skeleton cannot be written. The message says what was given, and what to give instead."""


def write(root: Path, lesson: str, name: str) -> list[Path]:
    """Write the skeleton of an exercise into a checkout of the course, and return the files that are new or changed.

    `lesson` may be a lesson's number. Raises SkeletonError for an unknown lesson, for a name that is taken or that
    Python cannot define, and where `root` holds no masters. Then nothing is written.
    """
    lesson = _lesson_called(lesson)
    _refuse_bad(name)
    master = root / "solutions" / f"{lesson}.ipynb"
    if not master.exists():
        raise SkeletonError(f"{master} is missing: exercises are added to a clone of the whole course.")
    files = {root / place / f"lesson_{lesson}" / f"{name}.py": text for place, text in FILES.items()}
    taken = [path for path in files if path.exists()]
    if taken:
        raise SkeletonError(f"{taken[0]} is there already. Delete it, or choose another name.")
    order = root / "course_utils" / "checks" / "judges" / f"lesson_{lesson}" / "__init__.py"
    files[order] = re.sub(r"(?s)(ORDER = \(.*?)\n\)", rf'\1\n    "{name}",\n)', order.read_text(encoding="utf-8"))
    for path, text in files.items():
        path.write_text(Template(text).substitute(lesson=lesson, name=name), encoding="utf-8")
    notebook = notebooks.read(master)
    cells = [nbformat.v4.new_markdown_cell(_TASK)]
    cells += [nbformat.v4.new_code_cell(Template(text).substitute(name=name)) for text in (_ANSWER, _CHECK)]
    for cell, part in zip(cells, ("task", "answer", "check"), strict=True):
        cell.id = f"{name.replace('_', '-')}-{part}"
    notebook.cells += cells
    master.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    return [*files, master]


def to_do(root: Path, name: str) -> list[str]:
    """List what a skeleton still asks for: the lines that say TODO, each behind its file's path and line number."""
    lesson = exercises()[name].lesson
    found = []
    for place in FILES:
        path = root / place / f"lesson_{lesson}" / f"{name}.py"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        found += [f"{path.relative_to(root)}:{n}: {line.strip()}" for n, line in enumerate(lines, 1) if "TODO" in line]
    master = root / "solutions" / f"{lesson}.ipynb"
    sources = [cell.source for cell in notebooks.read(master).cells]
    check = sources.index(f'check("{name}", {exercises()[name].name})')
    lines = [line for source in sources[check - 2 : check] for line in source.splitlines()]
    return found + [f"{master.relative_to(root)}: {line.strip()}" for line in lines if "TODO" in line]


def _lesson_called(given: str) -> str:
    for lesson in LESSONS:
        if given in (lesson, lesson[:2]):
            return lesson
    raise SkeletonError(f"no lesson is called {given!r}. The lessons are {', '.join(LESSONS)}.")


def _refuse_bad(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise SkeletonError(
            f"{name!r} is no name for an exercise: it names what the learner defines, as in fit_classes."
        )
    if name in exercises():
        raise SkeletonError(f"lesson {exercises()[name].lesson} has an exercise called {name!r}. Choose another name.")
