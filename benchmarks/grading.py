"""Grading a class: against nbgrader, otter and a bare fork, on the same notebooks; a cold start; and ten thousand.

otter is no dependency of the course. In an environment of its own it comes by

    python3 -m venv /tmp/otter
    /tmp/otter/bin/pip install -c constraints.txt -e .
    /tmp/otter/bin/pip install otter-grader
    OTTER=/tmp/otter/bin/python .venv/bin/python -m benchmarks

What each does. nbgrader and otter start a kernel for each notebook, run all its cells, and with them the course's own
`check`, in one process with the learner's code and the judge. `course grade` runs the learner's cells in a sandboxed
fork, observes the answers there, and judges them elsewhere.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import psutil

from benchmarks.bare_fork import Order
from benchmarks.timing import Row
from course_utils.checks.examine import examine
from course_utils.checks.registry import LESSONS, exercises_of, observer_for
from course_utils.grading.controller.judges import PROGRAM
from course_utils.grading.controller.machine import child_environment
from course_utils.grading.controller.parent import RUNNER
from course_utils.grading.controller.pool import MEMORY, Grader, grade_all, limits_of
from course_utils.grading.intake.finding import find
from course_utils.grading.submission import Cell, Submission
from tests.answers import RIGHT
from tests.grading.nbgrader_course import make_course

ROOT = Path(__file__).parents[1]
LESSON = LESSONS[5]
JOBS = 2
PEERS = 4  # submissions that each peer grades
CLASS, SOAK = 60, 10_000
NBGRADER, OTTER, COLD, SIGN, MASTER = 45, 90, 3.0, 1.0, 0.1
BARE = 1.5 * 1.9  # what the sandbox may cost, and the second look


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        submissions = _class(folder)
        ours, scores = _ours(submissions)
        what = f"{LESSON}, {len(submissions)} notebooks, 2 jobs"
        yield Row(f"`course grade`: {what}", f"{ours * 1e3:.0f} ms for each", "", True)
        yield _nbgrader(folder, ours, scores)
        yield _otter(folder, ours, scores)
        yield _against_a_bare_fork(submissions[0])
        yield from map(_master, LESSONS)
        yield from (_cold(folder, lesson) for lesson in LESSONS)
        yield from _soak()


def _class(folder: Path) -> list[Submission]:
    """Write a class's notebooks: whole, half done and untouched ones, in turn. Return them as submissions."""
    kinds = [_answered(every) for every in (1, 2, 1000)]
    for number in range(CLASS):
        path = folder / "in" / f"s{number:02}" / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(kinds[number % len(kinds)])
    return find([folder / "in"])


def _answered(every: int) -> str:
    """Return the released notebook with each so many-th answer of the master in it."""
    notebook, master = (json.loads((ROOT / at / f"{LESSON}.ipynb").read_text()) for at in ("exercises", "solutions"))
    answers = {cell["id"]: cell for cell in master["cells"] if "### BEGIN SOLUTION" in "".join(cell["source"])}
    for number, name in enumerate(answers, 1):
        if number % every == 0:
            cell = next(cell for cell in notebook["cells"] if cell["id"] == name)
            cell["source"] = answers[name]["source"]
    return json.dumps(notebook)


def _ours(submissions: list[Submission]) -> tuple[float, list[float]]:
    """Return the seconds that each submission adds once both parents are warm, and the scores by student."""
    done = []
    for result in grade_all(submissions, jobs=2):
        done.append((time.perf_counter(), result))
    warm = len(done) // 3
    times = [when for when, _ in done]
    scores = {result.student: result.score for _, result in done}
    return (times[-1] - times[warm]) / (len(times) - 1 - warm), [scores[one.student] for one in submissions]


def _master(lesson: str) -> Row:
    """Measure the CPU time that a class takes which handed in the master of a lesson. It answers everything."""
    (master,) = find([ROOT / "solutions" / f"{lesson}.ipynb"])
    handed_in = [msgspec.structs.replace(master, student=f"s{number}") for number in range(24)]
    used = [cpu_seconds() for _ in grade_all(handed_in, jobs=JOBS)]
    warm = len(used) // 3
    each = (used[-1] - used[warm]) / (len(used) - 1 - warm) / JOBS
    result = f"{each * 1e3:.0f} ms for each; its cases need {_need(lesson) * 1e3:.0f} ms in one process, unconfined"
    limit = f"at most {MASTER * 1e3:.0f} ms"
    what = f"`course grade`: masters of {lesson}, CPU time over {JOBS} jobs"
    return Row(what, result, limit, each <= MASTER)


