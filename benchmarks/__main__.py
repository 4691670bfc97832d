"""Print the benchmark table: `make bench`. To keep it: `python -m benchmarks > benchmarks/README.md`.

Each part is measured in a process of its own: torchlens, where it is installed, wraps PyTorch's functions for good, and
what is measured after it would pay for that. `python -m benchmarks audit costs` prints the rows of these parts alone.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import torch

_PARTS = ("graphs", "passes", "steppers", "explain", "audit", "costs", "engines", "keeping", "second_look", "grading")

_INTRODUCTION = """\
# Benchmarks

`make bench` prints this page; `.venv/bin/python -m benchmarks > benchmarks/README.md` keeps it. Times come from a
noisy machine. Ratios are of medians, and what is compared ran in turn in one process.
"""


def machine() -> str:
    """Name the machine that the numbers belong to."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    python = platform.python_version()
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()}, Python {python}, torch {torch.__version__}"


def main(parts: list[str]) -> int:
    """Print the page, or the rows of some parts. Returns 1 where a limit is not kept."""
    if parts:
        return rows_of(parts)
    print(_INTRODUCTION)
    print(f"Measured on {datetime.date.today():%Y-%m-%d}: {machine()}.\n")
    print("| what | result | limit | kept |\n| --- | --- | --- | --- |", flush=True)
    ends = [subprocess.run([sys.executable, "-m", "benchmarks", part]).returncode for part in _PARTS]
    return int(any(ends))


def rows_of(parts: list[str]) -> int:
    """Measure some parts here, and print their rows. Returns 1 where a limit is not kept."""
    warnings.simplefilter("ignore")
    kept = True
    for row in (row for part in parts for row in import_module(f"benchmarks.{part}").rows()):
        kept &= row.holds
        answer = "" if not row.limit else "yes" if row.holds else "**no**"
        print(f"| {row.what} | {row.result} | {row.limit} | {answer} |", flush=True)
    return 0 if kept else 1


sys.exit(main(sys.argv[1:]))
