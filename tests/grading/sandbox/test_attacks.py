"""Attacks on the grader: none gains a point, reaches what is not its own, disturbs the next submission, or survives."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from course_utils.grading.controller.judges import PROGRAM
from course_utils.grading.controller.judging import MAX_MESSAGE
from course_utils.grading.controller.pool import Grader, limits_of
from course_utils.grading.submission import Result, Submission
from course_utils.grading.wire import MAX_TEXT, Limits, Mode
from tests.grading.sandbox import attacks
from tests.grading.sandbox.forging import FORGING
from tests.grading.submissions import HONEST, needs_a_sandbox, points_of, submission, total_of

ROOT = Path(__file__).parents[3]

pytestmark = needs_a_sandbox

CELLS = {name: attack.cell for name, attack in FORGING.items()} | attacks.AIMED | attacks.TROUBLE
# The loot is shown by an answer that is right only where there is none.
SHOW_LOOT = "\nfirst_gradient = 15 if 'loot' in dir() else 8\n"
MARK = f"/survivor-{os.getpid()}"
SURVIVOR = "import os, threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()\nos.fork()\n"

Grade = Callable[[Iterable[Submission], Limits], dict[str, Result]]


@pytest.fixture(scope="module")
def limits() -> Limits:
    return limits_of(6, 500_000_000, unsafe=False)


@pytest.fixture(scope="module")
def grade() -> Iterator[Grade]:
    """Grade, two at a time, in warm parents that all tests here share: to start one takes seconds."""
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as threads:
        patch.setenv("PYTHONPATH", MARK, prepend=os.pathsep)
        grader = Grader()

        def run(submissions: Iterable[Submission], limits: Limits) -> dict[str, Result]:
            results = list(threads.map(lambda one: grader.grade(one, limits), submissions))
            return {result.student: result for result in results}

        yield run
        grader.close()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("class")
    (folder / "grades.sqlite").write_text("everybody's")
    folder.chmod(0o777)
    return folder


def marked() -> dict[int, int]:
    """Return the processes that were started while MARK stood in PYTHONPATH, and their forks, with their parents.

    Those that judge are not among them: they run nothing of a learner's, and stay.
    """
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            judges = PROGRAM.encode() in (path / "cmdline").read_bytes()
            if not judges and MARK.encode() in (path / "environ").read_bytes():
                found[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return found


@pytest.fixture(scope="module")
def results(grade: Grade, limits: Limits, scratch: Path) -> dict[str, Result]:
    """All attacks in one run, every second one followed by an honest submission."""
    sources = {name: (cell, "") for name, cell in CELLS.items()}
    for name, source in attacks.HARM.items():
        sources[name] = (source.format(root=str(ROOT), scratch=str(scratch)), SHOW_LOOT)
    sources["survivor"] = (SURVIVOR, "while True: pass")
    tried = []
    for number, (name, cells) in enumerate(sources.items()):
        tried.append(submission(name, *cells))
        if number % 2 or name in attacks.AIMED:
            tried.append(submission(f"after {name}", *HONEST))
    return grade(tried, limits)


@pytest.mark.parametrize("name", CELLS)
def test_a_wrong_answer_gets_no_point_by(name: str, results: dict[str, Result]) -> None:
    slope = next(row for row in results[name].exercises if row.id == "slope")
    assert slope.outcome != "correct"
    assert slope.score == results[name].score == 0
    assert slope.messages
    assert all(len(message) <= max(MAX_TEXT, MAX_MESSAGE) for message in slope.messages)


@pytest.mark.parametrize("name", attacks.HARM)
def test_a_submission_does_not_reach(name: str, results: dict[str, Result]) -> None:
    assert results[name].exercises[0].outcome == "correct", "it got loot"


def test_who_forges_speaks_to_the_controller(results: dict[str, Result]) -> None:
    """So these attacks are not merely written wrongly."""
    refused = ("an answer came to another question", "a message came that nobody asked for")
    for name in ("forge in the right form", "forge in advance", "forge with an old token"):
        assert any(reason in results[name].reason for reason in refused), name
    assert "what came is no message" in results["frames that are none"].reason
    assert "at most 4,000,000 are read" in results["frames without end"].reason
    assert "what came is no observation" in results["deep nesting"].reason
    messages = {name: results[name].exercises[1].messages for name in attacks.AIMED}
    assert "has shape (1099511627776, 1099511627776)" in messages["an array that lies"][0]
    assert "The check itself failed" in messages["an array of another size"][0]
    assert len(messages["a shape without end"][0]) == MAX_MESSAGE
    assert f"Expected `str` of length <= {MAX_TEXT}" in messages["a long excuse"][0]
    assert "together too large to be judged" in messages["a mountain of nothing"][-1]
    assert "ended early, twice" in messages["empty what restores"][0]
    # Once the code has run, no way to end says that the sandbox could not be entered.
    assert messages["leave as who cannot enter"][0].endswith("ended early, twice: it ended itself with code 77.")


def test_only_those_who_forge_or_leave_are_reported_as_crashed(results: dict[str, Result]) -> None:
    """The others end as anybody's wrong answer does, and are told what is wrong with it."""
    crashed = {name for name, result in results.items() if result.status == "crashed"}
    forged = ("forge in the right form", "forge in advance", "forge with an old token", "deep nesting", "a long excuse")
    frames = (
        "descriptors, sent along",
        "events that are no text",
        "frames that are none",
        "frames without end",
        "frames on the pipe, early",
        "frames on the pipe, when asked",
    )
    # Without what it emptied, that one's own process cannot go on: it leaves, too.
    left = ("leave at once", "leave when asked", "leave as who cannot enter")
    assert crashed == {*forged, *frames, *left, "empty what restores"}


