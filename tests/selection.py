"""Which tests a run takes: all, a sample that the commit draws, or those of what changed."""

import hashlib
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]

# What is large, and the share of it that guards a commit (`make test`). `make nightly` runs the whole.
SHARES = {
    "tests/checks/test_exercises.py": 0.04,
    "tests/checks/test_beside.py": 0.12,
    "tests/mutation/test_guards.py": 0.07,
    "tests/mutation/test_mutation.py": 0.005,
    "tests/browser/test_lessons.py": 0.015,
    "tests/browser/test_site_whole.py": 0.0,  # `test_site.py` has a sample of its pages
    "tests/explain/test_provoked.py": 0.1,
    "tests/audit/test_zoo.py": 0.05,
    "tests/audit/": 0.1,
    "tests/grading/test_agreement.py": 0.005,
    "tests/grading/controller/test_pool.py": 0.15,
    "tests/grading/outgoing/test_posting.py::test_ended_at_any_step": 0.25,
    "tests/grading/sandbox/test_attacks.py": 0.05,
    "tests/checks/observers/test_telling.py": 0.08,
    "notebooks/deeper/": 0.1,
    "notebooks/questions/": 0.1,
    "notebooks/": 0.15,
    "solutions/": 0.2,
}
# Files that take seconds and are drawn as one: their tests share something dear, or wait. A commit draws this share of
# the files, beside those that mirror what it changed.
WHOLE = (
    "tests/attached/test_attached.py",
    "tests/browser/test_copy.py",
    "tests/browser/test_exercise.py",
    "tests/browser/test_report.py",
    "tests/browser/test_site.py",
    "tests/browser/test_stepper.py",
    "tests/browser/test_theme.py",
    "tests/checks/test_timelimit.py",
    "tests/explain/test_extension.py",
    "tests/explain/test_script.py",
    "tests/grading/controller/test_cluster.py",
    "tests/grading/controller/test_hearing.py",
    "tests/grading/controller/test_pool.py::test_the_masters",
    "tests/grading/outgoing/test_autograded.py",
    "tests/grading/outgoing/test_github.py",
    "tests/grading/outgoing/test_posting.py::test_killed_at_random",
    "tests/grading/sandbox/test_behaviour.py",
    "tests/grading/sandbox/test_explained.py",
    "tests/grading/sandbox/test_naive.py",
    "tests/grading/sandbox/test_raised.py",
    "tests/grading/sandbox/test_threads.py",
    "tests/grading/sandbox/test_warm.py",
    "tests/grading/test_gradescope.py",
    "tests/grading/test_killed.py",
    "tests/grading/test_nbgrader.py",
    "tests/grading/test_teaching.py",
    "tests/test_colab.py",
    "tests/test_doctor.py",
    "tests/test_place.py",
    "tests/test_portable.py",
    "tests/test_skeleton.py",
    "tests/test_versions.py",
)
SHARE_OF_WHOLE = 0.09
# What these tests read beside the modules that they mirror: a change of it concerns them.
READS = {
    "tests/attached/test_attached.py": ("tests/attached/", "course_utils/checks/scenes/"),
    "tests/browser/test_copy.py": ("course_utils/copies.py",),
    "tests/browser/test_exercise.py": ("course_utils/checks/show.py", "course_utils/checks/check.py"),
    "tests/browser/test_report.py": ("course_utils/grading/outgoing/",),
    "tests/checks/observers/test_telling.py": (
        "course_utils/checks/observers/runs.py",
        "course_utils/checks/observers/passes.py",
    ),
    "tests/grading/controller/test_pool.py": ("course_utils/grading/controller/", "course_utils/grading/sandbox/"),
    "tests/grading/sandbox/test_attacks.py": ("course_utils/grading/sandbox/", "course_utils/grading/wire.py"),
    "tests/grading/controller/test_hearing.py": ("course_utils/grading/controller/",),
    "tests/grading/sandbox/test_explained.py": ("course_utils/explain/crossing.py", "course_utils/grading/sandbox/"),
    "tests/grading/sandbox/test_raised.py": ("course_utils/grading/sandbox/",),
    "tests/grading/sandbox/test_threads.py": ("course_utils/grading/sandbox/",),
    "tests/test_portable.py": ("tests/portable/",),
    "tests/test_versions.py": ("tests/versions.py",),
    "tests/test_colab.py": ("docs/colab.py",),
    "tests/grading/sandbox/test_behaviour.py": (
        "course_utils/grading/controller/",
        "course_utils/checks/observers/telling.py",
    ),
    "tests/browser/test_lessons.py": ("course_utils/pictures/",),
    "tests/browser/test_site.py": ("docs/", "notebooks/", "exercises/", "README.md", "TEACHING.md", "GRADING.md"),
    "tests/browser/test_stepper.py": ("course_utils/pictures/",),
    "tests/browser/test_theme.py": ("course_utils/pictures/",),
    "tests/grading/test_nbgrader.py": ("TEACHING.md", "course_utils/notebooks/"),
    "tests/grading/test_teaching.py": ("TEACHING.md", "course_utils/cli.py", "course_utils/grading/commands.py"),
    "tests/grading/outgoing/test_github.py": ("classroom/",),
    "tests/test_skeleton.py": ("tests/answers/__init__.py", "tests/checks/test_exercises.py"),
}
_BY_EXERCISE = ("tests/mutation/test_mutation.py", "tests/mutation/test_guards.py")
_EXERCISE = re.compile(r"(?:course_utils/checks/(?:observers|scenes|judges)|tests/answers)/lesson_\w+/(\w+)\.py")


