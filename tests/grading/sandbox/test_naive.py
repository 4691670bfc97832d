"""What the same attacks do to usual graders: so what stops them here is how this grader is built."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.grading.sandbox import attacks
from tests.grading.sandbox.forging import FORGING

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def naive(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What naive.py prints: who wins, and who survives, without our defences."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.grading.sandbox.naive", str(tmp_path_factory.mktemp("naive"))],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed


def test_usual_graders_tell_right_from_wrong(naive: dict[str, Any]) -> None:
    assert set(naive["honest"].values()) == {1.0}
    assert set(naive["wrong"].values()) == {0.0}
    assert naive["survives honest"]


@pytest.mark.parametrize("name", FORGING)
def test_usual_graders_are_beaten_by(name: str, naive: dict[str, Any]) -> None:
    """So what stops the same attack here is how this grader is built, and not a mistake in the attack."""
    assert naive["attacks"][name] == 1.0


@pytest.mark.parametrize("name", attacks.DEADLY)
def test_usual_graders_do_not_survive(name: str, naive: dict[str, Any]) -> None:
    assert not naive["survives"][name]
