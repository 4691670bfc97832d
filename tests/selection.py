"""Which tests a run takes: all, a sample that the commit draws, or those of what changed."""

import hashlib
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
    "tests/checks/test_exercises.py": 0.1,
    "tests/mutation/test_guards.py": 0.2,
    "tests/mutation/test_mutation.py": 0.02,
    "tests/browser/test_lessons.py": 0.15,
    "tests/browser/test_site.py": 0.35,
    "tests/browser/test_site_whole.py": 0.0,  # `test_site.py` has a sample of its pages
    "tests/browser/test_stepper.py": 0.35,
    "tests/browser/test_theme.py": 0.35,
    "tests/explain/test_provoked.py": 0.15,
    "tests/audit/test_zoo.py": 0.1,
    "tests/audit/": 0.15,
    "tests/grading/test_nbgrader.py": 0.35,
    "tests/grading/test_teaching.py": 0.35,
    "tests/test_skeleton.py": 0.35,
    "tests/grading/test_gradescope.py": 0.35,
    "tests/grading/outgoing/test_github.py": 0.35,
    "tests/explain/test_script.py": 0.35,
    "tests/grading/test_killed.py": 0.25,
    "tests/grading/test_agreement.py": 0.02,
    "tests/grading/controller/test_cluster.py": 0.25,
    "tests/grading/controller/test_pool.py::test_the_masters": 0.15,
    "tests/grading/controller/test_pool.py": 0.5,
    "tests/grading/outgoing/test_autograded.py": 0.35,
    "tests/grading/outgoing/test_posting.py::test_ended_at_any_step": 0.25,
    "tests/grading/outgoing/test_posting.py::test_killed_at_random": 0.25,
    "tests/grading/sandbox/test_attacks.py": 0.12,
    "tests/grading/sandbox/test_threads.py": 0.35,
    "tests/grading/sandbox/test_behaviour.py": 0.15,
    "tests/grading/sandbox/test_naive.py": 0.25,
    "tests/checks/observers/test_telling.py": 0.12,
    "tests/attached/": 0.35,
    "tests/test_colab.py": 0.35,
    "tests/browser/test_copy.py": 0.35,
    "tests/browser/test_report.py": 0.35,
    "notebooks/deeper/": 0.12,
    "notebooks/questions/": 0.1,
    "notebooks/": 0.2,
    "solutions/": 0.2,
}
# Where the tests of a file share something dear, they are drawn together.
_TOGETHER = (
    "test_cluster.py",
    "test_naive.py",
    "test_nbgrader.py",
    "test_gradescope.py",
    "test_github.py",
    "test_site.py",
    "test_stepper.py",
    "test_theme.py",
    "test_behaviour.py",
    "test_report.py",
)
# What these tests read beside the modules that they mirror: a change of it concerns them.
READS = {
    "tests/attached/test_attached.py": ("tests/attached/", "course_utils/checks/scenes/"),
    "tests/browser/test_copy.py": ("course_utils/copies.py",),
    "tests/browser/test_report.py": ("course_utils/grading/outgoing/",),
    "tests/checks/observers/test_telling.py": (
        "course_utils/checks/observers/runs.py",
        "course_utils/checks/observers/passes.py",
    ),
    "tests/grading/controller/test_pool.py": ("course_utils/grading/controller/", "course_utils/grading/sandbox/"),
    "tests/grading/sandbox/test_attacks.py": ("course_utils/grading/sandbox/", "course_utils/grading/wire.py"),
    "tests/grading/sandbox/test_threads.py": ("course_utils/grading/sandbox/",),
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
    chosen = set()
    for test in tests:
        share = next((share for place, share in SHARES.items() if test.startswith(place)), 1.0)
        if drawn(unit(test), share) or concerns(test, changed("HEAD~1")):
            chosen.add(test)
    return chosen


def unit(test: str) -> str:
    """Return what is drawn as one: a notebook, all tests of an exercise, or a single test."""
    file, _, name = test.partition("::")
    if file.endswith((".ipynb", *_TOGETHER)):
        return file
    parameter = re.search(r"\[(?:\d+-)?(\w+?)(?:-.*)?\]$", name)
    return f"{file}[{parameter[1]}]" if parameter and file.endswith("test_exercises.py") else test


def drawn(unit: str, share: float) -> bool:
    """Return whether the commit draws a unit. Every process of a run draws the same."""
    number = hashlib.sha256(f"{commit()} {unit}".encode()).digest()
    return int.from_bytes(number[:4], "big") < share * 2**32


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
    """Return the test files and notebooks that hold the tests of these files."""
    found = set()
    for file in files:
        if _EXERCISE.fullmatch(file):
            found |= {"tests/checks/test_exercises.py", *_BY_EXERCISE}
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
    return Counter(place for test in tests for place in SHARES if test.startswith(place))


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