def cpu_seconds() -> float:
    """Return the CPU time of this process, of its warm parents, of what these have run, and of those that judge."""
    this = psutil.Process()
    own = this.cpu_times()
    below = [child for child in this.children() if {RUNNER, PROGRAM} & set(child.cmdline())]
    below += [judge for parent in below if PROGRAM in parent.cmdline() for judge in parent.children()]
    return sum((own.user, own.system, *(seconds for process in below for seconds in process.cpu_times()[:4])))


def _need(lesson: str) -> float:
    """Return the CPU seconds that a lesson's cases need where nothing is kept in: a right answer observed and judged.

    Not among them are the cells of the master, of which some draw plots.
    """
    pairs = [(exercise, observer_for(exercise), RIGHT[exercise.id][0]) for exercise in exercises_of(lesson)]
    times = []
    with contextlib.redirect_stdout(io.StringIO()):
        for _ in range(5):
            start = time.process_time()
            for exercise, observer, answer in pairs:
                examine(exercise, observer, answer)
            times.append(time.process_time() - start)
    return statistics.median(times[1:])


def _nbgrader(folder: Path, ours: float, scores: list[float]) -> Row:
    what = "nbgrader's `autograde`, on the same notebooks"
    course = make_course(folder / "course", LESSON)
    shutil.copytree(folder / "in", course / "submitted")
    for student in sorted((course / "submitted").iterdir())[PEERS:]:
        shutil.rmtree(student)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # it starts `alembic` by its name

    def nbgrader(*arguments: str) -> None:
        command = [sys.executable, "-m", "nbgrader", *arguments]
        subprocess.run(command, cwd=course, env={**os.environ, "PATH": path}, capture_output=True, check=True)

    start = time.perf_counter()
    nbgrader("autograde", LESSON)
    each = (time.perf_counter() - start) / PEERS
    nbgrader("export", "--to", "scores.csv")
    with (course / "scores.csv").open() as file:
        theirs = {row["student_id"]: float(row["raw_score"] or 0) for row in csv.DictReader(file)}
    return _compared(what, each / ours, each, list(theirs.values()), scores, NBGRADER)


_OTTER = """
import sys, time
from otter.api import grade_submission
zip_file, *paths = sys.argv[1:]
for path in paths:
    start = time.perf_counter()
    result = grade_submission(path, zip_file, quiet=True)
    print("RESULT", time.perf_counter() - start, result.total)
"""


def _otter(folder: Path, ours: float, scores: list[float]) -> Row:
    what = "otter's API, on the same notebooks"
    python = os.environ.get("OTTER")
    if python is None:
        return Row(what, "not measured: it is not installed (see `grading.py`)", "", True)
    tests = folder / "otter" / "tests"
    tests.mkdir(parents=True)
    for exercise in exercises_of(LESSON):
        code = f">>> from course_utils import check\n>>> check({exercise.id!r}, {exercise.id})\n"
        test = {"name": exercise.id, "points": exercise.points}
        test["suites"] = [{"cases": [{"code": code, "hidden": False}], "type": "doctest"}]
        (tests / f"{exercise.id}.py").write_text(f"OK_FORMAT = True\ntest = {test!r}\n")
    zipped = folder / "otter" / "autograder.zip"
    command = [python, "-m", "otter", "generate", "-t", tests, "-o", zipped, "--no-environment", "--no-config"]
    subprocess.run(command, cwd=folder / "otter", capture_output=True, check=True)
    paths = sorted((folder / "in").glob("*/*/*.ipynb"))[:PEERS]
    done = subprocess.run([python, "-c", _OTTER, zipped, *paths], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("RESULT")]
    each = statistics.median(float(line[1]) for line in lines)
    return _compared(what, each / ours, each, [float(line[2]) for line in lines], scores, OTTER)


def _compared(what: str, ratio: float, each: float, theirs: list[float], ours: list[float], least: int) -> Row:
    same = theirs == ours[: len(theirs)]
    scores = "the scores are equal" if same else f"the scores differ: {theirs} and {ours[: len(theirs)]}"
    result = f"`course grade` is {ratio:.0f} times faster ({each:.1f} s for each of {len(theirs)}); {scores}"
    return Row(what, result, f"at least {least} times", ratio >= least and same)


