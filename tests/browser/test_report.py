"""The pages of a report, in a real headless browser."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from course_utils.checks.registry import exercises
from course_utils.grading.outgoing.report import page_of, write_report
from course_utils.grading.submission import ExerciseResult, Result

EVIL = "<script>document.title = 'run'</script>"


def results() -> list[Result]:
    found = []
    for number in range(12):
        for lesson in ("01_graph_structure", "02_how_backward_works"):
            mine = []
            for exercise in (it for it in exercises().values() if it.lesson == lesson):
                ideas = tuple(it.name for it in exercise.misconceptions[:1]) if number else ()
                outcome = "incorrect" if ideas else "correct"
                mine.append(ExerciseResult(exercise.id, outcome, 0.0, 2.0, ideas, (f"`{EVIL}`",), 0.1))
            status = "timeout" if number == 5 else "graded"
            name = f"student {number} {EVIL}"
            found.append(Result(name, lesson, f"{EVIL}.ipynb", status, 1.0, 9.0, 0.5, tuple(mine), "It was slow."))
    return found


@pytest.mark.parametrize("width", [1200, 400])
def test_pages_are_accessible_and_run_nothing(page: Page, tmp_path: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    everything = results()
    for path in write_report(everything, tmp_path)[:2]:
        page.goto(path.as_uri())
        assert "script" in page.content()
        assert page.title() != "run"
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.evaluate("for (const it of document.querySelectorAll('details')) it.open = true")
    assert all(address.startswith("file:") for address in asked)


def test_no_violation_of_accessibility(page: Page, tmp_path: Path) -> None:
    everything = results()
    for path in write_report(everything, tmp_path)[:2]:
        page.goto(path.as_uri())
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_the_class_page_leads_to_the_students(page: Page, tmp_path: Path) -> None:
    everything = results()
    index, *_ = write_report(everything, tmp_path)
    page.goto(index.as_uri())
    page.get_by_text("Show 11 names").first.click()
    page.get_by_role("link", name="student 7").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(everything[14].student)
    assert page.url.endswith(page_of(everything[14].student))
