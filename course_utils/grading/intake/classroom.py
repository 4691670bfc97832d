"""An nbgrader course: its configuration, its gradebook, and what was handed in."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from course_utils.grading.errors import GradingError
from course_utils.grading.intake.identity import shown, shown_path
from course_utils.grading.intake.reading import bytes_of, content_of
from course_utils.grading.intake.released import CourseNotebook, released_notebooks
from course_utils.grading.submission import Submission

if TYPE_CHECKING:
    from sqlalchemy import Engine

WAIT_SECONDS = 30  # for formgrader, when it writes
_CONFIG = "nbgrader_config"


class ClassroomError(GradingError):
    """An nbgrader course cannot be used as it is. The message says what to change."""


@dataclass(frozen=True)
class Classroom:
    """An nbgrader course. `folder` is as the teacher typed it; `directory` and `config` are nbgrader's own objects.

    `notebooks` are all those of the assignments that pose exercises of this course, by assignment.
    """

    folder: Path
    directory: Any
    config: Any
    engine: Engine
    notebooks: Mapping[str, tuple[CourseNotebook, ...]]

    @property
    def database(self) -> Path:
        """The file of the gradebook. Where that is on a server, a file of the course that stands for it."""
        url = self.engine.url
        is_file = url.get_backend_name() == "sqlite" and url.database
        return Path(str(url.database)) if is_file else Path(self.directory.root, "gradebook")

    def path(self, step: str, student: str, assignment: str) -> Path:
        """Return the folder of a submission in nbgrader's step "submitted" or "autograded"."""
        return Path(self.directory.format_path(getattr(self.directory, f"{step}_directory"), student, assignment))


@dataclass(frozen=True)
class HandedIn:
    """A notebook that a student handed in. `student` is nbgrader's id, `submission` what the grader takes."""

    student: str
    notebook: CourseNotebook
    path: Path
    submission: Submission


def open_classroom(folder: Path) -> Classroom:
    """Read an nbgrader course: nbgrader_config.py or .json, where there is one, and the gradebook that it names.

    Raises ClassroomError where nbgrader is not installed, the configuration cannot be read, or the gradebook is
    missing, cannot be read, or has no assignment with exercises of this course.
    """
    try:
        from nbgrader.coursedir import CourseDirectory
        from sqlalchemy import create_engine
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as error:
        raise ClassroomError(
            f"nbgrader is not installed ({error}). Install the course with it: pip install -c constraints.txt -e "
            "'.[classroom]'"
        ) from error
    config = _config(folder)
    given = config.CourseDirectory.pop("root", ".")
    directory = CourseDirectory(config=config, root=os.path.realpath(folder / str(given)))
    try:
        url = make_url(directory.db_url)
        sqlite = url.get_backend_name() == "sqlite"
        if sqlite:
            url = url.set(database=str(Path(directory.root, url.database or "gradebook.db")))
            if not Path(str(url.database)).exists():
                raise ClassroomError(
                    f"{folder}: there is no gradebook {url.database}. `nbgrader generate_assignment` makes it: run "
                    "that first, or name the folder in which you run nbgrader."
                )
        engine = create_engine(url, connect_args={"timeout": WAIT_SECONDS} if sqlite else {})
        notebooks = released_notebooks(engine)
    except SQLAlchemyError as error:
        raise trouble(folder, error) from error
    if not notebooks:
        raise ClassroomError(
            f"{folder}: nbgrader's gradebook has no assignment with exercises of this course. Put a notebook of "
            f"solutions/ into {directory.source_directory}/<assignment>/ and run `nbgrader generate_assignment`."
        )
    return Classroom(folder, directory, config, engine, notebooks)


def trouble(folder: Path, error: Exception) -> ClassroomError:
    """Return the error that says that nbgrader's gradebook cannot be used, and why."""
    reason = str(getattr(error, "orig", None) or error).splitlines()[0]
    return ClassroomError(
        f"{folder}: nbgrader's gradebook cannot be used: {reason}. If formgrader is busy with it, run this again. If "
        "nbgrader was upgraded, save a copy and run `nbgrader db upgrade`."
    )


