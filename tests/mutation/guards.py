"""Which sentence of a task is guarded by which finding, and which wrong answer shows it.

An exercise lists them as `GUARDS` in its file in tests/answers: `{"sentence of the task": {"finding": wrong answer}}`.
Each wrong answer breaks the one thing and nothing else. `python -m tests.mutation.guards walk` prints the findings of
an exercise, and the wrong answers that fail one alone.
"""

from functools import cache
from importlib import import_module
from pathlib import Path

import click

from course_utils.checks.registry import exercises
from course_utils.notebooks import files
from tests.answers import RIGHT
from tests.checks.verdicts import PATIENT_SECONDS, verdict_on
from tests.mutation.__main__ import chosen
from tests.mutation.seeds import answers

ROOT = Path(__file__).parents[2]
FRAME = {"attempted", "alone", "records"}


def guards(name: str) -> dict[str, dict[str, object]]:
    """Return what guards each sentence of an exercise's task; nothing where nobody wrote it down."""
    return getattr(import_module(f"tests.answers.lesson_{exercises()[name].lesson}.{name}"), "GUARDS", {})


@cache
def task(name: str) -> str:
    """Return the text of an exercise's task, in one line, after what its notebook says of all its tasks."""
    cells = files.read(ROOT / "solutions" / f"{exercises()[name].lesson}.ipynb").cells
    (text,) = [
        it.source for it in cells if it.cell_type == "markdown" and f". {exercises()[name].title}\n" in it.source
    ]
    return " ".join(f"{cells[0].source} {text}".split())


def failed(name: str, answer: object) -> set[str]:
    """Return the findings that an answer fails."""
    return {it.prop for it in verdict_on(name, answer, PATIENT_SECONDS).findings if not it.ok}


def findings(name: str) -> list[str]:
    """Return the findings about right answers to an exercise, in the order in which they are found.

    What all stages of the engine begin with (`judges/lesson_11_build_your_own/stages.py`) is left out: it is no
    sentence of a stage's own, and tests/checks/test_stages.py breaks each of it.
    """
    verdicts = [verdict_on(name, answer, seconds=20) for answer in RIGHT[name]]
    found = dict.fromkeys(it.prop for verdict in verdicts for it in verdict.findings)
    return [it for it in found if not exercises()[name].answer or (it not in FRAME and not it.startswith("needs "))]


@click.command()
@click.argument("wanted", nargs=-1)
def main(wanted: tuple[str, ...]) -> None:
    """Print the findings of exercises, and which wrong answers fail one of them alone."""
    for name in chosen(wanted):
        broken = {label: failed(name, it) for label, it in answers(name).items() if not label.startswith("right")}
        click.echo(f"{name}: {task(name)}")
        for finding in dict.fromkeys([*findings(name), *sorted(set().union(*broken.values()))]):
            alone = [label for label, found in broken.items() if found == {finding}]
            click.echo(f"  {finding}: {', '.join(alone) or '(no wrong answer fails it alone)'}")


if __name__ == "__main__":
    main()
