"""Counting backward passes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch._functorch import predispatch
from torch.autograd import forward_ad
from torch.autograd.variable import Variable

from course_utils.checks.observers import nodes, telling

UNCOUNTED = "a pass that was not counted"

_own = [0]  # the passes that were run only to read the engine's number
# Learner code may replace what the modules hold.
_run, _number_of_this_run = Variable._execution_engine.run_backward, torch._C._current_graph_task_id


def count_passes(result: torch.Tensor, passes: set[int]) -> None:
    """Collect the ids of the backward passes that go through a result. Passes that stop there are not counted."""
    if result.grad_fn is not None:
        result.grad_fn.register_prehook(lambda gradients: passes.add(torch._C._current_graph_task_id()))


@dataclass(frozen=True)
class Pass:
    """A run of the engine: whether it kept the graph, recorded its own operations, and wrote into `.grad`."""

    kept: bool
    recorded: bool
    accumulated: bool


@contextmanager
def every_pass(calling_nodes: bool = False) -> Iterator[list[Pass]]:
    """Collect the runs of the engine while the body runs, also those that raise, and tell of each as one of "passes".

    Here all ways come together: `backward`, `grad`, `torch.func` and reentrant checkpoints, in whatever thread. One
    of several gradients at once (`is_grads_batched`, `vmap`) is one run. In the second way of observing it tells of
    nodes that are called by hand, too, except where that is the answer's task.
    """
    passes: list[Pass] = []
    if not telling.otherwise():
        with _at_the_engine(passes, telling.tell):
            yield passes
        return
    decoy: list[Pass] = []
    calls = nullcontext() if calling_nodes else nodes.noticed()
    before = _runs_so_far()
    with calls, _at_the_engine(decoy, lambda what: None), _before_the_engine(passes):
        yield passes
    count = len(passes)
    telling.lay(lambda: len(decoy) != count)
    if _runs_so_far() - before > count:
        telling.tell(UNCOUNTED)


@contextmanager
def tangents() -> Iterator[list[None]]:
    """Collect an entry for each tensor that is given a tangent: autograd in forward mode, which runs no pass.

    `torch.func.jvp` and `jacfwd`, and what `torch.autograd.functional` does in forward mode, come by there as well.
    """
    # A level that was entered before has tangents of its own.
    given: list[None] = [None] * (forward_ad._current_level >= 0)
    home: Any = predispatch  # where `make_dual` looks it up at each call: an answer may have that from before
    make = home._make_dual

    def counted(*arguments: Any, **named: Any) -> Any:
        given.append(None)
        return make(*arguments, **named)

    home._make_dual = counted
    try:
        yield given
    finally:
        home._make_dual = make


def _runs_so_far() -> int:
    """Return how many passes the engine ran in this process, in whatever thread and language they began.

    It numbers them, and tells the number inside one. So one more is run here, which is not among those returned.
    """
    numbers: list[int] = []
    with torch.inference_mode(False), torch.enable_grad():
        one = torch.ones((), requires_grad=True).clone()
    assert one.grad_fn is not None
    one.grad_fn.register_prehook(lambda gradients: numbers.append(_number_of_this_run()))
    _run((one,), (torch.ones(()),), False, False, (), allow_unreachable=True, accumulate_grad=True)
    _own[0] += 1
    return numbers[0] + 1 - _own[0]


@contextmanager
def _at_the_engine(passes: list[Pass], tell: telling.Listener) -> Iterator[None]:
    engine = Variable._execution_engine

    class Counting:
        @property
        def run_backward(self) -> Any:
            # It gives the engine's own method, so that no frame of ours comes to stand in an error's traceback. What
            # it will be called with are the locals of PyTorch's caller: gradients, keep_graph, create_graph, inputs.
            caller = sys._getframe(1).f_locals
            given, named = caller.get("args", (None, False, False)), caller.get("kwargs", {})
            passes.append(_pass(given, named))
            tell("passes")
            return engine.run_backward

        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

    Variable._execution_engine = Counting()  # type: ignore[assignment]
    try:
        yield
    finally:
        Variable._execution_engine = engine


@contextmanager
def _before_the_engine(passes: list[Pass]) -> Iterator[None]:
    """Collect passes where PyTorch's Python code starts them, which is another place than the engine."""
    homes: tuple[Any, ...] = (torch.autograd.graph, torch.autograd)
    run = homes[0]._engine_run_backward

    def counted(outputs: Any, *given: Any, **named: Any) -> Any:
        passes.append(_pass(given, named))
        telling.tell("passes")
        nodes.passed(len(passes))
        return run(outputs, *given, **named)

    for home in homes:
        home._engine_run_backward = counted
    try:
        yield
    finally:
        for home in homes:
            home._engine_run_backward = run


def _pass(given: tuple[Any, ...], named: dict[str, Any]) -> Pass:
    return Pass(bool(given[1]), bool(given[2]), bool(named.get("accumulate_grad", False)))
