"""Whose a file is and which assignment it answers, told by where it lies and what it asks."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from course_utils.checks.registry import LESSONS, lessons_by_exercise

# The shortest beginning: what a student called the file follows it, and may look alike. Moodle writes "file", or the
# name of another way to hand in, as "onlinetext".
_MOODLE = re.compile(r"(?P<name>.+?_(?P<id>\d+))_assignsubmission_[a-z0-9]+_(?P<rest>.*)", re.DOTALL)
_CANVAS = re.compile(r"(?P<name>[^\W_]+)_(?:LATE_)?(?P<id>\d{2,})_\d{2,}_(?P<rest>.+)", re.DOTALL)
# Where it stands in what Moodle's pattern takes for a name, Canvas wrote the beginning, and a student the rest.
_OF_CANVAS = re.compile(r"_\d+_\d+_")
_BOTH = (
    "Its name does not tell whose it is: it begins as those that Canvas writes ({}), and goes on as those that Moodle "
    "writes. Rename it after its student."
)
_ENDING = re.compile(r"(\.ipynb(\.json|\.txt)?|\.zip)$", re.IGNORECASE)
_EDGES = " _-.,"
_BENEATH, _FILED = 2, 4  # how far a name lies from a folder's
MAX_NAME = 200  # characters; a zip can hold names of 65,535
MAX_PATH = 600
# Other letters than ASCII, with the ASCII before them. To order marks takes time with the square of how many follow one
# another, and a name can hold 32,000: what is longer is looked at in parts.
_STRETCH = re.compile(r"[\x00-\x7f]*[^\x00-\x7f]{0,200}")  # it fails nowhere, and so is not sought anew


class UnknownLesson(LookupError):
    """No lesson is called so. The message lists them all."""


@dataclass(frozen=True)
class Place:
    """Where a file lies: all parts of its absolute path, and how many of them lead to what the teacher named.

    A zip counts as a folder. So for `course grade class.zip` and the file alice/nb.ipynb in it, `parts` end with
    ("class.zip", "alice", "nb.ipynb"), and `start` is the index of "alice".
    """

    parts: tuple[str, ...]
    start: int

    @property
    def file(self) -> str:
        return self.parts[-1]

    @property
    def beneath(self) -> tuple[str, ...]:
        """The folders between what the teacher named and the file."""
        return self.parts[self.start : -1]


@dataclass(frozen=True)
class Who:
    """A student: their name, and the number that Canvas or Moodle wrote before it was a file, empty where none did.

    Where a name could be of two platforms, `doubt` is a sentence that says so, and the name is nobody's. `far` is how
    far the name lies from that of a folder in what the teacher named, which no student wrote: 0 where it is that one.
    """

    name: str
    number: str = ""
    doubt: str = ""
    far: int = field(default=0, compare=False)


def who(place: Place) -> Who:
    """Return whose a file is. The outermost part decides: what lies deeper may be named by students.

    A folder or zip tells its student as follows, by the first rule that applies.

    1. nbgrader: "ada" in submitted/ada/<assignment>/<file>, when the teacher names `submitted`, the folder that it
       lies in, or one within it.
    2. Moodle: "Name_12345" for "Name_12345_assignsubmission_file_", when the teacher names that folder or the one
       (or the zip) that it lies in.
    3. Canvas: "lastfirst_123" for the zip "lastfirst_123_456_work.zip", also with "LATE_".
    4. Any other first folder or zip in what the teacher names: its name. A folder that is called as a lesson is
       skipped, and its first folder counts.

    Where there is no such folder, the file's name tells.

    5. Moodle and Canvas: as above.
    6. The file's name without the lesson's: "bob" for "bob_02_how_backward_works.ipynb".
    7. The name of the folder or zip around it: "carol" for "carol/02_how_backward_works.ipynb".

    The numbers of Moodle and Canvas stay, because two people may have one name. Canvas numbers people; Moodle
    gives a person another number in each assignment. A name that has the marks of both is in doubt: the second may be
    what a student called the file.

    Farther than a folder's very name is one that is written in another way, then one beneath a folder that is called as
    a lesson, then that of a zip or notebook, or of what lies in such a zip.
    """
    for index in range(max(place.start - 3, 0), min(place.start + 1, len(place.parts) - 2)):
        if place.parts[index] == "submitted":
            return _who(place.parts[index + 1])
    depth = next((depth for depth, part in enumerate(place.beneath) if not is_lesson(part)), None)
    own = None if depth is None else place.beneath[depth]
    filed = own is None or any(part.lower().endswith(".zip") for part in place.beneath[: (depth or 0) + 1])
    far = _FILED * filed + _BENEATH * bool(depth)
    for part in (*place.parts[max(place.start - 1, 0) : place.start], own or place.file):
        found = _MOODLE.fullmatch(part)
        if found and (canvas := _OF_CANVAS.search(f"{found['name']}_")):
            return Who(_name(_stem(part)), doubt=_BOTH.format(canvas[0]), far=far)
        if found:
            return _who(found["name"], far if part in (own, place.file) else 0, found["id"])
    found = _CANVAS.fullmatch(own or place.file)
    if found and (own is None or own.lower().endswith(".zip")):
        return _who(f"{found['name']}_{found['id']}", far, found["id"])
    if own:
        name = _name(_stem(own)) or "unnamed"
        return Who(name, far=far + (name != own))
    around = (_stem(part) for part in reversed(place.parts[: place.start]) if not _lesson_in(part))
    names = (_name(name) for name in (_without_lesson(_stem(place.file)), *around))
    return Who(next((name for name in names if name), "unnamed"), far=far)


def _who(name: str, far: int = 0, number: str = "") -> Who:
    return Who(_name(name) or "unnamed", number, far=far + (name != _name(name)))


def lesson_called(name: str) -> str:
    """Return the lesson of this name, or the one whose name begins so, as with "02". Raises UnknownLesson."""
    found = [lesson for lesson in LESSONS if lesson.startswith(name)]
    if len(found) != 1:
        raise UnknownLesson(f"{name!r} names no single lesson of the course: {', '.join(LESSONS)}")
    return found[0]


def is_lesson(part: str) -> bool:
    """Say whether a folder or zip is called as a lesson, which tells no student."""
    return _stem(part).lower() in LESSONS


def assignment_of(place: Place, named: Iterable[str]) -> str | None:
    """Return the lesson that a file belongs to; None where nothing tells.

    The exercises that its cells name decide, most of them; then a lesson's name in the file's name or in that of
    the nearest folder; then a file's name that begins with a lesson's number.
    """
    lessons = lessons_by_exercise()
    votes = Counter(lessons[name] for name in named if name in lessons)
    if votes:
        most = max(votes.values())
        best = [lesson for lesson in LESSONS if votes[lesson] == most]
        by_name = _lesson_by_name(place)
        return by_name if by_name in best else best[0]
    return _lesson_by_name(place)


def assignment_named(place: Place) -> str:
    """Return a name for an assignment that is none of the course: the file's, without what tells the student."""
    return _name(_stem(_own_name(place.file)).strip(_EDGES)) or "unnamed"


