"""What has been decided about survivors: those that are equivalent, and those that wait for a decision."""

from functools import cache
from importlib import import_module
from pathlib import Path

from course_utils.checks.registry import exercises

OPEN = Path(__file__).parent / "open.txt"


def equivalent(exercise: str) -> dict[str, str]:
    """Return the mutants that are right answers, each with the reason, from the exercise's file in tests/answers."""
    lesson = exercises()[exercise].lesson
    return getattr(import_module(f"tests.answers.lesson_{lesson}.{exercise}"), "EQUIVALENT", {})


@cache
def undecided() -> dict[str, frozenset[str]]:
    """Return the keys in `open.txt`, by exercise: under a line `[exercise]`, a key a line. Empty where it is gone."""
    lines = OPEN.read_text(encoding="utf-8").splitlines() if OPEN.exists() else []
    found: dict[str, set[str]] = {}
    for line in lines:
        if line.startswith("[") and line.endswith("]") and line[1:-1] in exercises():
            exercise = line[1:-1]
            found[exercise] = set()
        elif line:
            found[exercise].add(line)
    return {exercise: frozenset(keys) for exercise, keys in found.items()}


def write_undecided(survivors: dict[str, list[str]]) -> None:
    """Replace what waits for a decision in some exercises; without any left the file goes."""
    kept = {name: sorted(keys) for name, keys in undecided().items()} | survivors
    parts = ["\n".join([f"[{name}]", *kept[name]]) for name in exercises() if kept.get(name)]
    undecided.cache_clear()
    if parts:
        OPEN.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    else:
        OPEN.unlink(missing_ok=True)
