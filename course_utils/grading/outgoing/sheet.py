"""CSV files of which some cells change and every other byte stays: quotes, line ends and encoding are not ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_DELIMITERS = (",", ";", "\t")
_QUOTED = re.compile(r'"(?:[^"]|"")*+"')
_BARE = {delimiter: re.compile(f"[^{delimiter}\r\n]*") for delimiter in _DELIMITERS}
_LINE_END = re.compile(r"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class SheetError(Exception):
    """A file is no CSV. The message is a sentence that says where."""


@dataclass(frozen=True)
class Cell:
    """The text of a cell, and where it stands in the file, with its quotes."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Sheet:
    """A CSV file and its cells, in rows of any length. Empty lines are rows of one empty cell."""

    data: bytes
    delimiter: str
    rows: tuple[tuple[Cell, ...], ...]

    def text(self, row: int, column: int) -> str:
        """Return the text of a cell without spaces around it; "" where the row ends before it."""
        cells = self.rows[row]
        return cells[column].text.strip() if 0 <= column < len(cells) else ""

    def with_numbers(self, numbers: Mapping[tuple[int, int], str]) -> bytes:
        """Return the file with the texts of these cells (row, column) replaced, from 0.

        Raises KeyError for a cell that is not there, and ValueError for a text that is no plain number: a
        spreadsheet runs some texts as formulas.
        """
        spans = []
        for (row, column), text in numbers.items():
            if not re.fullmatch(r"[0-9]+(?:[.,][0-9]+)?", text):
                raise ValueError(f"{text!r} is no plain number")
            if column >= len(self.rows[row]):
                raise KeyError((row, column))
            cell = self.rows[row][column]
            spans.append((cell.start, cell.end, f'"{text}"' if self.delimiter in text else text))
        parts, position = [], 0
        for start, end, text in sorted(spans):
            parts += [self.data[position:start], text.encode()]
            position = end
        return b"".join((*parts, self.data[position:]))


def read_sheet(data: bytes) -> Sheet:
    """Read a CSV file whose cells are parted by the comma, semicolon or tab that parts most of the first row.

    The text is taken as UTF-8, and where a cell is none, as Latin 1. Raises SheetError for what is no CSV.
    """
    if b"\0" in data:
        raise SheetError("The file holds zero bytes: it is no CSV, or in UTF-16. Save it as CSV in UTF-8.")
    text = data.decode("latin-1")  # one character a byte, so that positions are those of the file
    delimiter = max(_DELIMITERS, key=lambda one: _width(text, _begin(data), one))
    rows: list[tuple[Cell, ...]] = []
    position = _begin(data)
    while position < len(text):
        row, position = _row(text, position, delimiter, len(rows) + 1)
        rows.append(row)
    if not rows:
        raise SheetError("The file is empty.")
    return Sheet(data, delimiter, tuple(rows))


def _begin(data: bytes) -> int:
    return len(_BOM) if data.startswith(_BOM) else 0


def _width(text: str, position: int, delimiter: str) -> int:
    """Return how many cells the first row has, if this parts them."""
    try:
        return len(_row(text, position, delimiter, 1)[0])
    except SheetError:
        return 0


def _row(text: str, position: int, delimiter: str, number: int) -> tuple[tuple[Cell, ...], int]:
    """Read the cells from a position on, and return them with the position after the line's end."""
    cells = []
    while True:
        quoted = text.startswith('"', position)
        found = (_QUOTED if quoted else _BARE[delimiter]).match(text, position)
        if found is None:
            raise SheetError(f'Row {number} has a quote (") that is not closed.')
        start, position = found.span()
        inner = found[0][1:-1].replace('""', '"') if quoted else found[0]
        cells.append(Cell(_decoded(inner.encode("latin-1")), start, position))
        if text.startswith(delimiter, position):
            position += 1
            continue
        end = _LINE_END.match(text, position)
        if end is None and position < len(text):
            raise SheetError(f'Row {number} has text after a closing quote (").')
        return tuple(cells), end.end() if end else position


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