def handed_in(room: Classroom, paths: Sequence[Path] = ()) -> list[HandedIn]:
    """Return what lies where nbgrader looks for it, `submitted/<student>/<assignment>/<notebook>.ipynb`, in order.

    Where paths are given, only what lies in them. Notebooks that the gradebook does not know, and those without
    exercises of this course, are passed over, as are links. The gradebook tells the lesson, and the folder the
    student: nothing that a student wrote does.

    Two notebooks of a student for one lesson have one submission, which is unreadable and says so.

    Raises ClassroomError where there is nothing.
    """
    found = sorted(_found(room), key=lambda one: (one.student, one.notebook.assignment, one.notebook.name))
    chosen = set(found) if not paths else set()
    for path in paths:
        real = Path(os.path.realpath(path))
        within = {one for one in found if Path(os.path.realpath(one.path)).is_relative_to(real)}
        if not within:
            raise ClassroomError(f"{path}: {_nothing(room)}")
        chosen |= within
    if not chosen:
        raise ClassroomError(f"{room.folder}: {_nothing(room)}")
    handed: dict[tuple[str, str], list[HandedIn]] = {}
    for one in found:
        if one in chosen:
            handed.setdefault((shown(one.student), one.notebook.lesson), []).append(_handed_in(room, one))
    return [one for group in handed.values() for one in (group if len(group) == 1 else _refused(group))]


def _refused(group: Sequence[HandedIn]) -> list[HandedIn]:
    """Return a student's notebooks for one lesson as one submission that says that there are several."""
    paths = " and ".join(one.submission.path for one in group)
    several = msgspec.structs.replace(
        group[0].submission,
        digest=hashlib.sha256("".join(one.submission.digest for one in group).encode()).hexdigest(),
        cells=(),
        unreadable=f"{group[0].submission.student} has {len(group)} notebooks for lesson {group[0].notebook.lesson}: "
        f"{paths}. Grade them apart: name the folders of one assignment, and another --db.",
    )
    return [replace(one, submission=several) for one in group]


@dataclass(frozen=True, eq=False)
class _Found:
    student: str
    notebook: CourseNotebook
    path: Path


def _found(room: Classroom) -> Iterator[_Found]:
    directory = room.directory
    excluded = directory.student_id_exclude.split(",")
    for assignment, notebooks in room.notebooks.items():
        # The same as nbgrader's own search: its layout is configurable.
        names = {"nbgrader_step": directory.submitted_directory, "student_id": "*"}
        beneath = directory.directory_structure.format(**names, assignment_id=glob.escape(assignment))
        pattern = directory.format_path(
            directory.submitted_directory, "(?P<student>.*)", re.escape(assignment), escape=True
        )
        for folder in map(Path, glob.glob(os.path.join(glob.escape(directory.root), beneath))):  # noqa: PTH118, PTH207
            match = re.fullmatch(pattern, str(folder))
            if match is None or folder.is_symlink() or match["student"] in excluded:
                continue
            for notebook in notebooks:
                path = folder / f"{notebook.name}.ipynb"
                if notebook.lesson and _is_there(path):
                    yield _Found(match["student"], notebook, path)


def _is_there(path: Path) -> bool:
    """Tell whether something lies there. What may not be looked at does: reading says why it cannot be read."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _handed_in(room: Classroom, one: _Found) -> HandedIn:
    root = Path(room.directory.root)
    typed = room.folder / one.path.relative_to(root) if root == Path(os.path.realpath(room.folder)) else one.path
    content = content_of(*bytes_of(one.path))
    submission = Submission(
        student=shown(one.student),
        assignment=one.notebook.lesson,
        path=shown_path(str(typed)),
        digest=content.digest,
        cells=content.cells,
        unreadable=content.unreadable,
        detail=content.detail,
    )
    return HandedIn(one.student, one.notebook, one.path, submission)


def _nothing(room: Classroom) -> str:
    names = ", ".join(room.notebooks)
    where = room.path("submitted", "<student>", "<assignment>")
    return (
        f"nothing was handed in there for {names}. nbgrader's place is {where}; `nbgrader collect` or `nbgrader "
        "zip_collect` put it there. An assignment that is missing here needs `nbgrader generate_assignment` first."
    )


def _config(folder: Path) -> Any:
    """Load what nbgrader would: its configuration of the machine, of the user, and of the course."""
    from jupyter_core.paths import jupyter_config_path
    from traitlets.config import Config
    from traitlets.config.loader import ConfigFileNotFound, JSONFileConfigLoader, PyFileConfigLoader

    merged = Config()
    for place in (*reversed(jupyter_config_path()), os.path.realpath(folder)):
        for kind, ending in ((PyFileConfigLoader, "py"), (JSONFileConfigLoader, "json")):
            name = f"{_CONFIG}.{ending}"
            try:
                merged.merge(kind(name, path=str(place)).load_config())
            except ConfigFileNotFound:
                continue
            except Exception as error:  # it is a program
                raise ClassroomError(
                    f"{Path(place, name)}: this configuration cannot be read: {type(error).__name__}: {error}."
                ) from error
    return merged
