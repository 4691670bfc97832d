"""Scores in the files that Canvas and Moodle export."""

import pytest

from course_utils.grading.outgoing.fill import FillError, fill_canvas, fill_moodle
from course_utils.grading.submission import Result

FIRST, SECOND = "01_graph_structure", "02_how_backward_works"

# As Canvas writes it: a row that may stand between header and points, custom columns, totals that are read-only.
CANVAS = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Notes,01 Graph structure (901),How backward works! (902),"
    "Current Score,Final Score\r\n"
    ",,,,,,Manual Posting,,,\r\n"
    "    Points Possible,,,,,,20.00,100.00,(read only),(read only)\r\n"
    '"Lovelace, Ada",123,S1,ada,"A, B","says ""hi""",,,50.0,50.0\r\n'
    '"Curie, Marie",124,S2,marie,A,=1+1,7.00,,50.0,50.0\r\n'
    '"Noether, Emmy",125,S3,emmy,A,,EX,N/A,,\r\n'
    '"Student, Test",999,,t0,A,,,,,\r\n'
).encode()

# As Moodle writes it, in English and in German.
MOODLE = (
    b'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
    b'"Last modified (submission)","Last modified (grade)","Feedback comments"\n'
    b'"Participant 12","Ada Lovelace",ada@x.org,"For grading - ",,100.00,Yes,"Monday, 2 June 2025, 9:00 AM",-,\n'
    b'"Participant 13","Marie Curie",marie@x.org,"For grading - ",50.00,100.00,Yes,-,"x, y","<b>well"\n'
    b'"Participant 14","Emmy Noether",emmy@x.org,"No submission - ",,100.00,Yes,-,-,\n'
)
GERMAN = (
    "ID;Vollständiger Name;E-Mail-Adresse;Status;Bewertung;Bestwertung;Bewertung kann geändert werden\r\n"
    "Teilnehmer/in12;Ada Lovelace;ada@x.org;Zur Bewertung abgegeben;;10,00;Ja\r\n"
    "Teilnehmer/in13;Marie Curie;marie@x.org;Zur Bewertung abgegeben;3,50;10,00;Ja\r\n"
).encode()


def result(student: str, path: str = "", lesson: str = FIRST, score: float = 5.0, **more: object) -> Result:
    return Result(student, lesson, path or f"{student}/nb.ipynb", "graded", score, 20.0, 0.1, (), **more)  # type: ignore[arg-type]


ADA = result("lovelaceada_123", "c.zip/lovelaceada_LATE_123_456_nb.ipynb", score=15.0, number="123")
MARIE = result("curiemarie_124", "c.zip/curiemarie_124_457_nb-1.ipynb", score=5.5, number="124")
EMMY = result("noetheremmy_125", "c.zip/noetheremmy_125_458_nb.ipynb", number="125")
ADA_M = result("Ada Lovelace_12", "m.zip/Ada Lovelace_12_assignsubmission_file_/nb.ipynb", score=15.0, number="12")
MARIE_M = result("Marie Curie_13", "m/Marie Curie_13_assignsubmission_file_/nb.ipynb", score=5.5, number="13")


def test_canvas_gets_scores_and_keeps_every_other_byte():
    filled = fill_canvas(CANVAS, [ADA, MARIE])
    assert filled.content == CANVAS.replace(b'""hi""",,', b'""hi""",15,').replace(b"7.00", b"5.5")
    assert filled.cells == 2
    assert filled.notes == (
        "Noether, Emmy: nothing was handed in.",
        "Student, Test: nothing was handed in.",
        "01_graph_structure: 2 scores in the column '01 Graph structure (901)'.",
    )


def test_canvas_gets_all_lessons_that_have_a_column_scaled_to_its_points():
    other = result("marie", lesson=SECOND, score=5.0)
    third = result("marie", lesson="03_graph_freeing")
    filled = fill_canvas(CANVAS, [ADA, other, third])
    assert filled.content == CANVAS.replace(b'""hi""",,', b'""hi""",15,').replace(b"7.00,,", b"7.00,25,")
    last = "02_how_backward_works: 1 scores in the column 'How backward works! (902)'; 20 points count as 100."
    assert filled.notes[-1] == last
    assert fill_canvas(CANVAS, [ADA, other], SECOND).cells == 1


