"""Results that are kept, whatever happens to the process that writes them."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import msgspec
import pytest

from course_utils.grading.gradebook import Gradebook, GradebookError
from course_utils.grading.submission import ExerciseResult, Result, Submission

ROOT = Path(__file__).parents[2]
WALK = ExerciseResult("walk", "correct", 2.0, 2.0, (), (), 0.01)
STEP = ExerciseResult("step", "incorrect", 0.0, 3.0, ("twice",), ("It is “two” times\nthe right one.",), 0.02)


def submission(student: str = "ada", digest: str = "d1", assignment: str = "01_graph_structure") -> Submission:
    return Submission(student, assignment, f"{student}/nb.ipynb", digest)


def result(of: Submission, score: float = 2.0) -> Result:
    return Result(of.student, of.assignment, of.path, "graded", score, 5.0, 0.05, (WALK, STEP))


def test_results_come_back_as_they_were(tmp_path):
    with Gradebook(tmp_path / "class.sqlite") as book:
        for student in ("bob", "ada"):
            book.add(submission(student), result(submission(student)))
    with Gradebook(tmp_path / "class.sqlite") as book:
        assert book.results() == [result(submission("ada")), result(submission("bob"))]


def test_what_is_graded_is_not_graded_again(tmp_path):
    three = [submission(student) for student in ("ada", "bob", "carol")]
    with Gradebook(tmp_path / "class.sqlite") as book:
        assert book.to_grade(three) == three
        book.add(three[1], result(three[1]))
        assert book.to_grade(three) == [three[0], three[2]]
        assert book.to_grade([submission("bob", "d2")]) == [submission("bob", "d2")]
        assert book.to_grade([submission("bob", assignment="02_x")])


def test_a_file_handed_in_again_replaces_the_earlier_one_both_ways(tmp_path):
    old, new = submission(digest="d1"), submission(digest="d2")
    with Gradebook(tmp_path / "class.sqlite") as book:
        for one, score in ((old, 1.0), (new, 2.0), (old, 3.0)):
            assert book.to_grade([one]) == [one]
            book.add(one, result(one, score))
            assert book.results() == [result(one, score)]


def test_what_is_to_be_tried_again_is_and_what_crashed_late_is_not(tmp_path):
    with Gradebook(tmp_path / "class.sqlite") as book:
        one = submission()
        late = msgspec.structs.replace(result(one, 0.0), status="crashed", reason="A judge fell over.")
        book.add(one, late)
        assert book.to_grade([one]) == []
        assert book.to_grade([submission(digest="d2")])
        again = msgspec.structs.replace(late, again=True)
        book.add(one, again)
        assert book.to_grade([one]) == [one]
        assert book.results() == [again]
        book.add(one, result(one))
        assert book.to_grade([one]) == []
        assert book.results() == [result(one)]


def test_two_writers_at_a_time(tmp_path):
    path = tmp_path / "class.sqlite"
    with Gradebook(path) as one, Gradebook(path) as other:
        for number in range(20):
            of = submission(f"s{number:02}")
            (one if number % 2 else other).add(of, result(of))
        assert len(one.results()) == len(other.results()) == 20


def test_other_files_are_refused_and_stay(tmp_path):
    text, other = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("some notes, long enough to be no database" * 100)
    with sqlite3.connect(other) as database:
        database.execute("create table grades (a)")
    database.close()
    before = text.read_bytes(), other.read_bytes()
    for path, words in ((text, "file is not a database"), (other, "this is no gradebook"), (tmp_path, "unable")):
        with pytest.raises(GradebookError, match=words) as caught:
            Gradebook(path)
        assert str(path) in str(caught.value)
    assert (text.read_bytes(), other.read_bytes()) == before


def test_a_missing_gradebook_is_told(tmp_path):
    with pytest.raises(GradebookError, match="there is no such gradebook"):
        Gradebook(tmp_path / "class.sqlite", create=False)
    assert not list(tmp_path.iterdir())
    (tmp_path / "empty").touch()
    with pytest.raises(GradebookError, match="this is no gradebook"):
        Gradebook(tmp_path / "empty", create=False)
    assert not (tmp_path / "empty").stat().st_size


def test_a_later_version_is_refused(tmp_path):
    Gradebook(tmp_path / "class.sqlite").close()
    with sqlite3.connect(tmp_path / "class.sqlite") as database:
        database.execute("pragma user_version = 9")
    database.close()
    with pytest.raises(GradebookError, match="has version 9"):
        Gradebook(tmp_path / "class.sqlite")


def test_a_damaged_row_says_so_and_the_others_are_there(tmp_path):
    with Gradebook(tmp_path / "class.sqlite") as book:
        for student in ("ada", "bob"):
            book.add(submission(student), result(submission(student)))
        for damage in ("'[3]'", "'['", f"'{'[' * 5000}'"):
            with book._database:
                book._database.execute(f"update results set exercises = {damage} where student = 'ada'")
            ada, bob = book.results()
            assert bob == result(submission("bob"))
            assert (ada.student, ada.status, ada.score) == ("ada", "crashed", 0.0)
            assert ada.reason == "Its row in the gradebook is damaged. Grade it into a new file."


def test_a_result_that_cannot_be_kept_is_kept_as_one_that_crashed(tmp_path):
    half = msgspec.structs.replace(result(submission()), reason="half a pair: \ud800")
    with Gradebook(tmp_path / "class.sqlite") as book:
        book.add(submission(), half)
        (kept,) = book.results()
        assert (kept.status, kept.points, kept.exercises) == ("crashed", 5.0, ())
        assert (
            kept.reason == "Its result could not be kept (UnicodeEncodeError). Grade it into a new file to try again."
        )
        assert book.to_grade([submission()]) == []


def test_a_file_that_may_only_be_read_is_told_when_it_is_opened():
    before = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "class.sqlite"
        Gradebook(path).close()
        path.chmod(0o444)
        Path(name).chmod(0o555)
        if before == 0:
            os.seteuid(1000)
        try:
            with pytest.raises(GradebookError, match=r"class\.sqlite: this cannot be used .*(readonly|unable to open)"):
                Gradebook(path)
        finally:
            os.seteuid(before)
            Path(name).chmod(0o755)


WRITER = textwrap.dedent("""
    import sys
    from pathlib import Path
    from course_utils.grading.gradebook import Gradebook
    from course_utils.grading.submission import ExerciseResult, Result, Submission

    exercises = tuple(ExerciseResult(f"e{n}", "correct", 1.0, 1.0, (), ("said " * 50,), 0.1) for n in range(9))
    print("ready", flush=True)
    with Gradebook(Path(sys.argv[1])) as book:
        everyone = [Submission(f"s{n:04}", "a", "p", "d") for n in range(int(sys.argv[2]))]
        for one in book.to_grade(everyone):
            book.add(one, Result(one.student, "a", "p", "graded", 9.0, 9.0, 1.0, exercises))
            print(one.student, flush=True)
""")


def writer(path: Path, count: int) -> subprocess.Popen:
    command = [sys.executable, "-c", WRITER, str(path), str(count)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_a_writer_killed_at_random_moments_loses_nothing_that_it_told(tmp_path):
    rng = random.Random(9)
    path, count = tmp_path / "class.sqlite", 2_000
    told: list[str] = []
    for _ in range(12):
        with writer(path, count) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0, 0.04))
            process.send_signal(signal.SIGKILL)
            told += process.stdout.read().split()
        with Gradebook(path) as book:
            kept = [one.student for one in book.results()]
            assert book._database.execute("pragma integrity_check").fetchone() == ("ok",)
        assert set(told) <= set(kept)
        assert len(kept) <= len(told) + 12, "at most one row a kill was committed and not told"
        assert len(told) == len(set(told)), "nothing is graded twice"
    assert 0 < len(told) < count
    with writer(path, count) as process:
        told += process.stdout.read().split()[1:]
    with Gradebook(path) as book:
        assert [one.student for one in book.results()] == [f"s{number:04}" for number in range(count)]
