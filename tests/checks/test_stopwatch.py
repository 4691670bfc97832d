"""What counts as an answer's own time, with clocks made for the test."""

from itertools import chain, repeat

import pytest

from course_utils.checks import stopwatch
from course_utils.checks.stopwatch import IMPORT_SECONDS, Stopwatch


def used(monkeypatch, cpu, wall, looks=100, imports=False):
    """Return the seconds used, and those imported, after looks between which so much of both times goes by."""
    now = {"cpu": 0.0, "wall": 0.0}
    monkeypatch.setattr(stopwatch, "_wall", lambda: now["wall"])
    monkeypatch.setattr(stopwatch, "importing", lambda frame: imports)
    watch = Stopwatch(lambda: now["cpu"])
    for _ in range(looks):
        now["cpu"] += cpu
        now["wall"] += wall
        watch.look(None)
    return pytest.approx(watch.used), pytest.approx(watch.imported)


@pytest.mark.parametrize(
    ("cpu", "wall", "each"),
    [
        (0.05, 0.05, 0.05),  # it computes
        (0.0, 0.05, 0.05),  # it waits: wall time counts
        (0.0005, 0.05, 0.05),  # so it does if it looks up now and then
        (0.025, 0.05, 0.025),  # half of the processor is another's
        (0.01, 0.06, 0.01),  # five sixths are
        (0.003, 0.15, 0.015),  # nearly all is, or it sleeps for moments: the backstop
        (0.04, 3600, 0.04),  # the process was stopped for an hour while it computed
        (0.0, 3600, 0.2),  # or while it waited
        (2.0, 2.0, 2.0),  # one long call inside C
    ],
)
def test_computing_counts_cpu_time_and_waiting_wall_time(monkeypatch, cpu, wall, each):
    assert used(monkeypatch, cpu, wall) == (100 * each, 0)
    assert used(monkeypatch, cpu, wall, looks=10, imports=True) == (0, 10 * each)


def test_imports_are_free_up_to_their_own_limit(monkeypatch):
    assert used(monkeypatch, 1.0, 1.0, looks=int(IMPORT_SECONDS) + 7, imports=True) == (7, IMPORT_SECONDS)


def test_who_waits_for_another_threads_import_is_not_counted(monkeypatch):
    monkeypatch.setattr(stopwatch, "_frames", lambda: {1: "its own", 2: "another"})
    monkeypatch.setattr(stopwatch, "importing", lambda frame: frame == "another")
    for cpu, counted in ((0.0, (0.0, 0.05)), (0.05, (0.05, 0.0))):  # who computes is
        walls = chain([0.0], repeat(0.05))
        monkeypatch.setattr(stopwatch, "_wall", lambda walls=walls: next(walls))
        cpus = chain([0.0], repeat(cpu))
        watch = Stopwatch(lambda cpus=cpus: next(cpus))
        watch.look("its own")
        assert (watch.used, watch.imported) == counted
