"""Reading notebooks out of zip files that may be bombs. Nothing is extracted to disk."""

from __future__ import annotations

import hashlib
import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from course_utils.grading.intake.reading import MAX_BYTES, MAX_DETAIL

MAX_DIRECTORY = 4_000_000  # bytes of the archive's list of members
MAX_EXTRA = 1_000  # bytes beside the name that a member has in it: programs write some tens
MAX_TOTAL = 2_000_000_000  # bytes of all its notebooks, unpacked
MAX_PART = 255  # characters of a file's name, and of each of its folders': no system makes longer ones
MAX_RATIO = 200  # how often larger a notebook of more than a megabyte may become

_ENCRYPTED = 0x1
_MEMBER, _FIXED = b"PK\x01\x02", 46  # how a member begins in the list, and its bytes before the name
_DAMAGED = (OSError, ValueError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)


class ArchiveError(Exception):
    """A zip file cannot be read at all. The message is a sentence about the file, `detail` what a decoder said."""

    def __init__(self, message: str, detail: object = "") -> None:
        super().__init__(message)
        self.detail = str(detail)[:MAX_DETAIL]


@dataclass(frozen=True)
class Member:
    """A file in an archive: its folders and name, and its bytes, or a sentence that says why there are none.

    `detail` is what a decoder said.
    """

    parts: tuple[str, ...]
    data: bytes = b""
    trouble: str = ""
    detail: str = field(default="", compare=False)


# Takes a member's parts, and its bytes unpacked and packed. Returns why it is not to be read, nothing where it is, and
# None where it is to be passed over.
Choice: TypeAlias = Callable[[tuple[str, ...], int, int], str | None]


def members(archive: Path, choice: Choice = lambda parts, size, packed: "") -> Iterator[Member]:
    """Yield the files of a zip whose names `is_wanted`, in the order of the archive, one in memory at a time.

    What `choice` refuses is not unpacked.

    The names are for reading only, so that none can lead anywhere; parts such as ".." are left out. A zip inside
    the zip is not opened: it comes as a member with a `trouble`, as does what has a name of more than MAX_PART
    characters, which is cut.

    Raises ArchiveError where the file is no zip, is damaged at its end, or has too long a list of members.
    """
    try:
        if not stat.S_ISREG(archive.lstat().st_mode):
            raise ArchiveError("The zip is a link or a device, which is not followed.")
        file = _Bounded(archive)
    except OSError as error:
        raise ArchiveError(f"The file cannot be read: {error.strerror}.") from error
    with file, _directory(file) as opened:
        total, packed, size = 0, 0, archive.stat().st_size
        for info in opened.infolist():
            parts = tuple(part for part in info.filename.replace("\\", "/").split("/") if part not in _NOWHERE)
            if info.is_dir() or not parts or not is_wanted(parts):
                continue
            trouble = _trouble(info)
            if any(len(part) > MAX_PART for part in parts):
                trouble = f"Its name, or that of a folder around it, has more than {MAX_PART} characters. Rename it."
                parts = tuple(map(_cut, parts))
            refused = choice(parts, 0 if trouble else info.file_size, info.compress_size)
            if refused is not None:
                trouble = trouble or refused
                total += 0 if trouble else info.file_size
                packed += 0 if trouble else info.compress_size
                if total > MAX_TOTAL:
                    trouble = f"The zip unpacks to more than {MAX_TOTAL:,} bytes. Split it."
                if packed > size:
                    trouble = "The zip's files lie over each other in it, as no program packs them. Pack it again."
                yield Member(parts, trouble=trouble) if trouble else _read(opened, info, parts)


def _cut(part: str) -> str:
    """Return a name of at most MAX_PART characters. Different ones stay different, and are of the kind they were."""
    if len(part) <= MAX_PART:
        return part
    digest = hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{part[:100]} {digest}{part[-12:]}"


def is_wanted(parts: tuple[str, ...]) -> bool:
    """Tell notebooks and zips from the rest, and from what JupyterLab and macOS leave beside them."""
    if any(part.startswith(".") or part == "__MACOSX" for part in parts):
        return False
    return is_notebook(parts[-1]) or is_zip(parts[-1])


def is_notebook(name: str) -> bool:
    """Tell by the name. Browsers append .json or .txt when they save a notebook."""
    return name.lower().endswith((".ipynb", ".ipynb.json", ".ipynb.txt"))


def is_zip(name: str) -> bool:
    """Tell by the name."""
    return name.lower().endswith(".zip")


_NOWHERE = ("..", ".", "")


class _Bounded(io.FileIO):
    """A file that refuses large reads. zipfile reads a list of members in one piece, whatever size the zip names."""

    most = MAX_DIRECTORY

    def read(self, size: int | None = -1, /) -> bytes:
        asked = -1 if size is None else size
        if asked > self.most:
            raise ArchiveError(f"The zip has a list of files of {asked:,} bytes; at most {self.most:,} are read.")
        data = super().read(self.most if asked < 0 else asked) or b""
        if data.startswith(_MEMBER):
            _check_members(data)
        return data


def _check_members(directory: bytes) -> None:
    """Raise ArchiveError where a member of a list has much beside its name, which zipfile takes long to read."""
    at = 0
    while directory.startswith(_MEMBER, at) and at + _FIXED <= len(directory):
        name, extra, comment = struct.unpack_from("<3H", directory, at + 28)
        if extra > MAX_EXTRA:
            raise ArchiveError(
                f"A file in the zip has {extra:,} bytes of extra fields; at most {MAX_EXTRA:,} are read."
            )
        at += _FIXED + name + extra + comment


def _directory(file: _Bounded) -> zipfile.ZipFile:
    try:
        opened = zipfile.ZipFile(file)
    except _DAMAGED as error:
        raise ArchiveError("The file is no zip, or was cut off on its way.", error) from error
    file.most = MAX_BYTES + 1
    return opened


def _trouble(info: zipfile.ZipInfo) -> str:
    if is_zip(info.filename):
        return "This is a zip inside a zip, which is not opened. Unpack the outer one and grade the folder."
    if info.flag_bits & _ENCRYPTED:
        return "The file is locked with a password."
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "The file is packed in an unusual way. Pack it again as a plain zip."
    if info.file_size > MAX_BYTES:
        return f"The file is larger than {MAX_BYTES // 1_000_000} MB. Clear the outputs, save and hand it in again."
    if info.file_size > 1_000_000 and info.file_size > MAX_RATIO * info.compress_size:
        return f"The file grows more than {MAX_RATIO} times when it is unpacked, as no notebook does."
    return ""


def _read(opened: zipfile.ZipFile, info: zipfile.ZipInfo, parts: tuple[str, ...]) -> Member:
    try:
        with opened.open(info) as file:
            return Member(parts, file.read(MAX_BYTES + 1))
    except (*_DAMAGED, ArchiveError, MemoryError) as error:
        return Member(parts, trouble="The zip is damaged where this file is.", detail=str(error)[:MAX_DETAIL])
