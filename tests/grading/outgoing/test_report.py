"""The pages about a class and its students."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from course_utils.checks.registry import exercises
from course_utils.grading.outgoing import report
from course_utils.grading.outgoing.report import ReportError, class_page, page_of, student_page, write_report
from course_utils.grading.submission import ExerciseResult, Result

EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>"
WALK = next(it for it in exercises().values() if it.misconceptions)


def result(student: str = "ada", status: str = "graded", idea: str = "", **more: object) -> Result:
    outcome, score = ("incorrect", 0.0) if idea else ("correct", 2.0)
    one = ExerciseResult(WALK.id, outcome, score, 2.0, (idea,) if idea else (), ("It is `wrong`.",), 0.2)
    fields = {"assignment": WALK.lesson, "path": "p/nb.ipynb", "score": score, "points": 2.0, "seconds": 0.4}
    return Result(**{**fields, "student": student, "status": status, "exercises": (one,), **more})


class Page(HTMLParser):
    """Collects the tags with their attributes, and requires that each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += f"{data}\n"

    def all(self, name: str) -> list[dict]:
        return [attributes for tag, attributes in self.tags if tag == name]


def test_a_page_for_the_class_and_each_student(tmp_path):
    idea = WALK.misconceptions[0]
    results = [result("ada"), result("bob", idea=idea.name), result("carol", "timeout", reason="It took 60 s.")]
    paths = write_report(results, tmp_path / "report")
    assert len(paths) == 4
    assert all(path.exists() for path in paths)
    whole = Page(paths[0].read_text())
    for words in ("3 students, 3 submissions", "2 graded, 1 timeout", idea.name, WALK.title, "It took 60 s.", "Times"):
        assert words in whole.text
    for link in whole.all("a"):
        assert (tmp_path / "report" / link["href"].partition("#")[0]).exists()
    bob = Page((tmp_path / "report" / page_of("bob")).read_text())
    assert "It is\n" not in bob.text
    assert "0 of 2" in bob.text
    assert "ada" not in bob.text
    assert "carol" not in bob.text


def test_everything_a_student_wrote_is_escaped():
    exercise = ExerciseResult(EVIL, EVIL, 0.0, 1.0, (EVIL,), (EVIL, f"`{EVIL}`"), 0.1)
    evil = result(EVIL, "crashed", assignment=EVIL, path=EVIL, reason=EVIL, exercises=(exercise,))
    for text in (class_page([evil, result("bob")]), student_page(EVIL, [evil])):
        page = Page(text)
        assert not {"script", "img", "link", "iframe"} & {tag for tag, _ in page.tags}
        assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
        assert "<script>alert(1)" in page.text


def test_a_teacher_reads_which_entries_of_a_table_are_wrong():
    table = ExerciseResult("predict_switches", "incorrect", 0.0, 2.0, (), ("1 of 3 entries is right.",), 0.1, ("b, c",))
    assert "b, c" in Page(student_page("ada", [result(exercises=(table,))])).text


def test_pages_need_no_network():
    for text in (class_page([result()]), student_page("ada", [result()])):
        assert "default-src 'none'" in text
        assert not re.search(r"https?:|//|@import|url\(", text)


def test_a_class_of_files_that_cannot_be_read():
    page = Page(class_page([result(status="unreadable", reason="The file is empty.", exercises=())]))
    assert "1 submission: 1 unreadable." in page.text
    assert "The file is empty." in page.text
    assert "Distribution" not in page.text


def test_tables_can_be_read_aloud():
    page = Page(class_page([result("ada"), result("bob", idea="x"), result("carol", "memory")]))
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("caption")) == len(page.all("table")) > 3
    assert all(head["scope"] in ("row", "col") for head in page.all("th"))
    assert all(
        attributes["aria-hidden"] == "true" for attributes in page.all("div") if "bar" in attributes.get("class", "")
    )
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert [tag for tag, _ in page.tags if tag in ("h1", "main")] == ["main", "h1"]


@pytest.mark.parametrize(
    ("one", "other"), [("Ada", "ada"), ("a b", "a-b"), ("", "-"), ("x" * 300, "x" * 301), ("../../a", "a")]
)
def test_students_have_pages_of_their_own(one, other):
    assert page_of(one) != page_of(other)
    for student in (one, other):
        assert re.fullmatch(r"students/[a-z0-9-]{65,105}\.html", page_of(student))


def test_large_classes_fold_the_names():
    results = [result(f"s{number}", idea="twice") for number in range(300)]
    page = Page(class_page(results))
    assert "Show 300 names" in page.text
    assert len(page.all("a")) == 600


def test_several_assignments_are_listed_and_scored_side_by_side():
    results = [result("ada"), result("ada", assignment="b"), result("bob", assignment="b")]
    page = Page(class_page(results))
    assert [link["href"] for link in page.all("a")][-3] == "#students"
    assert "none" in page.text.split()
    assert len(Page(student_page("ada", results[:2])).all("h2")) == 2


def test_what_cannot_be_written_is_told(tmp_path):
    with pytest.raises(ReportError, match="no results"):
        write_report([], tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot be written"):
        write_report([result()], tmp_path / "file")
    assert Path(tmp_path / "file").read_text() == ""


def test_where_one_page_cannot_be_made_the_others_are(tmp_path, monkeypatch):
    def fails(exercise):
        if exercise.id == "evil":
            raise RecursionError("too deep")
        return real(exercise)

    real = report._exercise_row
    monkeypatch.setattr(report, "_exercise_row", fails)
    evil = ExerciseResult("evil", "correct", 1.0, 1.0, (), (), 0.1)
    with pytest.raises(ReportError) as caught:
        write_report([result("ada"), result("bob", exercises=(evil,))], tmp_path)
    assert str(caught.value) == (
        "1 of 2 pages are without what the checks say, which could not be laid out. All others are whole. They are "
        "those of bob."
    )
    assert len(list((tmp_path / "students").iterdir())) == 2
    said = "What the checks say could not be laid out (RecursionError)."
    assert said in Page((tmp_path / page_of("bob")).read_text()).text
    assert "could not be laid out" not in (tmp_path / page_of("ada")).read_text()
