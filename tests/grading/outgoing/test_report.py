"""The pages about a class and its students."""

import random
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from course_utils.checks.registry import exercises
from course_utils.grading.outgoing import student_page as of_student
from course_utils.grading.outgoing.class_page import FIRST, MAX_NAMES, TALL, class_page
from course_utils.grading.outgoing.page import page_of
from course_utils.grading.outgoing.report import ReportError, write_report
from course_utils.grading.outgoing.student_page import student_page
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
        if tag not in ("meta", "br", "wbr", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += f"{data}\n"

    def all(self, name: str) -> list[dict]:
        return [attributes for tag, attributes in self.tags if tag == name]


def test_what_terminals_obey_stands_there_as_text() -> None:
    said = "\x1b]0;owned\x07\x9b2J\r\u202egnp\u2066 \x00\u200f\u2028"
    row = ExerciseResult(WALK.id, "error", 0.0, 2.0, (), (f"It raised Error: {said}\n\tend",), 0.2)
    for text in (
        student_page("ada", [result(exercises=(row,), reason=said)]),
        class_page([result(reason=said, status="crashed")]),
    ):
        assert "\\x1b]0;owned\\x07\\x9b2J\\r\\u202egnp\\u2066 \\x00\\u200f\\u2028" in text
        assert not [sign for sign in text if not sign.isprintable() and sign not in "\n\t"]
    assert "\n\tend" in student_page("ada", [result(exercises=(row,))])


def test_a_page_for_the_class_and_each_student(tmp_path):
    idea = WALK.misconceptions[0]
    results = [result("ada"), result("bob", idea=idea.name), result("carol", "timeout", reason="It took 60 s.")]
    paths = write_report(results, tmp_path / "report")
    assert len(paths) == 4
    assert all(path.exists() for path in paths)
    whole = Page(paths[0].read_text())
    for words in (
        "3 students, 3 submissions",
        "2 graded, 1 timeout",
        idea.name,
        WALK.title,
        "It took 60 s.",
        "0.40 s at most",
    ):
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
    class_of_ten = [result("ada"), result("bob", idea="x"), *(result(f"s{number}", "memory") for number in range(8))]
    page = Page(class_page(class_of_ten))
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("caption")) == len(page.all("table")) == 3
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


def test_large_classes_fold_the_names_which_lead_to_rows():
    results = [result(f"s{number:03}", idea="twice") for number in range(MAX_NAMES)]
    page = Page(class_page(results))
    assert f"Show {MAX_NAMES} names" in page.text
    assert "more." not in page.text
    folded = [link["href"] for link in page.all("a") if re.fullmatch(r"#s\d+", link["href"])]
    rows = [attributes["id"] for attributes in page.all("tr") if "id" in attributes]
    assert len(folded) == len(rows) == MAX_NAMES
    assert {link.removeprefix("#") for link in folded} == set(rows)


def test_of_very_many_who_share_a_mistake_some_are_named_and_the_rest_counted():
    page = Page(class_page([result(f"s{number:03}", idea="twice") for number in range(MAX_NAMES + 7)]))
    assert f"Show {MAX_NAMES} names" in page.text
    assert ", and 7 more. The table that course grade --csv writes has all." in " ".join(page.text.split())
    assert [link["href"] for link in page.all("a")].count(f"#s{MAX_NAMES - 1}") == 1
    assert f"#s{MAX_NAMES}" not in [link["href"] for link in page.all("a")]


def test_small_classes_name_everybody_with_a_link_to_their_page():
    page = Page(class_page([result("ada", idea="twice"), result("bob", idea="twice")]))
    assert [link["href"] for link in page.all("a")].count(page_of("ada")) == 2
    assert not page.all("details")


def test_rare_misconceptions_are_folded():
    ideas = [ExerciseResult(WALK.id, "incorrect", 0.0, 2.0, (f"idea {n:02}",), (), 0.1) for n in range(FIRST + 3)]
    page = Page(class_page([result(exercises=tuple(ideas))]))
    assert "Show 3 more" in page.text
    assert (
        page.text.index(f"idea {FIRST - 1:02}") < page.text.index("Show 3 more") < page.text.index(f"idea {FIRST:02}")
    )
    assert " more\n" not in Page(class_page([result(exercises=tuple(ideas[:FIRST]))])).text