def test_everybody_after_an_attack_is_graded_as_ever(results: dict[str, Result]) -> None:
    after = {name: result for name, result in results.items() if name.startswith("after ")}
    ever = total_of()
    wrong = {name: (one.status, one.score, one.reason) for name, one in after.items() if one.score != ever}
    assert len(after) > 50
    assert not wrong


def test_nothing_was_written(results: dict[str, Result], scratch: Path) -> None:
    assert [path.name for path in scratch.iterdir()] == ["grades.sqlite"]
    assert not (ROOT / "course_utils" / "evil.py").exists()


def test_no_process_survives(results: dict[str, Result]) -> None:
    assert results["survivor"].status == "timeout"
    deadline = time.monotonic() + 5
    while set(marked().values()) != {os.getpid()} and time.monotonic() < deadline:
        time.sleep(0.05)  # nobody waited for the end of the last child
    assert set(marked().values()) == {os.getpid()}, "only warm parents are left"


@pytest.mark.parametrize("mode", ["user namespaces", "landlock"])
def test_the_weaker_sandboxes_hold_too(mode: Mode, grade: Grade, scratch: Path) -> None:
    sources = {name: source.format(root=str(ROOT), scratch=str(scratch)) for name, source in attacks.HARM.items()}
    tried = [submission(name, source, SHOW_LOOT) for name, source in sources.items()]
    results = grade([*tried, submission("honest", *HONEST)], Limits(mode, 6, 500_000_000))
    assert results.pop("honest").score == total_of()
    assert {name: result.score for name, result in results.items()} == dict.fromkeys(
        attacks.HARM, points_of()["first_gradient"]
    )


def test_without_a_sandbox_the_same_code_reaches_it(grade: Grade, tmp_path: Path) -> None:
    """So the sandbox is what stops it, and not a mistake in the attack."""
    tried = [
        submission(name, source.format(root=str(ROOT), scratch=str(tmp_path)), SHOW_LOOT)
        for name, source in attacks.HARM.items()
        if name in attacks.REACHED
    ]
    (tmp_path / "grades.sqlite").write_text("everybody's")
    results = grade(tried, Limits("none", 20, 500_000_000))
    assert {name for name, result in results.items() if result.exercises[0].outcome == "incorrect"} == attacks.REACHED


def test_at_least_40_attacks_are_shown_to_work_without_these_defences() -> None:
    assert len(FORGING) + len(attacks.REACHED) + len(attacks.DEADLY) >= 80
    assert len(CELLS) == len(FORGING) + len(attacks.AIMED) + len(attacks.TROUBLE), "two have one name"


def test_what_ends_or_exhausts_its_process_ends_only_that(grade: Grade) -> None:
    results = {}
    for seconds in (6, 30):  # a busy machine takes seconds to fill memory
        every = []
        for name, (source, statuses) in attacks.ENDING.items():
            if (statuses == {"memory"}) == (seconds == 30):
                every += [submission(name, source), submission(f"after {name}", *HONEST)]
        results |= grade(every, limits_of(seconds, 300_000_000, unsafe=False))
    for name in ("memory, touched", "memory, shared"):
        assert "was stopped" in results[name].reason, results[name]
    left = results["memory, behind a first thread that has left"]
    assert "its first thread ended, and others went on" in left.reason, left
    for name, (_, statuses) in attacks.ENDING.items():
        assert results[name].status in statuses, (name, results[name])
        assert results[name].status == "graded" or results[name].reason
        assert results[f"after {name}"].score == total_of(), name


