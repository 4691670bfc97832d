"""The child: it runs one learner's cells, then observes the answers in the cases that the controller sends."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from course_utils.checks import data, examine, exercise, timelimit
from course_utils.checks.blame import named, raised_by_learner
from course_utils.checks.frames import is_learners
from course_utils.checks.observers import aside, by_hand, lookup, telling
from course_utils.checks.observers import realising as reading
from course_utils.grading import wire
from course_utils.grading.sandbox import events
from course_utils.grading.sandbox.integrity import Original
from course_utils.grading.sandbox.threads import ThreadLimit

TOO_LARGE = "the observation is too large to be judged"


class _Nowhere:
    """A stream that takes everything and keeps nothing."""

    encoding, errors, closed = "utf-8", "replace", False

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def fileno(self) -> int:
        return 1


def make_shell() -> InteractiveShell:
    """Make the shell that cells run in, before the fork: it takes 20 ms. It shows nothing and remembers nothing."""
    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryAccessor.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.autoindent = False
    config.InteractiveShell.logappend = ""
    shell: InteractiveShell = InteractiveShell.instance(config=config)
    shell.user_ns["__name__"] = "__main__"
    # A formatted traceback takes 0.3 s, and nobody would read it.
    for owner, name in ((shell, "showtraceback"), (shell, "showsyntaxerror"), (shell.display_pub, "publish")):
        setattr(owner, name, _nothing)
    return shell


def _nothing(*arguments: object, **named: object) -> None:
    """Do nothing: this notebook is being graded."""


def serve(
    line: socket.socket, shell: InteractiveShell, original: Original, observers: Mapping[str, lookup.Observer]
) -> None:
    """Answer the controller's requests until it hangs up. What this needs is bound before learner code runs.

    `observers` holds the lesson's by exercise. An answer without one is a value.
    """
    observe, usable, raised = examine.observe, exercise.unusable, raised_by_learner
    decode, encode = data.decode, data.encode
    Case, Raised, value = data.Case, data.Raised, lookup.value
    send, receive = wire.send, wire.receive
    Tried, Seen, tried = wire.Tried, wire.Seen, examine.tried
    sys.stdout = sys.stderr = _Nowhere()
    function, vars_of, realising = FunctionType, vars, reading.realising
    teller, gather, noticed = events.Teller(line), telling.gather, by_hand.noticed
    telling.listen_for_good(teller.tell)
    auditing = aside.Auditing(is_learners)
    threads = ThreadLimit(auditing.thread)
    answer: object = ...
    used: object = ...
    observer: Any = value
    cut = False
    while True:
        request = receive(line, wire.Request)
        if isinstance(request, wire.Run):
            if request.second:
                telling.observe_otherwise()
            ran = _run(shell, request, threads)
            sys.stdout = sys.stderr = _Nowhere()
            original.restore()
            send(line, ran)
        elif isinstance(request, wire.Try):
            answer = dict.get(shell.user_ns, request.name, ...)
            observer = observers.get(request.exercise, value)
            used = answer if request.call == request.name else realising(answer)
            problem: Any = None
            if answer is not ...:
                problem = tried(partial(usable, request.name, request.call, answer), request.seconds)
            # After a case that its time made the last, and after a look that may have run learner's code.
            if cut or not (type(answer) is function and not vars_of(answer)):
                original.restore()
                cut = False
            text = data.printable(problem)[:4000] if type(problem) is str else ""
            send(line, Tried(request.token, answer is not ..., text))
        else:
            case = Case(request.case, decode(request.given))
            teller.begin(request.token)
            auditing.begin()
            try:
                seen, warnings = noticed(partial(observe, observer, used, case, request.seed, request.seconds))
            except BaseException as error:
                seen, warnings = raised(error), []
            auditing.end()
            gather()
            cut = not request.last
            changed = [] if cut else original.restore()
            message = encode(seen)
            if len(message) > wire.MAX_FRAME // 2:
                message = encode(Raised("TooLarge", TOO_LARGE))
            texts = tuple(str(text)[:1000] for text in warnings[:10])
            send(line, Seen(request.token, message, texts, tuple(changed[:10])))


def _run(shell: InteractiveShell, request: wire.Run, threads: ThreadLimit) -> wire.Ran:
    """Run the cells. An error in one does not stop the rest."""
    stopped, starved, crowded = [], [], []
    raised: list[tuple[int, str]] = []
    time_limit, time_up = timelimit.time_limit, timelimit.TimeUp
    for number, source in enumerate(request.sources):
        error: BaseException | None
        threads.begin()
        try:
            with time_limit(request.seconds):
                result = shell.run_cell(source, silent=True)
            error = result.error_before_exec or result.error_in_exec
        except BaseException as escaped:
            error = escaped
        if threads.reached or isinstance(error, time_up):
            threads.end()
        if threads.reached:
            crowded.append(number)
        elif isinstance(error, time_up):
            stopped.append(number)
        elif isinstance(error, MemoryError) or (type(error) is RuntimeError and "allocate memory" in str(error)):
            starved.append(number)
        elif error is not None and len(raised) < wire.MAX_RAISED:
            raised.append((number, named(error)[: wire.MAX_NAMED]))
    threads.begin()
    return wire.Ran(request.token, tuple(stopped), tuple(starved), tuple(crowded), tuple(raised))


def disarm() -> None:
    """Make `check` and its like do nothing: cells that call them must not need the exercises, which are not here."""
    course_utils: Any = sys.modules["course_utils"]

    homes = {"check": "check", "hint": "guidance", "solution": "guidance", "progress": "progress"}
    for name, home in homes.items():
        module = import_module(f"course_utils.checks.{home}")
        setattr(module, name, _nothing)
        setattr(course_utils, name, _nothing)
    course_utils.CheckFailed = import_module("course_utils.checks.check").CheckFailed
    for name in set(course_utils.__all__) - set(homes):
        setattr(course_utils, name, getattr(course_utils, name))


def reseed() -> None:
    """Give this child random numbers of its own: a fork continues its parent's."""
    import random

    import torch

    torch.default_generator.manual_seed(int.from_bytes(os.urandom(7), "big"))
    random.seed()


