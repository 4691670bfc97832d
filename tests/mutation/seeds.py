"""`python -m tests.mutation.seeds [EXERCISE or LESSON ...]`: which answers are judged differently with another seed.

Grading draws its seed, so an answer that is caught with one and passes with another is a matter of luck.
"""

import click

from tests.answers import MISCONCEIVED, RIGHT, WRONG
from tests.checks.verdicts import SEED
from tests.mutation.__main__ import chosen
from tests.mutation.running import verdicts, warm

SEEDS = (SEED, *range(1001, 1025))


def answers(exercise: str) -> dict[str, object]:
    """Return all answers to an exercise, right, misconceived and wrong, by what they are called here."""
    found: dict[str, object] = {f"right answer {n}": it for n, it in enumerate(RIGHT[exercise])}
    found |= {f"misconception {idea!r}": it for (name, idea), it in MISCONCEIVED.items() if name == exercise}
    return found | {f"wrong answer {n}": it for n, it in enumerate(WRONG[exercise])}


def differing(exercise: str, seeds: tuple[int, ...] = SEEDS, jobs: int = 2) -> list[str]:
    """Return a line for each answer whose outcome or misconceptions are not those of the first seed with all seeds."""
    found = answers(exercise)
    lines = []
    for label, told in verdicts(exercise, found, seeds, jobs):
        kinds: dict[tuple[str, ...], list[int]] = {}
        for seed, verdict in zip(seeds, told, strict=True):
            kinds.setdefault(verdict, []).append(seed)
        if len(kinds) > 1:
            parts = [f"{', '.join(kind)} with {len(of)} (seed {of[0]})" for kind, of in kinds.items()]
            lines.append(f"{exercise}, {label}: {'; '.join(parts)}")
    return lines


@click.command()
@click.argument("wanted", nargs=-1)
@click.option("--jobs", default=2, show_default=True, help="processes at a time")
def main(wanted: tuple[str, ...], jobs: int) -> None:
    """Say which answers are judged differently with different seeds."""
    names = chosen(wanted)
    warm(names)
    for name in names:
        for line in differing(name, jobs=jobs):
            click.echo(line)
    click.echo(f"{sum(len(answers(name)) for name in names)} answers to {len(names)} exercises, {len(SEEDS)} seeds.")


if __name__ == "__main__":
    main()