_ON_BOTH = ["import sys\nfor line in (sys.__stdout__, sys.__stderr__): print('here', file=line, flush=True)", HONEST[1]]


def test_who_fills_a_stream_stops_nobody_who_writes_there_later(grade: Grade, limits: Limits) -> None:
    fill = attacks.TROUBLE["fills the standard streams"]
    results = grade([submission(f"{number}", fill) for number in range(4)], limits)
    results |= grade([submission(f"after {number}", *_ON_BOTH) for number in range(4)], limits)
    assert {result.status for result in results.values()} == {"graded"}
    assert [results[f"after {number}"].score for number in range(4)] == [total_of()] * 4


_ALL_THREADS = """
import threading, time
threading.stack_size(32768)
try:
    while True: threading.Thread(target=time.sleep, args=(99,), daemon=True).start()
except RuntimeError: pass
time.sleep(2)
"""
_ONE_THREAD = """
import threading
def slope(x):
    got = []
    thread = threading.Thread(target=lambda: got.append(3 * x.detach() ** 2))
    thread.start(), thread.join()
    return got[0]
"""


def test_who_takes_all_threads_leaves_the_neighbour_its_own(grade: Grade, limits: Limits) -> None:
    if limits.mode == "landlock" and os.geteuid() != 0:
        pytest.skip("all submissions run as this user here, whose threads are counted together")
    neighbours = [submission(f"{n}", "import time\ntime.sleep(0.3)", _ONE_THREAD) for n in range(6)]
    results = grade([submission("greedy", _ALL_THREADS), *neighbours], limits)
    assert results.pop("greedy").score == 0
    assert {result.score for result in results.values()} == {points_of()["slope"]}


# What SECURITY.md says does not hold. Where a change makes these harder, it has to be said there.

_SALIENCY = """
import torch
def saliency(model, images, labels):
    once = found(model, images, labels)
    found(model, images, labels)
    {forge}
    return once
def found(model, images, labels):
    modes = {{module: module.training for module in model.modules()}}
    model.eval()
    with torch.enable_grad():
        pixels = images.detach().clone().requires_grad_()
        total = model(pixels).gather(1, labels[:, None]).sum()
        (gradient,) = torch.autograd.grad(total, pixels)
    for module, mode in modes.items():
        module.training = mode
    return gradient.abs().amax(1)
"""
_HELD = """
def held():
    frame = sys._getframe(1)
    while 'results' not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals
"""
_TAKE_OVER = """
def forged(request):
    from course_utils.checks import data
    from course_utils.checks.scenes.lesson_08_intermediate_gradients.saliency import scorer_of_images
    case = data.Case(request.case, data.decode(request.given))
    right = {'returned': data.plain(found(*scorer_of_images(case))), 'recorded': False, 'runs': 1, 'passes': 1,
             'kept': False, 'changed': [], 'images': True, 'labels': True, 'mode': True}
    return data.encode(right)
"""


def test_who_takes_over_the_child_can_forge_behaviour_but_not_numbers(grade: Grade, limits: Limits) -> None:
    lesson = "08_intermediate_gradients"
    one_less = "held()['results'].pop(), held()['passes'].pop()"
    sources = {
        "honest": (_SALIENCY.replace("    found(model", "    (model").format(forge="pass"),),
        "twice": (_SALIENCY.format(forge="pass"),),
        "twice, forged in the observer": (_HELD, _SALIENCY.format(forge=one_less)),
        "twice, forged on the wire": (_TAKE_OVER, _SALIENCY.format(forge="take_over(forged)")),
        "other numbers": (_TAKE_OVER.replace("found(*", "torch.zeros_like(found(*").replace(")),", "))),", 1),
                          _SALIENCY.format(forge="take_over(forged)")),
    }  # fmt: skip
    tried = [submission(name, attacks.SERVED, *cells, assignment=lesson) for name, cells in sources.items()]
    results = grade(tried, limits)
    scores = {name: next(row for row in result.exercises if row.id == "saliency") for name, result in results.items()}
    assert {name: row.score for name, row in scores.items()} == {
        **{"honest": 3, "twice": 0, "other numbers": 0},
        **{"twice, forged in the observer": 3, "twice, forged on the wire": 3},
    }
    assert "once for the batch is enough" in scores["twice"].messages[0]
    assert not scores["honest"].score or all("uses `" in flag for flag in scores["honest"].flags), "SERVED is in a cell"
    for name in ("twice, forged in the observer", "twice, forged on the wire"):
        assert any("f_locals" in flag for flag in scores[name].flags), "what is not held is pointed at"
    assert any("told of 2 runs" in flag for flag in scores["twice, forged in the observer"].flags)
