"""The zip that makes a Gradescope assignment: two scripts, what was chosen, and the course without its answers."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from course_utils.grading.errors import GradingError

SETTINGS = "assignment.json"
SCRIPTS = ("setup.sh", "run_autograder")
PROJECT = ("README.md", "constraints.txt", "pyproject.toml")
_KINDS = (".py", ".js", ".css", ".typed")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


class Settings(msgspec.Struct, frozen=True):
    """What the teacher chose: the lesson, and whether code may run without a sandbox where the container has none."""

    lesson: str
    unsafe: bool = False


class AutograderError(GradingError):
    """The zip cannot be made. The message names the file that is missing or cannot be written."""


def autograder_zip(root: Path, package: Path, settings: Settings) -> bytes:
    """Return the bytes of the zip, the same for the same course and settings.

    `root` is a copy of the course, or what a wheel installed of it, and `package` its folder course_utils. Nothing of
    solutions/ and exercises/ is in the zip. Raises AutograderError.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in _files(root, package, settings):
            info = zipfile.ZipInfo(name, _LONG_AGO)
            info.create_system = 3  # Unix: the permissions below count
            info.external_attr = (0o100755 if name in SCRIPTS else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return content.getvalue()


def _files(root: Path, package: Path, settings: Settings) -> Iterator[tuple[str, bytes]]:
    try:
        for name in SCRIPTS:
            yield name, (root / "classroom" / "gradescope" / name).read_bytes()
        yield SETTINGS, msgspec.json.encode(settings)
        for name in PROJECT:
            yield name, (root / name).read_bytes()
        for path in sorted(package.rglob("*")):
            if path.suffix in _KINDS and path.is_file():
                yield path.relative_to(package.parent).as_posix(), path.read_bytes()
    except OSError as error:
        raise AutograderError(
            f"{error.filename}: cannot be read: {error.strerror}. Run this from a copy of the whole course."
        ) from error
