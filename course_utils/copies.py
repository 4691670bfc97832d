"""The learner's own copy of the course: made once, renewed without a loss, and never the sources themselves."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nbformat.sign import NotebookNotary

from course_utils.notebooks.files import NotebookError, read, to_bytes
from course_utils.place import HOME

FOLDER = "my-course"
BEFORE = "before"  # what was renewed, or started again, is kept here
RELEASE = ".release"  # the sources that each file was made from: what the learner changed is told against these
FOLDERS = ("notebooks", "notebooks/deeper", "notebooks/questions", "exercises")
SETTLES = "settles"  # the tag of a text that answers a prediction

Change = Literal["made", "renewed", "laid beside", "started again"]


@dataclass(frozen=True)
class Written:
    """A file of the copy that was written, why, and where the one that it replaced is kept."""

    path: Path
    change: Change
    kept: Path | None = None

    def __str__(self) -> str:
        said = {
            "made": f"{self.path}: new",
            "renewed": f"{self.path}: renewed, as you had changed nothing in it; the old one is {self.kept}",
            "laid beside": f"{self.path}: the new version of a notebook that you have changed; yours is as it was",
            "started again": f"{self.path}: started again; the old one is {self.kept}",
        }
        return said[self.change]


def place() -> Path:
    """Return where the learner's copy is, or will be: $COURSE_COPY, else `FOLDER` in the clone or where you are."""
    return Path(os.environ.get("COURSE_COPY") or HOME / FOLDER).absolute()


def renew(course: Path, own: Path) -> list[Written]:
    """Bring a learner's copy of the course up to date, and return what was written.

    `course` is the folder with the committed notebooks, `own` the copy, made if there is none. A notebook that the
    learner has not changed is renewed, and one that is changed both here and there gets its new version beside it.
    "Changed" means the sources of cells, against those that the file was made from: JupyterLab rewrites the rest.
    Nothing is deleted.

    Raises NotebookError for a damaged notebook of the course. A damaged one of the learner's counts as changed.
    """
    written = []
    for source, name in notebooks_of(course):
        mine, base = own / name, own / RELEASE / name
        new = _learners(source)
        if not mine.exists():
            change: Change = "made"
        elif not base.exists() or sources(new) == sources(read(base)):
            continue
        elif _unchanged(mine, base):
            change = "renewed"
        else:
            change = "laid beside"
        target = mine.with_suffix(".new.ipynb") if change == "laid beside" else mine
        kept = _keep(target, own) if target.exists() else None
        _write(new, target)
        _write(new, base)
        written.append(Written(target, change, kept))
    _copy_plain_files(course, own)
    return written


def start_again(course: Path, own: Path, name: str) -> list[Written]:
    """Give the learner the notebooks whose names begin with `name` as they were at first, and keep the old ones.

    Raises NotebookError where no notebook of the course is called so.
    """
    written = []
    for source, path in _called(course, name):
        kept = _keep(own / path, own) if (own / path).exists() else None
        new = _learners(source)
        _write(new, own / path)
        _write(new, own / RELEASE / path)
        written.append(Written(own / path, "started again" if kept else "made", kept))
    return written


def hand_out(course: Path, folder: Path, name: str, deeper: bool = True) -> list[Path]:
    """Write what students get of the lesson whose notebooks begin with `name` into a folder, and return the paths.

    The folders stand as in the course, so that links between the notebooks hold; a file that is there is written over.
    `deeper` says whether the pages that go deeper are among them.

    Raises NotebookError where no notebook of the course is called so, or one is damaged.
    """
    written = []
    for source, path in _called(course, name):
        if deeper or source.parent.name != "deeper":
            _write(_learners(source), folder / path)
            written.append(folder / path)
    return written


def learners(notebook: Any) -> Any:
    """Return a lesson or exercises as learners get them: without stored outputs, what settles a prediction folded."""
    made = copy.deepcopy(notebook)
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        elif SETTLES in cell.metadata.get("tags", []):
            cell.source = folded(cell.source, "After you have run it")
    return made


def folded(text: str, summary: str) -> str:
    """Return Markdown that shows `summary`, and the text when it is unfolded."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def sources(notebook: Any) -> list[tuple[str, str]]:
    """Return what a learner can change in a notebook: the kind and source of each cell."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def where_they_stopped(own: Path, first: str) -> str:
    """Return the notebook of a copy that the learner saved last, or `first` where none was touched yet."""
    touched = [
        (path.stat().st_mtime, name)
        for folder in FOLDERS
        for path in (own / folder).glob("*.ipynb")
        if (base := own / RELEASE / (name := path.relative_to(own).as_posix())).exists()
        and path.read_bytes() != base.read_bytes()
    ]
    return max(touched)[1] if touched else first


def notebooks_of(course: Path) -> Iterator[tuple[Path, str]]:
    """Yield the notebooks that learners get, folder by folder, each with its place in the course."""
    for folder in FOLDERS:
        for source in sorted((course / folder).glob("*.ipynb")):
            yield source, f"{folder}/{source.name}"


def _called(course: Path, name: str) -> list[tuple[Path, str]]:
    chosen = [(source, path) for source, path in notebooks_of(course) if source.name.startswith(name)]
    if not chosen:
        raise NotebookError(f"no notebook of the course begins with {name!r}; try a number such as 03")
    return chosen


def _learners(source: Path) -> Any:
    notebook = read(source)
    return notebook if source.parent.name == "questions" else learners(notebook)  # nobody predicts in an answer


def _unchanged(mine: Path, base: Path) -> bool:
    try:
        return sources(read(mine)) == sources(read(base))
    except NotebookError:
        return False


def _keep(mine: Path, own: Path) -> Path:
    folder = own / BEFORE
    folder.mkdir(exist_ok=True)
    names = (f"{mine.stem}{'-' if number else ''}{number or ''}.ipynb" for number in range(10_000))
    kept = next(folder / name for name in names if not (folder / name).exists())
    return Path(shutil.move(mine, kept))


def _write(notebook: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_bytes(notebook))
    NotebookNotary().sign(notebook)  # trusted: styles and frames of its outputs are shown


def _copy_plain_files(course: Path, own: Path) -> None:
    """Copy what notebooks link to, and the settings that JupyterLab starts with."""
    for page in course.glob("notebooks/**/README.md"):
        shutil.copy(page, own / page.relative_to(course))
    settings = own / ".lab" / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps(SETTINGS, indent=2), encoding="utf-8")
    workspace = own / WORKSPACES / _WORKSPACE_FILE
    if not workspace.exists():  # later it is the learner's
        workspace.parent.mkdir(exist_ok=True)
        workspace.write_text(json.dumps({"data": _LAYOUT, "metadata": {"id": WORKSPACE}}), encoding="utf-8")


WORKSPACE = "course"
WORKSPACES = ".lab/workspaces"
_WORKSPACE_FILE = "course-a908.jupyterlab-workspace"  # as JupyterLab calls it; to ask would load a server: seconds
# The side panels are folded at first: beside an open one a notebook cannot be read on a narrow screen.
_LAYOUT = {"layout-restorer:data": {"left": {"collapsed": True}, "right": {"collapsed": True}}}

# Defaults of JupyterLab that the learner's own settings still override.
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false"},
}
