"""Trying mutants, each in a forked process: one that leaves PyTorch changed, or eats memory, harms no other."""

import contextlib
import gc
import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, TypeVar

import torch

from tests.answers import RIGHT
from tests.checks.verdicts import SEED, verdict_on
from tests.mutation.engines import judged_by
from tests.mutation.making import Mutant
from tests.mutation.sources import ANSWER

MOST_CPU_SECONDS, MOST_WALL_SECONDS, MOST_BYTES = 60, 240, 4 * 2**30
ENDLESS_SEEDS = 3  # with how many seeds an answer is tried that does not end
Label = TypeVar("Label")


@dataclass(frozen=True)
class Result:
    """What became of a mutant: "correct" is a survivor. `by`: the misconceptions, or else the findings that failed."""

    mutant: Mutant
    outcome: str
    by: tuple[str, ...] = ()
    message: str = ""

    @property
    def survived(self) -> bool:
        return self.outcome == "correct"


def warm(names: Iterable[str]) -> None:
    """Let this process import and remember what verdicts need, so that what it forks begins with the work."""
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    for name in names:
        for answer in RIGHT[name]:
            verdict_on(name, answer, seconds=20)
    gc.collect()
    gc.freeze()


def results(mutants: Iterable[Mutant], seed: int = SEED, jobs: int = 2) -> Iterator[Result]:
    """Yield what became of each mutant, as they end. This process should be warm."""
    for mutant, told in forked(((it, partial(_verdict, it, seed)) for it in mutants), jobs):
        yield Result(mutant, *told) if told else Result(mutant, "error", ("the process ended",))


def verdicts(
    exercise: str, answers: dict[str, object], seeds: tuple[int, ...], jobs: int = 2
) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Yield for each answer, by its label, the outcome and the misconceptions with each seed, as they end."""
    tasks = ((label, partial(_outcomes, exercise, answer, seeds)) for label, answer in answers.items())
    for label, told in forked(tasks, jobs):
        told = told[: len(seeds)] if told else None
        yield label, [tuple(it) for it in told or [("the process ended",)] * len(seeds)]


def forked(tasks: Iterable[tuple[Label, Callable[[], Any]]], jobs: int) -> Iterator[tuple[Label, Any]]:
    """Run each task in a process of its own and yield what it returned, as JSON holds it; None where it did not end."""
    waiting: dict[Connection, tuple[Label, int, float]] = {}
    for label, task in tasks:
        while len(waiting) >= jobs:
            yield from _ended(waiting)
        reader, writer = Pipe(duplex=False)
        child = os.fork()
        if child == 0:
            _do(task, writer)
        writer.close()
        waiting[reader] = (label, child, time.monotonic())
    while waiting:
        yield from _ended(waiting)


def _ended(waiting: dict[Connection, tuple[Label, int, float]]) -> Iterator[tuple[Label, Any]]:
    """Yield the results that are there. A process that hangs outside of Python's reach is killed."""
    ready = wait(list(waiting), timeout=1)
    for reader, (label, child, begun) in list(waiting.items()):
        told = None
        if reader in ready:
            with contextlib.suppress(EOFError):
                told = json.loads(reader.recv_bytes())
        elif time.monotonic() - begun > MOST_WALL_SECONDS:
            os.kill(child, signal.SIGKILL)
        else:
            continue
        del waiting[reader]
        reader.close()
        os.waitpid(child, 0)
        yield label, told


def _do(task: Callable[[], Any], writer: Connection) -> None:
    """Do a task and end this process."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MOST_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        writer.send_bytes(json.dumps(task()).encode())
    finally:
        os._exit(0)


def _verdict(mutant: Mutant, seed: int) -> tuple[str, tuple[str, ...], str]:
    program: dict[str, object] = {"__name__": "answer"}
    try:
        exec(compile(mutant.source, "<mutant>", "exec"), program)
    except Exception as error:  # then there is no answer to try
        return "error", ("loads",), f"{type(error).__name__}: {error}"
    for exercise in judged_by(mutant.exercise):
        verdict = verdict_on(exercise, program[ANSWER], seed=seed)
        if verdict.outcome != "correct":
            break
    failed = dict.fromkeys(finding.prop for finding in verdict.findings if not finding.ok)
    return verdict.outcome, verdict.misconceptions or tuple(failed), (verdict.messages or ("",))[0]


def _outcomes(exercise: str, answer: object, seeds: tuple[int, ...]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for seed in seeds:
        verdict = verdict_on(exercise, answer, seed=seed)
        found.append((verdict.outcome, *verdict.misconceptions))
        endless = any(it.prop == "ends" and not it.ok for it in verdict.findings)
        if endless and len(found) == ENDLESS_SEEDS and len(set(found)) == 1:
            return found * (len(seeds) // ENDLESS_SEEDS + 1)  # as long as the limit each time
    return found
