"""Walking through a folder that may hold anything: what cannot be read, or has no notebook, is named."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils.checks.registry import LESSONS
from course_utils.grading.intake import archives

MAX_DEPTH = 32  # folders within folders
MAX_FOLDERS = 2_000  # of one student: a course copied with all its folders has fewer than a hundred
# What tools leave in a folder, and nobody hands in.
_TOOLS = ("__MACOSX", ".ipynb_checkpoints", ".git", ".github", ".venv", ".vscode", ".idea", ".cache")

_EMPTY = "There is no notebook (.ipynb) in this folder, and no zip."
_HIDDEN = "This folder is hidden (its name begins with a dot), so it is not read. Rename it if it counts."
_LINK = "This folder is a link to another one, which is not followed."
_DEEP = f"Folders lie within folders here, more than {MAX_DEPTH} deep, and are not read."
_MANY = f"More than {MAX_FOLDERS:,} folders lie in this one. The first {MAX_FOLDERS:,} are read, and no others."
# What stands around students' folders, and is none.
_AROUND = (*LESSONS, "submitted")


@dataclass(frozen=True)
class Met:
    """A notebook or zip, or a folder that could not be walked through, with a sentence that says why."""

    path: Path
    trouble: str = ""


def walk(folder: Path) -> Iterator[Met]:
    """Yield the notebooks and zips in a folder and those within it, in order, and the folders that have a trouble.

    Where the folder is one of students, which holds no notebook itself, a student's folder without any has a trouble,
    too, and so has one that is hidden or a link. Raises nothing.
    """
    met = list(_within(folder, 0))
    yield from met
    if any(one.path.parent == folder and archives.is_notebook(one.path.name) for one in met):
        return
    reached = {one.path if one.trouble else one.path.parent for one in met}
    reached |= {above for path in reached for above in path.parents}
    for one in _students(folder):
        if one.is_symlink():
            yield Met(one, _LINK)
        elif one.name.startswith("."):
            if any(not it.trouble for it in _within(one, 1)):
                yield Met(one, _HIDDEN)
        elif one not in reached:
            yield Met(one, _EMPTY)


def _within(folder: Path, depth: int) -> Iterator[Met]:
    """Yield what is met in a folder and those within it. Each student's folder has its own number that is read."""
    waiting: list[tuple[Path, int, Path | None]] = [(folder, depth, folder if depth else None)]
    read: Counter[Path] = Counter()
    while waiting:
        here, depth, student = waiting.pop()
        if student:
            read[student] += 1
            if read[student] > MAX_FOLDERS:
                if read[student] == MAX_FOLDERS + 1:
                    yield Met(student, _MANY)
                continue
        if depth > MAX_DEPTH:
            yield Met(here, _DEEP)
            continue
        try:
            with os.scandir(here) as entries:
                names = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError as error:
            yield Met(here, f"This folder cannot be read: {error.strerror}.")
            continue
        yield from (Met(here / name) for name, is_folder in names if not is_folder and archives.is_wanted((name,)))
        folders = [name for name, is_folder in names if is_folder and not name.startswith(".") and name not in _TOOLS]
        waiting += [(here / name, depth + 1, student or _student(here / name)) for name in reversed(folders)]


def _student(folder: Path) -> Path | None:
    """Return a folder that may be a student's; None for one that lies around those."""
    return None if folder.name.lower() in _AROUND else folder


def _students(folder: Path) -> Iterator[Path]:
    """Yield the folders in a folder that may be students'. What lies in a lesson's folder comes in its place."""
    try:
        found = sorted(path for path in folder.iterdir() if path.is_dir() and path.name not in _TOOLS)
    except OSError:
        return
    for path in found:
        if path.name.lower() in LESSONS and not path.is_symlink():
            inner = list(_students(path))
            yield from inner if inner else [path]
        else:
            yield path
