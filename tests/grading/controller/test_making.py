"""The cases of a lesson, made anew from a key."""

from course_utils.grading.controller import making
from tests.grading.controller.questions import LESSON
from tests.grading.submissions import points_of


def test_a_key_makes_the_same_cases_and_another_one_others() -> None:
    first, again, other = (making.pose(LESSON, making.seeds(key)) for key in (b"a" * 32, b"a" * 32, b"b" * 32))
    assert first == again
    assert [item.exercise for item in first] == [item.exercise for item in other]
    assert {item.exercise.id: item.exercise.points for item in first} == points_of(LESSON)
    assert first[1].cases != other[1].cases


def test_seeds_lie_below_what_is_asked_and_differ() -> None:
    seed = making.seeds(b"key")
    drawn = [seed(2**31) for _ in range(100)]
    assert len(set(drawn)) > 95
    assert all(0 <= one < 2**31 for one in drawn)
    assert {seed(2) for _ in range(50)} == {0, 1}


def test_a_lesson_that_is_none_has_no_exercises() -> None:
    assert making.pose("99_nothing", making.seeds(b"key")) == ()
