"""Counting runs of the engine."""

import threading
from functools import partial

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from course_utils.checks.observers import telling
from course_utils.checks.observers.passes import UNCOUNTED, Pass, every_pass


def cube(x):
    return (x**3).sum()


def by_thread(x):
    thread = threading.Thread(target=lambda: cube(x).backward())
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda x: cube(x), []),
        (lambda x: cube(x).backward(), [Pass(False, False, True)]),
        (lambda x: cube(x).backward(retain_graph=True), [Pass(True, False, True)]),
        (lambda x: torch.autograd.grad(cube(x), x, create_graph=True), [Pass(True, True, False)]),
        (lambda x: torch.func.grad(cube)(x.detach()), [Pass(False, True, False)]),
        (by_thread, [Pass(False, False, True)]),
        (lambda x: checkpoint(cube, x, use_reentrant=True).backward(), [Pass(False, False, True)] * 2),
        (lambda x: checkpoint(cube, x, use_reentrant=False).backward(), [Pass(False, False, True)]),
        (lambda x: [cube(x).backward() for _ in range(3)], [Pass(False, False, True)] * 3),
    ],
)
def test_every_way_to_start_a_pass_is_seen(run, expected):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with every_pass() as passes:
        run(x)
    assert passes == expected


def test_a_pass_that_raises_is_seen_and_the_engine_is_back():
    x = torch.tensor([1.0], requires_grad=True)
    loss = cube(x)
    loss.backward()
    with every_pass() as passes, pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    assert len(passes) == 1
    cube(x).backward()
    assert len(passes) == 1


def test_no_frame_of_ours_stands_in_the_traceback_of_a_pass_that_raises():
    """Whose error it is, `explain` and a verdict tell by the frames."""
    x = torch.tensor([1.0], requires_grad=True)
    loss = cube(x)
    loss.backward()
    with every_pass(), pytest.raises(RuntimeError) as caught:
        loss.backward()
    assert not any("course_utils" in str(entry.path) for entry in caught.traceback)


@pytest.mark.parametrize("thread", [False, True])
def test_a_pass_that_starts_below_pytorchs_functions_is_told(monkeypatch: pytest.MonkeyPatch, thread: bool) -> None:
    monkeypatch.setattr(telling, "_states", [telling._State()])
    engine = torch.autograd.Variable._execution_engine
    telling.observe_otherwise()
    found: list[str] = []
    telling.listen(found.append)
    x = torch.ones(3, requires_grad=True)
    with every_pass():
        cube(x).backward()
    assert UNCOUNTED not in found
    with every_pass():
        loss = cube(x)
        arguments = (torch.ones(()),), False, False, (x,)
        run = partial(engine.run_backward, (loss,), *arguments, allow_unreachable=True, accumulate_grad=False)
        if thread:
            beside = threading.Thread(target=run)
            beside.start()
            beside.join()
        else:
            run()
    assert found.count(UNCOUNTED) == 1
