"""Trying mutants, each in a forked process: one that leaves PyTorch changed, or eats memory, harms no other."""

import gc
import json
import os
import resource
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait

import torch

from course_utils.checks.examine import examine
from course_utils.checks.exercise import Verdict
from course_utils.checks.registry import exercises, observer_for
from tests.answers import RIGHT
from tests.mutation.making import Mutant
from tests.mutation.sources import ANSWER

SECONDS, SEED = 0.5, 7  # as in tests/checks/test_exercises.py
MOST_CPU_SECONDS, MOST_WALL_SECONDS, MOST_BYTES = 30, 120, 4 * 2**30


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


def verdict_on(exercise: str, answer: object, seed: int = SEED, seconds: float = SECONDS) -> Verdict:
    """Return the verdict on an answer, as `check` would give it."""
    return examine(exercises()[exercise], observer_for(exercises()[exercise]), answer, seed, seconds)


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
    waiting: dict[Connection, tuple[Mutant, int, float]] = {}
    for mutant in mutants:
        while len(waiting) >= jobs:
            yield from _ended(waiting)
        reader, writer = Pipe(duplex=False)
        child = os.fork()
        if child == 0:
            _try(mutant, seed, writer)
        writer.close()
        waiting[reader] = (mutant, child, time.monotonic())
    while waiting:
        yield from _ended(waiting)


def _ended(waiting: dict[Connection, tuple[Mutant, int, float]]) -> Iterator[Result]:
    """Yield the results that are there. A process that hangs outside of Python's reach is killed."""
    ready = wait(list(waiting), timeout=1)
    for reader, (mutant, child, begun) in list(waiting.items()):
        if reader in ready:
            try:
                told = json.loads(reader.recv_bytes())
            except EOFError:
                told = {"outcome": "error", "by": ["the process ended"], "message": ""}
        elif time.monotonic() - begun > MOST_WALL_SECONDS:
            os.kill(child, signal.SIGKILL)
            told = {"outcome": "error", "by": ["the process hung"], "message": ""}
        else:
            continue
        del waiting[reader]
        reader.close()
        os.waitpid(child, 0)
        yield Result(mutant, told["outcome"], tuple(told["by"]), told["message"])


def _try(mutant: Mutant, seed: int, writer: Connection) -> None:
    """Try a mutant and end this process."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()  # noqa: PTH123, SIM115
        resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, used + MOST_BYTES))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        writer.send_bytes(json.dumps(_verdict(mutant, seed)).encode())
    finally:
        os._exit(0)


def _verdict(mutant: Mutant, seed: int) -> dict[str, object]:
    program: dict[str, object] = {"__name__": "answer"}
    try:
        exec(compile(mutant.source, "<mutant>", "exec"), program)
    except Exception as error:  # then there is no answer to try
        return {"outcome": "error", "by": ["loads"], "message": f"{type(error).__name__}: {error}"}
    verdict = verdict_on(mutant.exercise, program[ANSWER], seed)
    failed = dict.fromkeys(finding.prop for finding in verdict.findings if not finding.ok)
    by = verdict.misconceptions or tuple(failed)
    return {"outcome": verdict.outcome, "by": list(by), "message": (verdict.messages or ("",))[0]}