@pytest.mark.parametrize("student", ["ADA", "s1", "Lovelace, Ada"])
def test_students_of_canvas_are_found_by_login_id_and_name_too(student):
    assert b'""hi""",5,' in fill_canvas(CANVAS, [result(student)]).content


def test_columns_that_canvas_only_reads_are_no_place_for_scores():
    data = CANVAS.replace(b"01 Graph structure (901)", b"Essay (901)").replace(b"Final Score", b"01 Final Score")
    with pytest.raises(
        FillError, match=r"no column is called as a lesson .* It has: 'Notes', 'Essay', 'How back[^,]*$"
    ):
        fill_canvas(data, [ADA])


def test_excused_students_stay_excused():
    filled = fill_canvas(CANVAS, [ADA, EMMY, result("emmy", lesson=SECOND)])
    assert b",EX,N/A," in filled.content
    assert "Noether, Emmy: EX stays, in place of a score." in filled.notes
    assert "Noether, Emmy: N/A stays, in place of a score." in filled.notes


def test_who_cannot_be_matched_is_told():
    strangers = [result("bob_124"), result("curiemarie_7", "curiemarie_7_457_nb.ipynb", number="7")]
    filled = fill_canvas(CANVAS, [ADA, *strangers])
    assert filled.cells == 1
    assert filled.notes[:2] == ("bob_124: no row is theirs.", "curiemarie_7: no row is theirs.")
    assert "Curie, Marie: nothing was handed in." in filled.notes
    with pytest.raises(FillError, match=r"no student of the results was found in it(?s:.*)bob_124: no row is theirs"):
        fill_canvas(CANVAS, strangers)


def test_where_two_may_be_meant_nothing_is_guessed():
    filled = fill_canvas(CANVAS, [ADA, MARIE, result("marie")])
    assert b"7.00" in filled.content
    assert "Curie, Marie: curiemarie_124 and marie may both be this row's, so it was not filled." in filled.notes
    twins = CANVAS + b'"Lovelace, Ada",126,S9,ada2,A,,,,,\r\n'
    filled = fill_canvas(twins, [MARIE, result("Lovelace, Ada")])
    assert "Lovelace, Ada: several rows may be theirs, so none was filled." in filled.notes


def test_a_row_that_is_cut_short_is_told():
    filled = fill_canvas(CANVAS + b"Bob,127,S4,bob,A\r\n", [ADA, result("bob")])
    assert "Bob: the row ends before the column for scores, so it was not filled." in filled.notes


def test_what_was_not_graded_to_the_end_is_told():
    late = Result("ada", FIRST, "ada.ipynb", "timeout", 3.0, 20.0, 60.0, (), "It was stopped.")
    filled = fill_canvas(CANVAS, [late])
    assert b'""hi""",3,' in filled.content
    assert "ada: timeout. It was stopped." in filled.notes


@pytest.mark.parametrize("column", ["Notes", "How backward works!", "How backward works! (902)"])
def test_a_column_of_canvas_can_be_named(column):
    filled = fill_canvas(CANVAS, [ADA, result("ada", lesson=SECOND)], FIRST, column)
    assert filled.cells == 1
    assert filled.content != CANVAS


@pytest.mark.parametrize(
    ("data", "settings", "words"),
    [
        (b"a,b\n1,2\n", {}, 'no gradebook of Canvas: that has a column "ID" and a row "Points Possible"'),
        (b'"', {}, "no Canvas gradebook .*not closed"),
        (CANVAS, {"lesson": "03_graph_freeing"}, "there are no results of 03_graph_freeing"),
        (CANVAS, {"column": "Essay"}, "several lessons. Say which with --lesson"),
        (
            CANVAS,
            {"column": "Essay", "lesson": FIRST},
            "no column called 'Essay'. Name one with --column: 'Notes', '01",
        ),
        (CANVAS.replace(b"How backward works!", b"Essay"), {"lesson": SECOND}, "no column for 02_how"),
        (
            CANVAS.replace(b"Notes", b"01-graph-structure old"),
            {},
            "several columns for 01_graph_structure: '01-graph-st",
        ),
        (
            CANVAS.replace(b"How back", b"x").replace(b"01 Gra", b"y"),
            {},
            "no column is called as a lesson .*'yph structure'",
        ),
    ],
)
def test_what_is_wrong_with_a_gradebook_is_told(data, settings, words):
    with pytest.raises(FillError, match=words):
        fill_canvas(data, [ADA, result("ada", lesson=SECOND)], **settings)