def quoted(place: Place) -> str:
    """Return a name for what may be called like a student: that of the first part in what the teacher named."""
    return _short(shown(repr(place.parts[place.start])))


def shown(text: str) -> str:
    """Return a name or text in one normal form, on one line, so that it can be kept, compared and printed.

    What does not print (controls, escape codes of terminals, marks that turn the direction of writing, halves of
    surrogate pairs) stands there as Python writes it: "\\x1b", "\\u202e". It takes time in proportion to the length.
    """
    normal = _STRETCH.sub(lambda found: unicodedata.normalize("NFC", found[0]), text)
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in normal)


def shown_lines(text: str) -> str:
    """Return a text as `shown`, but with its lines."""
    return "\n".join(shown(line) for line in text.split("\n"))


def shown_path(path: str) -> str:
    """Return a path as `shown`, without its middle where it is long."""
    text = shown(path)
    return text if len(text) <= MAX_PATH else f"{text[: MAX_PATH // 2]} ... {text[-MAX_PATH // 2 :]}"


def _lesson_by_name(place: Place) -> str | None:
    for part in reversed((*place.beneath, place.file)):
        lesson = _lesson_in(part)
        if lesson:
            return lesson
    number = re.match(r"(\d\d)(?!\d)", _own_name(place.file))
    return next((lesson for lesson in LESSONS if number and lesson.startswith(f"{number[1]}_")), None)


def _lesson_in(name: str) -> str | None:
    return next((lesson for lesson in LESSONS if lesson in name.lower()), None)


def _without_lesson(name: str) -> str:
    lesson = _lesson_in(name)
    if lesson is None:
        return name
    begin = name.lower().index(lesson)
    return name[:begin].strip(_EDGES) or name[begin + len(lesson) :].strip(_EDGES)


def _own_name(file: str) -> str:
    """Return the name that the student gave the file: without what Moodle or Canvas put before it."""
    found = _MOODLE.fullmatch(file) or _CANVAS.fullmatch(file)
    return found["rest"] if found else file


def _stem(name: str) -> str:
    return _ENDING.sub("", name)


def _name(text: str) -> str:
    return _short(shown(" ".join(text.split())))


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]} {hashlib.sha256(name.encode()).hexdigest()}"