def _against_a_bare_fork(submission: Submission) -> Row:
    """Compare, in turn, one whole submission in the grader with the same work in a bare fork."""
    grader, limits = Grader(), limits_of(60.0, MEMORY, unsafe=False)
    posed = grader.posed(submission.assignment)
    sources = tuple(cell.source for cell in submission.cells)
    order = Order(sources, tuple((item.exercise.id, item.cases) for item in posed))
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(msgspec.msgpack.encode(order))
        command = [sys.executable, "-m", "benchmarks.bare_fork", file.name]
        environment = child_environment() | {"PYTHONPATH": str(ROOT)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes) as bare:
            assert bare.stdin is not None
            assert bare.stdout is not None
            bare.stdout.readline()
            times: dict[str, list[float]] = {"bare": [], "graded": []}
            for _ in range(25):
                start = time.perf_counter()
                grader.grade(submission, limits)
                times["graded"].append(time.perf_counter() - start)
                print(file=bare.stdin, flush=True)
                times["bare"].append(float(bare.stdout.readline()))
            bare.stdin.close()
    grader.close()
    medians = {name: statistics.median(taken[3:]) for name, taken in times.items()}
    ratio = medians["graded"] / medians["bare"]
    what = f"a submission of {submission.assignment}, sandboxed, looked at twice and judged, against a bare fork"
    result = f"{ratio:.2f} times ({medians['graded'] * 1e3:.0f} and {medians['bare'] * 1e3:.0f} ms)"
    return Row(what, result, f"at most {BARE:.2f} times", ratio <= BARE)


def _cold(folder: Path, lesson: str) -> Row:
    """Time the whole command on one notebook, in a new process, in turn with a process that imports PyTorch alone."""
    seen: list[tuple[float, ...]] = []
    imports = []
    for _ in range(3):
        seen.append(_lines(folder, lesson))
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        imports.append(time.perf_counter() - start)
    first, verdict, whole = (statistics.median(times) for times in zip(*seen, strict=True))
    alone = statistics.median(imports)
    times = f"first line after {first:.1f} s, first verdict {verdict:.1f}, whole {whole:.1f}"
    result = f"{times}: {whole / alone:.1f} times `import torch` ({alone:.1f} s)"
    limit = f"first line under {SIGN:g} s, whole under {COLD:g} s"
    return Row(f"`course grade` on the master of {lesson}, cold", result, limit, first < SIGN and whole < COLD)


def _lines(folder: Path, lesson: str) -> tuple[float, float, float]:
    """Return the seconds after which a pipe from the command held a line, the first verdict, and all."""
    start = time.perf_counter()
    with subprocess.Popen(
        _grade(folder, lesson), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as command:
        assert command.stdout is not None
        came = [(time.perf_counter() - start, line) for line in command.stdout]
    whole = time.perf_counter() - start
    verdict = next(when for when, line in came if line.startswith(f"{exercises_of(lesson)[0].id}: "))
    return came[0][0], verdict, whole


def _grade(folder: Path, lesson: str) -> list[str]:
    db = folder / f"{secrets.token_hex(4)}.sqlite"
    notebook = ROOT / "solutions" / f"{lesson}.ipynb"
    return [sys.executable, "-m", "course_utils", "grade", str(notebook), "--db", str(db)]


def _soak() -> Iterator[Row]:
    """Grade ten thousand short submissions. Memory is looked at after the first 500."""
    lesson = LESSONS[0]
    sources = ("first_gradient = 8\ndef slope(x):\n    return 3 * x.detach() ** 2\n", "slope = 3\n", "1 / 0\n")
    every = (
        Submission(f"s{number:05}", lesson, "x.ipynb", str(number), (Cell(1, sources[number % len(sources)]),))
        for number in range(SOAK)
    )
    this = psutil.Process()
    bytes_at: dict[int, float] = {}
    times = []
    for number, _ in enumerate(grade_all(every, jobs=2), 1):
        times.append(time.perf_counter())
        if number in (500, SOAK):
            parents = [child for child in this.children() if {RUNNER, PROGRAM} & set(child.cmdline())]
            bytes_at[number] = sum(process.memory_info().rss for process in (this, *parents))
        if number == SOAK - 1:
            below = this.children(recursive=True)
    _, left = psutil.wait_procs(below, timeout=10)
    each = [late - early for early, late in pairwise(times)]
    begin, end = (statistics.fmean(part) for part in (each[500:1500], each[-1000:]))
    growth, drift = bytes_at[SOAK] / bytes_at[500] - 1, end / begin - 1
    what = f"{SOAK:,} short submissions, 2 jobs"
    seconds = f"{begin * 1e3:.0f} ms for each at the start, {end * 1e3:.0f} at the end"
    yield Row(f"{what}: time", f"{seconds} ({drift:+.0%})", "within 20 %", abs(drift) <= 0.2)
    memory = f"{bytes_at[500] / 1e6:.0f} MB after 500, {bytes_at[SOAK] / 1e6:.0f} at the end ({growth:+.1%})"
    yield Row(f"{what}: memory of controller and parents", memory, "under 10 % more", growth < 0.1)
    yield Row(f"{what}: processes left over", str(len(left)), "0", not left)