def test_moodle_gets_grades_and_keeps_every_other_byte():
    filled = fill_moodle(MOODLE, [ADA_M, MARIE_M])
    assert filled.content == MOODLE.replace(b'grading - ",,100', b'grading - ",75,100').replace(b",50.00,", b",27.5,")
    assert filled.notes == (
        "Emmy Noether: nothing was handed in.",
        "01_graph_structure: 2 scores in the column 'Grade'; 20 points count as 100.",
    )


def test_worksheets_in_other_languages_are_read():
    filled = fill_moodle(GERMAN, [ADA_M, MARIE_M])
    assert filled.content == GERMAN.replace(b"abgegeben;;", b"abgegeben;7,5;").replace(b"3,50", b"2,75")
    assert fill_moodle(GERMAN, [ADA_M], column="Bewertung").cells == 1


@pytest.mark.parametrize("student", ["ada@X.org", "Ada Lovelace"])
def test_students_of_moodle_are_found_by_address_and_name_too(student):
    assert b",25,100" in fill_moodle(MOODLE, [result(student)]).content


def test_a_worksheet_of_a_scale_gets_the_points_of_the_course():
    scale = MOODLE.replace(b'"Maximum Grade"', b"Scale").replace(b"100.00", b'"poor, good"')
    assert b',15,"poor' in fill_moodle(scale, [ADA_M]).content


@pytest.mark.parametrize(
    ("data", "settings", "words"),
    [
        (CANVAS, {}, 'no grading worksheet of Moodle: .*"Participant 123".*Offline grading worksheet'),
        (b"Identifier,Grade\n", {}, "no grading worksheet of Moodle"),
        (MOODLE, {}, "several lessons. Say which with --lesson: 01_graph_structure, 02_how_backward_works"),
        (
            MOODLE,
            {"lesson": FIRST, "column": "Mark"},
            "has no columns that may be .* --column: 'Identifier', 'Full name'",
        ),
        (GERMAN.replace(b"10,00", b"x"), {"lesson": FIRST}, "has no columns that may be the one for grades"),
    ],
)
def test_what_is_wrong_with_a_worksheet_is_told(data, settings, words):
    with pytest.raises(FillError, match=words):
        fill_moodle(data, [ADA_M, result("ada", lesson=SECOND)], **settings)


def test_scores_are_rounded_and_never_above_the_maximum():
    odd = Result("ada@x.org", FIRST, "p", "graded", 20.0, 14.0, 0.1, ())
    third = Result("marie@x.org", FIRST, "p", "graded", 1.0, 3.0, 0.1, ())
    content = fill_moodle(MOODLE, [odd, third]).content
    assert b",100,100.00" in content
    assert b",33.33,100.00" in content


def test_a_path_that_a_student_chose_tells_no_number():
    eve = result("bob_124", "t/bob_124/bob_124_9_nb.ipynb")
    assert "bob_124: no row is theirs." in fill_canvas(CANVAS, [ADA, eve]).notes


def test_of_results_without_a_row_it_is_said_why_they_have_no_score():
    name = "mallory_103_9003_x_123_assignsubmission_file_nb"
    doubt = Result(name, FIRST, "c.zip/x", "unreadable", 0.0, 20.0, 0.0, (), "Its name does not tell whose it is.")
    filled = fill_canvas(CANVAS, [MARIE, doubt])
    assert f"{name}: no row is theirs. Its name does not tell whose it is." in filled.notes
    assert "Lovelace, Ada: nothing was handed in." in filled.notes
    assert filled.cells == 1
