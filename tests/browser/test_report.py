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


def many() -> list[Result]:
    """Four hundred students of strange names, most of whom hold the same idea in one exercise."""
    exercise = next(it for it in exercises().values() if it.misconceptions)
    found = []
    for number in range(400):
        idea = (exercise.misconceptions[0].name,) * (number % 2)
        score, status = (0.0, "timeout") if number == 7 else (0.0 if idea else 2.0, "graded")
        row = ExerciseResult(exercise.id, "incorrect" if idea else "correct", score, 2.0, idea, ("`x` is 3.",), 0.1)
        name = f"{number:03} {EVIL} {'long' * 50} \u0623\u062d\u0645\u062f"
        found.append(Result(name, exercise.lesson, "p" * 300, status, score, 2.0, 0.5, (row,), "It was slow."))
    return found


@pytest.fixture(scope="module", params=[results, many], ids=["12 students", "400 students"])
def pages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The page of the class, and that of one student."""
    return write_report(request.param(), tmp_path_factory.mktemp("report"))[:2]


@pytest.mark.parametrize("width", [1200, 390])
def test_pages_fit_every_screen_and_run_nothing(page: Page, pages: list[Path], width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in pages:
        page.goto(path.as_uri())
        assert "script" in page.content()
        assert page.title() != "run"
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.evaluate("for (const it of document.querySelectorAll('details')) it.open = true")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        cut = (
            "[...document.querySelectorAll('.exercises *, .found *')].filter(it => it.scrollWidth > innerWidth).length"
        )
        assert page.evaluate(cut) == 0
    assert all(address.startswith("file:") for address in asked)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_violation_of_accessibility(page: Page, pages: list[Path], scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    for path in pages:
        page.goto(path.as_uri())
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground != "rgb(255, 255, 255)") == (scheme == "dark")
        page.evaluate("for (const it of document.querySelectorAll('details')) it.open = true")
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_the_class_page_leads_to_the_students(page: Page, tmp_path: Path) -> None:
    everything = results()
    index, *_ = write_report(everything, tmp_path)
    page.goto(index.as_uri())
    page.get_by_text("Show 11 names").first.click()
    page.get_by_role("link", name="student 7").first.click()
    expect(page.locator("tr:target")).to_contain_text("student 7")
    expect(page.locator("tr:target")).to_be_in_viewport()
    page.locator("tr:target").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(everything[14].student)
    assert page.url.endswith(page_of(everything[14].student))


def test_of_many_students_those_are_shown_that_a_reader_chooses(page: Page, tmp_path: Path) -> None:
    index, *_ = write_report(many(), tmp_path)
    page.goto(index.as_uri())
    rows = page.locator("tbody tr[id^=s]:visible")
    assert rows.count() == 400
    page.get_by_label("with points missing (200)").check()
    assert rows.count() == 200
    page.get_by_label("not graded in full (1)").check()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("0 of 2 (timeout)")
    page.goto(f"{index.as_uri()}#s12")  # who follows a link sees the row, whatever was chosen
    page.get_by_label("not graded in full (1)").check()
    assert rows.count() == 2
    page.get_by_label("all (400)").check()
    assert rows.count() == 400


def test_the_head_of_a_long_table_stays_in_sight(page: Page, tmp_path: Path) -> None:
    index, *_ = write_report(many(), tmp_path)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{index.as_uri()}#s300")
    expect(page.locator("tr:target")).to_be_in_viewport()
    head = page.locator(".tall thead th").first
    expect(head).to_be_in_viewport()
    below = page.locator("tr:target th").bounding_box()
    above = head.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"] + 1


def test_on_paper_everything_is_there(page: Page, tmp_path: Path) -> None:
    index, *_ = write_report(many(), tmp_path)
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(index.as_uri())
    assert page.locator(".tall").evaluate("it => it.scrollHeight <= it.clientHeight + 1")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.get_by_role("group", name="Show students").count() == 0
