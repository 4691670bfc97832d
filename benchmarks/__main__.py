"""Print the benchmark table: `make bench`. To keep it: `python -m benchmarks > benchmarks/README.md`."""

from __future__ import annotations

import datetime
import os
import platform
import sys
import warnings
from pathlib import Path

import torch

from benchmarks import audit, costs, engines, explain, grading, graphs, keeping, passes, second_look, steppers

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


def main() -> int:
    """Print the page. Returns 1 where a limit is not kept."""
    warnings.simplefilter("ignore")
    print(_INTRODUCTION)
    print(f"Measured on {datetime.date.today():%Y-%m-%d}: {machine()}.\n")
    print("| what | result | limit | kept |\n| --- | --- | --- | --- |")
    kept = True
    parts = (graphs, passes, steppers, explain, audit, costs, engines, keeping, second_look, grading)
    for row in (row for part in parts for row in part.rows()):
        kept &= row.holds
        answer = "" if not row.limit else "yes" if row.holds else "**no**"
        print(f"| {row.what} | {row.result} | {row.limit} | {answer} |", flush=True)
    return 0 if kept else 1


sys.exit(main())
