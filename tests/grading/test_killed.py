"""Any process of a run may be killed at any time: the same command then goes on, and nothing is lost or wrong."""

import contextlib
import io
import json
import multiprocessing
import os
import random
import time
from pathlib import Path

import psutil
import pytest

from course_utils.cli import course
from course_utils.grading.gradebook import Gradebook
from tests.grading.submissions import RIGHT, needs_a_sandbox, total_of

CLASS = 60
MOMENTS = int(os.environ.get("KILLS", "20"))  # `make nightly` kills a thousand times
WRONG = "first_gradient = 15\nslope = 3\n"

pytestmark = needs_a_sandbox


def hand_in(folder: Path) -> dict[str, float]:
    """Write a class's notebooks. Return the right score of each student."""
    scores = {}
    for number in range(CLASS):
        student, right = f"s{number:02}", number % 3 > 0
        cell = {"cell_type": "code", "source": RIGHT if right else WRONG, "metadata": {}, "outputs": []}
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell | {"execution_count": None}]}
        (folder / student).mkdir(parents=True)
        (folder / student / "00_start_here.ipynb").write_text(json.dumps(notebook))
        scores[student] = total_of() if right else 0
    return scores


def grade(folder: Path, db: Path) -> None:
    """Run the command in this process."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        course(["grade", str(folder), "--db", str(db), "--jobs", "1"], standalone_mode=False)


def graded(db: Path) -> dict[str, float]:
    if not db.exists():
        return {}
    with Gradebook(db) as book:
        rows = book.results()
    assert len({row.student for row in rows}) == len(rows)
    return {row.student: row.score for row in rows if row.status != "crashed"}  # the next run tries those again


@pytest.mark.timeout(120 + 9 * MOMENTS)
def test_killed_at_random_moments_a_run_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(20261121)
    scores, db = hand_in(tmp_path / "class"), tmp_path / "grades.sqlite"
    # A controller costs no import of PyTorch here; each warm parent is started as ever.
    forkserver = multiprocessing.get_context("forkserver")
    forkserver.set_forkserver_preload(["course_utils.grading.controller.pool", "course_utils.grading.grade"])
    killed = {"controller": 0, "others": 0}
    started: list[psutil.Process] = []
    run = None
    for _ in range(MOMENTS):
        if run is None or not run.is_alive():
            known = len(graded(db))
            if known == CLASS:  # all done: it begins anew
                for path in tmp_path.glob("grades.sqlite*"):
                    path.unlink()
            run = forkserver.Process(target=grade, args=(tmp_path / "class", db))
            run.start()
            deadline = time.monotonic() + 60
            while len(graded(db)) == known % CLASS and run.is_alive() and time.monotonic() < deadline:
                time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.4))
        with contextlib.suppress(psutil.NoSuchProcess):
            controller = psutil.Process(run.pid)
            below = controller.children(recursive=True)
            started += below
            victim = chance.choice([controller, *below]) if chance.random() < 0.7 else controller
            killed["controller" if victim == controller else "others"] += 1
            victim.kill()
            if victim == controller:
                run.join()
        told = graded(db)
        assert told.items() <= scores.items(), "a row is wrong"
    run.kill()
    run.join()
    assert min(killed.values()) >= 3, killed
    grade(tmp_path / "class", db)
    assert graded(db) == scores
    _, alive = psutil.wait_procs(started, timeout=10)
    assert not alive