def test_what_was_not_graded_for_one_reason_stands_together():
    late = [result(name, "timeout", reason="It took 60 s.") for name in ("ada", "bob")]
    page = Page(class_page([*late, result("carol", "memory", reason="r" * 1000)]))
    assert page.text.count("It took 60 s.") == 1
    assert "r" * 196 + " ..." in page.text
    assert "r" * 197 not in page.text
    assert "r" * 1000 in Page(student_page("carol", [result("carol", "memory", reason="r" * 1000)])).text


def test_of_many_students_a_reader_may_choose():
    results = [result(f"s{number:02}") for number in range(TALL)]
    assert not Page(class_page(results)).all("input")
    results += [
        result("t1", assignment="b"),
        result("t2", "memory", points=9.0, score=4.0),
        result("t3", points=9.0, score=5.0),
    ]
    page = Page(class_page(results))
    assert [box["value"] for box in page.all("input")] == ["all", "missing", "half", "absent", "stopped"]
    text = " ".join(page.text.split())
    for words in (
        "all (23)",
        "with points missing (2)",
        "with under half of the points (1)",
        "with an assignment missing (23)",
        "not graded in full (1)",
    ):
        assert words in text
    kinds = [set(row["class"].split()) for row in page.all("tr") if "id" in row]
    assert kinds[0] == {"absent"}
    assert kinds[-2:] == [{"missing", "half", "absent", "stopped"}, {"missing", "absent"}]
    style = (Path(of_student.__file__).parent / "report.css").read_text()
    for kind in ("missing", "half", "absent", "stopped"):
        assert f'section:has([value="{kind}"]:checked) tbody tr:not(.{kind}, :target)' in style


def test_the_page_of_a_large_class_with_strange_names_stays_small():
    """Three lessons; long names and reasons that HTML escapes; everybody is wrong in half of the exercises."""
    generator = random.Random(2)
    ideas = [it for it in exercises().values() if it.misconceptions]
    results = []
    for number in range(400):
        student = f"{number:03}" + "<&'\u202e\U0001f600" * 50
        for lesson in sorted({it.lesson for it in ideas})[:3]:
            wrong = [it for it in ideas if it.lesson == lesson and generator.random() < 0.5]
            held = [(it.id, generator.choice(it.misconceptions).name) for it in wrong]
            mine = tuple(ExerciseResult(id, "incorrect", 0.0, 2.0, (idea,), (), 0.1) for id, idea in held)
            reason = f"There are 2 files of this student: {number} {'<' * 500}"
            status = "unreadable" if number % 4 == 0 else "graded"
            results.append(result(student, status, assignment=lesson, reason=reason, exercises=mine))
    size = len(class_page(results).encode())
    assert 500_000 < size < 1_000_000


def test_names_that_students_give_their_files_are_no_columns_and_no_sections():
    results = [result(f"s{number}", assignment=lesson) for number in range(3) for lesson in ("a", "b")]
    junk = [result("eve", "unreadable", assignment=f"junk {number}", reason="No notebook.") for number in range(100)]
    page = Page(class_page([*results, *junk, result("ann", "unreadable", assignment="00_start_here", reason="No.")]))
    heads = [head.get("scope") for head in page.all("th")]
    assert 0 < heads.count("col") < 20
    assert len(page.all("h2")) == 5, "three assignments, one that nobody could be read of; the list of those; students"
    assert page.text.count("junk 99") == 1, "where it says why"
    assert "eve" in page.text.split("Scores")[-1]


@pytest.mark.parametrize("width", [39, 40, 41, 265])
def test_long_names_are_cut_on_the_page_of_the_class_alone(width):
    student = "n" * (width - 1) + "z"
    shown = student if width <= 40 else "n" * 25 + " ... " + "n" * 9 + "z"
    assert f"<bdi>{shown}</bdi>" in class_page([result(student)])
    assert f"<h1><bdi>{student}</bdi></h1>" in student_page(student, [result(student)])


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

    real = of_student._row
    monkeypatch.setattr(of_student, "_row", fails)
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
