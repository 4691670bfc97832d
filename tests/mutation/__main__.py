"""`python -m tests.mutation [EXERCISE or LESSON ...]`: what the checks say to mutants of right answers."""

from collections import Counter

import click

from course_utils.checks.registry import exercises
from tests.checks.verdicts import SEED
from tests.mutation.decided import equivalent, undecided, write_undecided
from tests.mutation.making import mutants
from tests.mutation.running import Result, results, warm


@click.command()
@click.argument("wanted", nargs=-1)
@click.option("--seed", default=SEED, show_default=True, help="of the cases")
@click.option("--jobs", default=2, show_default=True, help="processes at a time")
@click.option("--only", "part", help="only mutants with this text in their key")
@click.option("--list", "listed", is_flag=True, help="only list the mutants")
@click.option("--killed", is_flag=True, help="list also what each mutant was killed by")
@click.option("--open", "opened", is_flag=True, help="write undecided survivors to open.txt")
def main(
    wanted: tuple[str, ...], seed: int, jobs: int, part: str | None, listed: bool, killed: bool, opened: bool
) -> None:
    """Try the mutants of the right answers to exercises, by name (walk), or to those of a lesson, by number (01)."""
    names = chosen(wanted)
    made = {name: [it for it in mutants(name) if not part or part in it.key] for name in names}
    if listed:
        for name in names:
            click.echo("\n".join([f"{name}: {len(made[name])} mutants", *(f"  {it.key}" for it in made[name])]))
        return
    warm(names)
    total: Counter[str] = Counter()
    survivors: dict[str, list[str]] = {}
    for name in names:
        tried = list(results(made[name], seed, jobs))
        order = {it.key: place for place, it in enumerate(made[name])}
        tried.sort(key=lambda result: order[result.mutant.key])
        total += report(name, tried, killed)
        survivors[name] = [it.mutant.key for it in tried if it.survived and it.mutant.key not in equivalent(name)]
    if opened:
        write_undecided(survivors)
    score = 100 * total["killed"] / max(total["made"] - total["equivalent"], 1)
    click.echo(
        f"\n{len(names)} exercises, {total['made']} mutants: "
        f"{total['killed']} killed, {total['equivalent']} equivalent, "
        f"{total['open']} undecided, {total['new']} new survivors. Mutation score {score:.2f} %"
    )


def chosen(wanted: tuple[str, ...]) -> list[str]:
    """Return the exercises that names and lesson numbers stand for, in the order of the course; all for none."""
    found = [
        name
        for name, exercise in exercises().items()
        if not wanted or name in wanted or exercise.lesson.partition("_")[0] in wanted
    ]
    unknown = set(wanted) - set(exercises()) - {it.lesson.partition("_")[0] for it in exercises().values()}
    if unknown:
        raise click.BadParameter(f"neither an exercise nor a lesson's number: {', '.join(sorted(unknown))}")
    return found


def report(name: str, tried: list[Result], killed: bool) -> Counter[str]:
    """Print what became of an exercise's mutants, and return the numbers."""
    decided, waiting = equivalent(name), undecided().get(name, frozenset())
    count = Counter(made=len(tried))
    by: Counter[str] = Counter()
    lines = []
    for result in tried:
        key = result.mutant.key
        if result.survived:
            kind = "equivalent" if key in decided else "open" if key in waiting else "new"
            count[kind] += 1
            if kind != "equivalent":
                lines.append(f"  {'survives' if kind == 'new' else 'undecided'}: {key}")
        else:
            count["killed"] += 1
            by.update(result.by or ("(nothing named)",))
            if killed:
                lines.append(f"  killed by {', '.join(result.by)}: {key}\n      {result.message.splitlines()[0]}")
            if key in decided:
                lines.append(f"  listed as equivalent, and killed: {key}")
    told = ", ".join(f"{what} {number}" for what, number in by.most_common())
    click.echo(f"{name}: {count['made']} made, {count['killed']} killed ({told})", color=False)
    for line in lines:
        click.echo(line)
    return count


if __name__ == "__main__":
    main()
