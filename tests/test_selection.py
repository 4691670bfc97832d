"""What a run of the tests takes."""

from collections import Counter

import pytest

from tests import selection

TESTS = [f"tests/checks/test_exercises.py::test_{what}[{n}]" for what in ("right", "wrong") for n in range(500)]


def test_an_exercise_is_drawn_as_a_whole_and_a_notebook_too() -> None:
    file = "tests/checks/test_exercises.py"
    tests = [f"{file}::test_right[1-walk]", f"{file}::test_wrong[walk]", f"{file}::test_named[walk-an idea]"]
    assert {selection.unit(test) for test in tests} == {f"{file}[walk]"}
    assert selection.unit("notebooks/00_start_here.ipynb::Cell 3") == "notebooks/00_start_here.ipynb"
    assert selection.unit("tests/test_cli.py::test_help[walk]") == "tests/test_cli.py::test_help[walk]"


def test_a_commit_draws_its_share_and_another_commit_others(monkeypatch: pytest.MonkeyPatch) -> None:
    units = [f"exercise {n}" for n in range(1000)]

    def drawn_by(commit: str) -> set[str]:
        monkeypatch.setattr(selection, "commit", lambda: commit)
        return selection.drawn(units, 0.4)

    first, second = drawn_by("a"), drawn_by("b")
    assert drawn_by("a") == first
    assert len(first) == len(second) == 400
    assert 100 < len(first & second) < 220
    assert selection.drawn(units, 1.0) == set(units)
    assert selection.drawn(units, 0.0) == set()
    assert len(selection.drawn(units[:3], 0.01)) == 1, "of what is large something runs each time"


def test_of_the_files_that_are_drawn_whole_a_commit_draws_some() -> None:
    tests = [f"{one if '::' in one else one + '::test_of_it'}[{n}]" for one in selection.WHOLE for n in range(3)]
    chosen = selection.sampled(tests)
    files = {selection.unit(test) for test in chosen}
    assert len(files) >= selection.SHARE_OF_WHOLE * len(selection.WHOLE)
    assert len(chosen) == 3 * len(files)


def test_every_place_has_tests() -> None:
    for place in (*selection.SHARES, *selection.WHOLE):
        file, _, name = place.partition("::")
        assert (selection.ROOT / file).exists()
        assert not name or f"def {name}" in (selection.ROOT / file).read_text(encoding="utf-8")


def test_a_sample_leaves_out_nothing_that_is_small_or_that_the_commit_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    files = frozenset(
        {"course_utils/checks/judges/lesson_01_graph_structure/7.py", "notebooks/01_graph_structure.ipynb"}
    )
    monkeypatch.setattr(selection, "changed", lambda since: files)
    small = ["tests/test_cli.py::test_help", "notebooks/01_graph_structure.ipynb::Cell 1"]
    chosen = selection.sampled([*TESTS, *small])
    assert chosen >= {*small, "tests/checks/test_exercises.py::test_right[7]"}
    expected = selection.SHARES["tests/checks/test_exercises.py"] * len(TESTS)
    assert expected <= len(chosen) <= expected + 4, "its share, the changed exercise and two small ones"


@pytest.mark.parametrize(
    ("file", "home"),
    [
        ("course_utils/notebooks.py", "tests/test_notebooks.py"),
        ("course_utils/graph/trace.py", "tests/graph/test_trace.py"),
        ("course_utils/checks/judges/lesson_01_graph_structure/walk.py", "tests/checks/test_exercises.py"),
        ("tests/answers/lesson_01_graph_structure/walk.py", "tests/checks/test_exercises.py"),
        ("tests/graph/test_trace.py", "tests/graph/test_trace.py"),
        ("solutions/00_start_here.ipynb", "solutions/00_start_here.ipynb"),
        ("notebooks/deeper/09_your_own_code.ipynb", "notebooks/deeper/09_your_own_code.ipynb"),
    ],
)
def test_what_changed_leads_to_its_tests(file: str, home: str) -> None:
    guards = ["tests/mutation/test_guards.py"]
    assert selection.homes([file]) == [home, *(guards if home.endswith("test_exercises.py") else [])]
    test = f"{home}::test_wrong_answers_fail[walk]" if home.endswith("test_exercises.py") else f"{home}::test"
    assert selection.concerns(test, frozenset({file}))
    assert not selection.concerns("tests/test_cli.py::test_help", frozenset({file}))


def test_a_changed_exercise_leads_to_its_mutants() -> None:
    changed = frozenset({"course_utils/checks/scenes/lesson_01_graph_structure/walk.py"})
    test = "tests/mutation/test_mutation.py::test_mutants_are_killed_or_decided"
    assert selection.concerns(f"{test}[walk]", changed)
    assert not selection.concerns(f"{test}[slope]", changed)


def test_a_page_that_a_large_test_reads_leads_to_it() -> None:
    test = "tests/grading/test_nbgrader.py::test_it_releases_what_we_release"
    assert selection.concerns(test, frozenset({"TEACHING.md"}))
    assert not selection.concerns(test, frozenset({"SECURITY.md"}))
    for file, read in selection.READS.items():
        assert (selection.ROOT / file).exists()
        assert all((selection.ROOT / place).exists() for place in read)


def test_what_no_test_mirrors_leads_nowhere() -> None:
    assert selection.homes(["README.md", "course_utils/gone.py"]) == []


def test_the_size_of_the_sample_is_said() -> None:
    said = selection.said(Counter({"notebooks/": 400}), Counter({"notebooks/": 130}))
    assert "130 of 400 tests in notebooks/" in said
    assert said.endswith("`make nightly` runs all.")