def _train() -> None:
    """Train a little with the layers of the scenes: what PyTorch does when each is first used is done in no child."""
    import torch
    from torch import nn

    image = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    row = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Tanh(), nn.Dropout(), nn.Linear(8, 8))
    recurrent = nn.LSTM(8, 3, batch_first=True)
    parts = nn.ModuleList([image, row, recurrent])
    result, _ = recurrent(row(image(torch.ones(2, 1, 4, 4)).unflatten(0, (1, 2))))
    scores = result.flatten(0, 1)
    loss = nn.functional.cross_entropy(scores, torch.tensor([0, 1])) + nn.functional.mse_loss(scores, scores.detach())
    loss.backward()
    nn.utils.clip_grad_norm_(parts.parameters(), 1.0)
    for kind in (torch.optim.SGD, torch.optim.Adam):
        kind(parts.parameters(), lr=0.1).step()


def warm_up() -> None:
    """Do once what imports more of PyTorch, or fills matplotlib's caches, when it is first done."""
    import torch
    from matplotlib import pyplot
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.checkpoint import checkpoint

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return function(*args, **(kwargs or {}))

    examine.warm_up()
    checkpoint(torch.nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True), use_reentrant=False).sum().backward()
    with Mode():  # type: ignore[no-untyped-call]
        _train()
    _train()
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    torch.func.vmap(torch.func.grad(lambda t: (t * t).sum()))(torch.ones(2, 2))
    torch.func.jvp(torch.sin, (torch.ones(2),), (torch.ones(2),))
    torch.autograd.gradcheck(lambda t: t * t, (x,))
    torch.autograd.functional.hessian(lambda t: (t**3).sum(), x.detach())
    repr(x)
    figure, axes = pyplot.subplots()
    axes.semilogy([1, 10], label="fonts, and the powers of ten along an axis")
    axes.legend()
    figure.tight_layout()
    figure.canvas.draw()
    pyplot.close(figure)