def sampled(tests: Iterable[str]) -> set[str]:
    """Return the tests that guard a commit, by node id: of what is large a sample, and all about what it changed."""
    tests = list(tests)
    units: dict[str, set[str]] = {}
    for test in tests:
        units.setdefault(place(test), set()).add(unit(test))
    chosen = {one for where, found in units.items() for one in drawn(found, share(where))}
    return {test for test in tests if unit(test) in chosen or concerns(test, changed("HEAD~1"))}


def place(test: str) -> str:
    """Return the key of SHARES that a test belongs to, WHOLE's name, or "" for what always runs."""
    if test.startswith(WHOLE):
        return "WHOLE"
    return next((place for place in SHARES if test.startswith(place)), "")


def share(place: str) -> float:
    """Return how much of a place a commit draws."""
    return SHARE_OF_WHOLE if place == "WHOLE" else SHARES.get(place, 1.0)


def unit(test: str) -> str:
    """Return what is drawn as one: a notebook, all tests of an exercise, a file of WHOLE, or a single test."""
    file, _, name = test.partition("::")
    whole = next((one for one in WHOLE if test.startswith(one)), None)
    if file.endswith(".ipynb") or whole:
        return whole or file
    parameter = re.search(r"\[(?:\d+-)?(\w+?)(?:-.*)?\]$", name)
    return f"{file}[{parameter[1]}]" if parameter and file.endswith("test_exercises.py") else test


def drawn(units: Iterable[str], share: float) -> set[str]:
    """Return the units that the commit draws: so many that a run is about as long for each commit.

    Every process of a run draws the same.
    """
    in_turn = sorted(units, key=lambda unit: hashlib.sha256(f"{commit()} {unit}".encode()).digest())
    return set(in_turn[: math.ceil(share * len(in_turn))])


def concerns(test: str, files: frozenset[str]) -> bool:
    """Return whether a test is about any of the files: itself, the one that it mirrors, an exercise, a notebook."""
    file = test.partition("::")[0]
    if file in files or any(one.startswith(READS.get(file, ())) for one in files):
        return True
    for changed_file in files:
        exercise = _EXERCISE.fullmatch(changed_file)
        if exercise:
            if unit(test) == f"tests/checks/test_exercises.py[{exercise[1]}]":
                return True
            if file in _BY_EXERCISE and test.endswith(f"[{exercise[1]}]"):
                return True
        elif file == mirror(changed_file):
            return True
    return False


def mirror(file: str) -> str:
    """Return the test file of a module of the package."""
    folder, _, name = file.removeprefix("course_utils/").rpartition("/")
    return "/".join(part for part in ("tests", folder, f"test_{name}") if part)


def recent() -> frozenset[str]:
    """Return the files that differ from the last commit; where none does, those that the last commit changed."""
    return changed("HEAD") or changed("HEAD~1")


def homes(files: Iterable[str]) -> list[str]:
    """Return the test files and notebooks that hold the tests of these files.

    All mutants of one exercise take half a minute: `make test` tries them.
    """
    found = set()
    for file in files:
        if _EXERCISE.fullmatch(file):
            found |= {"tests/checks/test_exercises.py", "tests/mutation/test_guards.py"}
        else:
            found.add(mirror(file))
        if re.fullmatch(r"tests/.*test_\w+\.py|(notebooks|solutions)/.*\.ipynb", file):
            found.add(file)
    return sorted(file for file in found if (ROOT / file).exists())


def said(shares: Counter[str], chosen: Counter[str]) -> str:
    """Say how much of what is large a run took."""
    parts = [f"{chosen[place]} of {total} tests in {place}" for place, total in shares.items()]
    return f"sample drawn by commit {commit()[:10]}: {', '.join(parts)}. `make nightly` runs all."


def large(tests: Iterable[str]) -> Counter[str]:
    """Count tests by the large places that they stand in."""
    places = ((unit(test) if place(test) == "WHOLE" else place(test)) for test in tests)
    return Counter(filter(None, places))


@cache
def commit() -> str:
    """Return the commit that a run is of; "none" outside a checkout."""
    return _git("rev-parse", "HEAD") or "none"


@cache
def changed(since: str) -> frozenset[str]:
    """Return the files that differ from a commit, those included that git does not know yet."""
    new = _git("ls-files", "--others", "--exclude-standard")
    return frozenset([*_git("diff", "--name-only", since).splitlines(), *new.splitlines()])


def main() -> int:
    """Run the tests of what changed."""
    files = homes(recent())
    if not files:
        print("No test mirrors what changed.")
        return 0
    print("Tests of what changed:", *files)
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "2", "--changed", *files], cwd=ROOT).returncode


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
