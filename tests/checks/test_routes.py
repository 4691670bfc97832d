"""Ways through the course: lessons, hours, and what comes next."""

import re
from pathlib import Path

import pytest

from course_utils import notebooks
from course_utils.checks.registry import LESSONS, exercises_of
from course_utils.checks.routes import READING, ROUTES, core_of, minutes_of, next_on, route_called
from course_utils.notebooks.minutes import minutes

ROOT = Path(__file__).parents[2]
TAUGHT = [lesson for lesson in LESSONS if not lesson.startswith("11")]


def turns(lesson: str) -> list[str]:
    """Return the exercises that the turns of a lesson name, each once, in order."""
    cells = notebooks.read(ROOT / "notebooks" / f"{lesson}.ipynb").cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    named = [name for turn in re.findall(r"\*\*Your turn\*\*.*", text) for name in re.findall(r"`(\w+)`", turn)]
    return [name for name in dict.fromkeys(named) if name in {exercise.id for exercise in exercises_of(lesson)}]


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_minutes_of_a_lesson_are_those_of_its_notebook(lesson):
    assert READING[lesson] == minutes(notebooks.read(ROOT / "notebooks" / f"{lesson}.ipynb"))


@pytest.mark.parametrize("lesson", TAUGHT)
def test_the_turns_of_a_lesson_name_its_core_in_order(lesson):
    assert turns(lesson) == [exercise.id for exercise in core_of(lesson)]


@pytest.mark.parametrize("lesson", TAUGHT)
def test_what_no_turn_names_comes_last(lesson):
    core = core_of(lesson)
    assert exercises_of(lesson)[: len(core)] == core


def test_the_core_takes_12_to_15_hours_with_30_to_45_exercises():
    route = ROUTES["all"]
    assert 12 * 60 <= sum(minutes_of(lesson) for lesson in route.lessons) <= 15 * 60
    assert 30 <= sum(len(core_of(lesson)) for lesson in route.lessons) <= 45


def test_reading_counts_until_an_exercise_of_the_lesson_is_solved():
    first, *others = core_of("00_start_here")
    left = sum(exercise.minutes for exercise in others)
    assert minutes_of("00_start_here") == READING["00_start_here"] + first.minutes + left
    assert minutes_of("00_start_here", {first.id}) == left
    assert minutes_of("00_start_here", {exercise.id for exercise in (first, *others)}) == 0


def test_what_comes_next_is_the_first_that_is_not_solved():
    route = ROUTES["train"]
    done = {exercise.id for exercise in core_of("00_start_here")}
    assert next_on(route, set()).id == "first_gradient"
    assert next_on(route, done).lesson == "01_graph_structure"
    assert next_on(route, {exercise.id for lesson in route.lessons for exercise in core_of(lesson)}) is None


def test_an_unknown_route_is_told_which_there_are():
    with pytest.raises(ValueError, match="there is no route 'fast'; the routes are 'all', 'train', 'project'"):
        route_called("fast")


def test_the_readme_and_lesson_00_say_the_hours_of_each_route():
    hours = {name: round(sum(minutes_of(lesson) for lesson in route.lessons) / 60) for name, route in ROUTES.items()}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = "\n".join(cell.source for cell in notebooks.read(ROOT / "notebooks" / "00_start_here.ipynb").cells)
    assert f"| 00, 01, 02, 07, 06, 03, 09 | about {hours['train']} hours |" in readme
    assert f"| 00, 01, 02, 07, 06, 03, 09 | {hours['train']} hours |" in first
    assert f"| all lessons in order | {hours['all']} hours |" in first
