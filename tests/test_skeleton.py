"""The skeleton of a new exercise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils import notebooks, skeleton
from course_utils.checks.registry import exercises

ROOT = Path(__file__).parents[1]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of what the skeleton is written into."""
    for folder in ("course_utils", "tests/answers", "tests/checks", "solutions"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests" / "__init__.py").touch()
    return tmp_path


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python on the copy, which the installed course must not stand in for."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    return subprocess.run([sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True)


def test_it_stands_in_its_places_and_its_own_tests_list_what_is_left_to_do(copy: Path) -> None:
    written = run(copy, "-m", "course_utils", "new", "04", "double_sum")
    assert written.returncode == 0, written.stderr
    assert written.stdout.splitlines() == [
        "wrote: course_utils/checks/scenes/lesson_04_retain_graph/double_sum.py",
        "wrote: course_utils/checks/observers/lesson_04_retain_graph/double_sum.py",
        "wrote: course_utils/checks/judges/lesson_04_retain_graph/double_sum.py",
        "wrote: tests/answers/lesson_04_retain_graph/double_sum.py",
        "wrote: course_utils/checks/judges/lesson_04_retain_graph/__init__.py",
        "wrote: solutions/04_retain_graph.ipynb",
        "Next: pytest -q -k double_sum says what is left to do.",
    ]
    order = run(copy, "-c", "from course_utils.checks.judges.lesson_04_retain_graph import ORDER; print(ORDER[-2:])")
    assert order.stdout == "('split_at_trunk', 'double_sum')\n"
    tested = run(
        copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/checks/test_exercises.py", "-k", "double_sum"
    )
    failed = [line for line in tested.stdout.splitlines() if line.startswith("FAILED")]
    assert sorted(line.partition("::")[2].partition("[")[0] for line in failed) == [
        "test_nothing_is_left_to_do",
        "test_right_answers_pass",
        "test_right_answers_pass",
    ], tested.stdout
    for place, what in {
        "judges/lesson_04_retain_graph/double_sum.py:28": 'title="TODO: its title",',
        "answers/lesson_04_retain_graph/double_sum.py:3": "# TODO: at least two right ways that differ.",
        "solutions/04_retain_graph.ipynb": "TODO: the task, with every condition that the check judges.",
    }.items():
        assert f"{place}: {what}" in tested.stdout
    for tool in (("ruff", "check", "."), ("ruff", "format", "--check", ".")):
        assert run(copy, "-m", *tool, "--config", str(ROOT / "pyproject.toml")).returncode == 0


@pytest.mark.parametrize(
    ("lesson", "name", "sentence"),
    [
        ("44", "double_sum", "no lesson is called '44'. The lessons are 00_start_here, "),
        ("04", "one_pass", "lesson 04_retain_graph has an exercise called 'one_pass'. Choose another name."),
        ("04", "Double Sum", "'Double Sum' is no name for an exercise: it names what the learner defines, "),
        ("04", "class", "'class' is no name for an exercise"),
    ],
)
def test_what_cannot_be_added_is_refused_and_nothing_is_written(lesson: str, name: str, sentence: str) -> None:
    before = (ROOT / "solutions" / "04_retain_graph.ipynb").read_bytes()
    with pytest.raises(skeleton.SkeletonError) as refused:
        skeleton.write(ROOT, lesson, name)
    assert str(refused.value).startswith(sentence)
    assert (ROOT / "solutions" / "04_retain_graph.ipynb").read_bytes() == before


def test_a_file_that_is_there_is_not_overwritten(copy: Path) -> None:
    there = copy / "tests" / "answers" / "lesson_00_start_here" / "double_sum.py"
    there.write_text("RIGHT = []\n")
    with pytest.raises(skeleton.SkeletonError, match=r"double_sum.py is there already\. Delete it"):
        skeleton.write(copy, "00", "double_sum")
    assert not list((copy / "course_utils").rglob("double_sum.py"))


def test_without_the_masters_it_says_where_to_go(tmp_path: Path) -> None:
    with pytest.raises(skeleton.SkeletonError, match="exercises are added to a clone of the whole course"):
        skeleton.write(tmp_path, "04", "double_sum")


def test_nothing_is_left_to_do_in_the_course() -> None:
    master = ROOT / "solutions" / "00_start_here.ipynb"
    assert "TODO" not in "".join(cell.source for cell in notebooks.read(master).cells)
    assert not [line for name in exercises() for line in skeleton.to_do(ROOT, name)]
