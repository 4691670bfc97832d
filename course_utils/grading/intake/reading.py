"""Reading a file that may be anything, and the learner's code cells out of its bytes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from course_utils.grading.submission import Cell

MAX_BYTES = 20_000_000  # of a notebook's file
MAX_SOURCE = 1_000_000  # characters of code in it
MAX_CELLS = 5_000
MAX_NAME = 100  # characters of the name that nbgrader gave a cell
MAX_DETAIL = 500  # characters of a decoder's message, which may quote the file
MAX_REPAIRED = 4_000_000  # bytes, of a student; Python's own JSON reader takes some thirty times as much memory

FAILED = (
    "The file could not be read, for a reason that the course does not know. Open it in JupyterLab and save it again."
)
_NO_STRICT = (
    "The file is no strict JSON: it was cut off on its way, or holds NaN, as an output may. Of such files {} MB of one "
    "student are read, which this one exceeds, alone or with others. Clear the outputs, save and hand it in again."
)

# Possessive, so that no source makes them slow. The first begins with letters, as these are found ten times as fast as
# the beginning of a word. The second is matched once for all lines of a cell, and not for each.
_CHECK = re.compile(r"check\((?<!\wcheck\()\s*+[\"'](\w++)[\"']")
_ONLY_CHECKS = re.compile(
    r"""(?: \s*+ (?: check\( S*+ ["']\w++["'] S*+ , S*+ \w++ S*+ ,? S*+ \) S*+ ;? )?+ S*+ (?: \#[^\n]*+ )?+ S*+
    (?: \n | \Z ) )*+""".replace("S", r"[^\S\n]"),
    re.VERBOSE,
)


@dataclass(frozen=True)
class Content:
    """What a notebook holds: the learner's code, and the exercises that its cells name, once for each cell.

    `digest` is the SHA-256 of its file, in hex, or that of the sentence that says why there is none. `unreadable` is a
    sentence where the notebook could not be read, and `detail` what the decoder said; then there are no cells and
    exercises. `repaired` is how many bytes were no strict JSON and took a slow reader.
    """

    digest: str
    cells: tuple[Cell, ...] = ()
    exercises: tuple[str, ...] = ()
    unreadable: str = ""
    detail: str = ""
    repaired: int = 0


@dataclass(frozen=True)
class AnyCell:
    """A cell of any kind, with the name that nbgrader gave it, or that somebody wrote in its place."""

    cell_type: str
    source: str
    grade_id: str


class Unreadable(Exception):
    """A notebook cannot be read. The message is a sentence for teachers, `detail` what a decoder said."""

    def __init__(self, message: str, detail: object = "") -> None:
        super().__init__(message)
        self.detail = str(detail)[:MAX_DETAIL]


@dataclass
class _Slow:
    """How many bytes the slow reader of JSON may take, and how many it took."""

    left: int
    read: int = 0


class _Nbgrader(msgspec.Struct, frozen=True):
    grade_id: str = ""
    locked: bool = False
    solution: bool = False


class _Metadata(msgspec.Struct, frozen=True):
    nbgrader: _Nbgrader = _Nbgrader()


class _Cell(msgspec.Struct, frozen=True):
    cell_type: str
    source: str | list[str] = ""
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class _Notebook(msgspec.Struct, frozen=True):
    nbformat: int = 0
    cells: list[_Cell] | None = None


def bytes_of(file: Path) -> tuple[bytes, str]:
    """Return a file's bytes, at most one more than MAX_BYTES, and a sentence that says why there are none, if so.

    Links are not followed, and no pipe or device is waited for.
    """
    if file.is_symlink():
        return b"", "The file is a link to another one, which is not followed."
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return b"", "This is no file but a pipe or a device."
            return stream.read(MAX_BYTES + 1), ""
    except OSError as error:
        return b"", f"The file cannot be read: {error.strerror}."


def content_of(data: bytes, trouble: str = "", detail: str = "", repairable: int | None = None) -> Content:
    """Read a notebook in format 4. Raises nothing: what cannot be read says so in `unreadable`.

    Where there are no bytes of it, `trouble` is a sentence that says why, and `detail` what a decoder said. Of what is
    no strict JSON at most `repairable` bytes are read, MAX_REPAIRED where it is not given.

    The learner's cells are the code cells that are neither locked by nbgrader nor a check and nothing else. So a
    check cell may be edited, doubled or missing: the grader does its own checks. A cell in which the learner mixed
    code and checks is kept whole. Outputs are never looked at.
    """
    digest = hashlib.sha256(data or trouble.encode()).hexdigest()
    if trouble:
        return Content(digest, unreadable=trouble, detail=detail[:MAX_DETAIL])
    slow = _Slow(MAX_REPAIRED if repairable is None else repairable)
    try:
        return replace(_content(_notebook(data, slow), digest), repaired=slow.read)
    except Unreadable as error:
        return Content(digest, unreadable=str(error), detail=error.detail, repaired=slow.read)
    except Exception as error:  # whatever the file holds, the next one is read
        detail = f"{type(error).__name__}: {error}"[:MAX_DETAIL]
        return Content(digest, unreadable=FAILED, detail=detail, repaired=slow.read)


def cells_of(data: bytes) -> tuple[AnyCell, ...]:
    """Return all cells of a notebook in format 4, without their outputs. Raises Unreadable, as `content_of` says."""
    return tuple(
        AnyCell(
            cell.cell_type if cell.cell_type in ("code", "markdown") else "raw",
            _source(cell),
            _marks(cell.metadata).grade_id,
        )
        for cell in _notebook(data, _Slow(MAX_REPAIRED)).cells or ()
    )


def _content(notebook: _Notebook, digest: str) -> Content:
    code = [(number, cell) for number, cell in enumerate(notebook.cells or (), start=1) if cell.cell_type == "code"]
    total = sum(len(_source(cell)) for _, cell in code)
    if total > MAX_SOURCE:  # before anything looks at it
        raise Unreadable(f"Its code has {total:,} characters; at most {MAX_SOURCE:,} are graded.")
    cells: list[Cell] = []
    named: list[str] = []
    for number, cell in code:
        source = _source(cell)
        marks = _marks(cell.metadata)
        named += {*_CHECK.findall(source), marks.grade_id.removeprefix("check_")} - {""}
        locked = marks.locked and not marks.solution
        if source.strip() and not locked and not _only_checks(source):
            cells.append(Cell(number, source, marks.grade_id[:MAX_NAME]))
    return Content(digest, tuple(cells), tuple(named))


def _notebook(data: bytes, slow: _Slow) -> _Notebook:
    if len(data) > MAX_BYTES:
        raise Unreadable(
            f"The file is larger than {MAX_BYTES // 1_000_000} MB. Clear the outputs, save and hand it in again."
        )
    if not data.strip():
        raise Unreadable("The file is empty.")
    try:
        notebook = _decoded(data.removeprefix(b"\xef\xbb\xbf"), slow)
    except RecursionError:
        raise Unreadable("The file is no notebook: its values are nested too deeply.") from None
    except msgspec.ValidationError as error:
        raise Unreadable("The file is no notebook: it holds something that Jupyter does not write.", error) from None
    except ValueError as error:
        raise Unreadable("The file is no notebook, or was cut off on its way. Ask for it once more.", error) from None
    if notebook.nbformat != 4:
        found = f"notebook format {notebook.nbformat}" if notebook.nbformat else "no notebook format that it names"
        raise Unreadable(f"The file is in {found}; format 4 is graded. Open it in JupyterLab and save it again.")
    if notebook.cells is None:
        raise Unreadable("The file has no list of cells, so it is no notebook.")
    if len(notebook.cells) > MAX_CELLS:
        raise Unreadable(f"The file has {len(notebook.cells):,} cells; at most {MAX_CELLS:,} are graded.")
    return notebook


def _decoded(data: bytes, slow: _Slow) -> _Notebook:
    """Decode the fields that are used. Raises Unreadable, msgspec.ValidationError, ValueError and RecursionError."""
    try:
        return msgspec.json.decode(data, type=_Notebook)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        if len(data) > slow.left:
            raise Unreadable(_NO_STRICT.format(MAX_REPAIRED // 1_000_000), error) from None
        slow.read = len(data)
    # Python writes NaN, and half of a surrogate pair, into the JSON of a notebook. Both are read as something near.
    loose = json.loads(data.decode("utf-8", "replace"), parse_constant=lambda name: None)
    strict = json.dumps(loose, ensure_ascii=False).encode("utf-8", "replace")
    return msgspec.json.decode(strict, type=_Notebook)


def _source(cell: _Cell) -> str:
    return cell.source if isinstance(cell.source, str) else "".join(cell.source)


def _marks(metadata: msgspec.Raw) -> _Nbgrader:
    """Read nbgrader's marks. A cell whose metadata are damaged has none, and is the learner's."""
    try:
        return msgspec.json.decode(metadata, type=_Metadata).nbgrader
    except (ValueError, RecursionError):
        return _Nbgrader()


def _only_checks(source: str) -> bool:
    return _CHECK.search(source) is not None and _ONLY_CHECKS.fullmatch(source.replace("\r", "\n")) is not None
