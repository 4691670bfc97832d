"""Run lessons, masters and answers under every setting: `python -m tests.portable [--all] [LESSON ...]`.

Names each cell whose output is not the stored one, and each verdict that another setting decides, and then ends with 1.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from course_utils import notebooks
from tests.portable import ROOT, SETTINGS
from tests.selection import commit, drawn

PROCESSES = 2
# Of 1,241 wrong answers. The commit draws them, so that commits that follow each other try others.
DRAWN = 200
# Pages beside the lessons, and the share of them that the commit draws.
FURTHER, FURTHER_SHARE = ("deeper", "questions"), 0.3

Verdicts = dict[str, list[Any]]


def main() -> int:
    """Run everything, print what differs, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.portable", description=__doc__)
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="limits all to lessons that begin so, as in 04")
    parser.add_argument("--all", action="store_true", help="try every wrong answer, and every page that goes deeper")
    asked = parser.parse_args()
    begun = time.monotonic()
    paths = notebooks.sources(ROOT, asked.lessons)
    if not asked.all:
        further = drawn([path.name for path in paths if path.parent.name in FURTHER], FURTHER_SHARE)
        paths = [path for path in paths if path.parent.name not in FURTHER or path.name in further]
    problems = 0
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(PROCESSES) as pool:
        kernels = install_kernels(Path(scratch))
        arguments = [commit(), str(10**6 if asked.all else DRAWN), *asked.lessons]
        runs = {
            setting: (
                pool.submit(verdicts_under, setting, Path(scratch) / f"{kernels[setting]}.json", arguments),
                [pool.submit(cells_that_differ, path, kernels[setting]) for path in paths],
            )
            for setting in SETTINGS
        }
        expected = runs["as is"][0].result()
        print(f"{len(paths)} notebooks, {len(expected)} answers, drawn by commit {arguments[0]}", flush=True)
        for setting, (verdicts, cells) in runs.items():
            found = list(itertools.chain.from_iterable(future.result() for future in cells))
            found += verdicts_that_differ(expected, verdicts.result())
            print(f"{setting}: {len(found) or 'nothing'} differs", flush=True)
            for problem in found:
                print(f"  {problem}", flush=True)
            problems += len(found)
    print(f"{time.monotonic() - begun:.0f} seconds")
    return int(problems > 0)


def install_kernels(folder: Path) -> dict[str, str]:
    """Make a Jupyter kernel for each setting, where this process looks for kernels. Return their names."""
    return {setting: install_kernel(folder, setting, env=environment) for setting, environment in SETTINGS.items()}


def install_kernel(folder: Path, title: str, python: str = sys.executable, env: Mapping[str, str] | None = None) -> str:
    """Make a Jupyter kernel of a Python, below `folder`, where this process then looks for kernels. Return its name."""
    place = folder / "kernels" / title.replace(" ", "-")
    place.mkdir(parents=True)
    command = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    text = json.dumps({"argv": command, "display_name": title, "language": "python", "env": env or {}})
    (place / "kernel.json").write_text(text, encoding="utf-8")
    os.environ["JUPYTER_PATH"] = str(folder)
    return place.name


def cells_that_differ(path: Path, kernel: str) -> list[str]:
    """Run a notebook and return, for each cell with other outputs than the stored, a sentence that names it."""
    stored = notebooks.read(path)
    try:
        built = notebooks.run(path, kernel)
    except notebooks.NotebookError as error:
        return [str(error)]
    notebooks.keep_stored(built, stored)
    pairs = zip(stored.cells, built.cells, strict=True)
    return [
        f"{path.relative_to(ROOT)}, cell {new.id}: {difference(old.outputs, new.outputs)}"
        for old, new in pairs
        if new.cell_type == "code" and old.outputs != new.outputs
    ]


def difference(stored: list[Any], built: list[Any]) -> str:
    """Say where the text of two lists of outputs parts, or that a plot is another."""
    for old, new in itertools.zip_longest(lines_of(stored), lines_of(built), fillvalue=""):
        if old != new:
            parts = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
            shown = slice(max(parts - 30, 0), parts + 40)
            return f"stored {old[shown]!r}, here {new[shown]!r}"
    return "another plot"


def lines_of(outputs: list[Any]) -> Iterator[str]:
    """Give all text of outputs, line by line; that of drawings, too."""
    for output in outputs:
        data = output.get("data", {})
        texts = [
            output.get("text", ""),
            output.get("evalue", ""),
            *(data[kind] for kind in data if kind != "image/png"),
        ]
        for text in texts:
            yield from unquote(str(text)).splitlines()


def verdicts_under(setting: str, file: Path, arguments: list[str]) -> Verdicts:
    """Return what `tests.portable.answers` found in a process of its own."""
    command = [sys.executable, "-m", "tests.portable.answers", str(file), *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **SETTINGS[setting]}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{setting}: the answers could not be judged\n{done.stderr}")
    found: Verdicts = json.loads(file.read_text(encoding="utf-8"))
    return found


def verdicts_that_differ(expected: Verdicts, found: Verdicts) -> Iterator[str]:
    """Name right answers that fail, and wrong ones that get another verdict or misconception than as is."""
    for label, (outcome, *told) in found.items():
        if "right answer" in label:
            if outcome != "correct":
                yield f"{label}: {outcome}: {told}"
        elif [outcome, told[0]] != expected[label][:2]:
            yield f"{label}: {outcome} {told}, as is {expected[label]}"


if __name__ == "__main__":
    sys.exit(main())
