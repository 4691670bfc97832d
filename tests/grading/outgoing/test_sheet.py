"""CSV files of which some cells change."""

import csv
import io

import pytest

from course_utils.grading.outgoing.sheet import SheetError, read_sheet

ODD = b'\xef\xbb\xbfname;"gra""de;x";\r\n"line\r\none"; 1,5 ;\xfc\n\n"";=cmd();"last"'


def texts(data: bytes) -> list[list[str]]:
    return [[cell.text for cell in row] for row in read_sheet(data).rows]


def test_cells_are_those_that_pythons_reader_finds():
    expected = list(csv.reader(io.StringIO(ODD[3:].decode("latin-1"), newline=""), delimiter=";"))
    expected[2] = [""]
    assert texts(ODD) == expected
    assert texts("a,ü\n".encode()) == [["a", "ü"]]
    assert texts(b"a\tb,c\td\r1\t2\t3") == [["a", "b,c", "d"], ["1", "2", "3"]]


def test_other_bytes_stay():
    sheet = read_sheet(ODD)
    assert sheet.delimiter == ";"
    assert sheet.with_numbers({}) == ODD
    assert sheet.with_numbers({(1, 1): "2,5", (3, 2): "7", (1, 2): "3"}) == (
        ODD.replace(b" 1,5 ", b"2,5").replace(b'"last"', b"7").replace(b"\xfc", b"3")
    )
    assert read_sheet(b"a,b\n1,2\n").with_numbers({(1, 1): "2,5"}) == b'a,b\n1,"2,5"\n'


@pytest.mark.parametrize("text", ["=1", "-1", "+1", "@x", "1;2", "", "1 ", "nan", "1e5", "\u0661"])
def test_only_plain_numbers_are_written(text):
    with pytest.raises(ValueError, match="no plain number"):
        read_sheet(b"a,b\n").with_numbers({(0, 0): text})


def test_what_is_not_there_cannot_be_written():
    sheet = read_sheet(b"a,b\n1\n")
    assert (sheet.text(1, 0), sheet.text(1, 1), sheet.text(1, -1)) == ("1", "", "")
    with pytest.raises(KeyError):
        sheet.with_numbers({(1, 1): "1"})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        ("a,b".encode("utf-16"), "zero bytes"),
        (b'a,b\n"c,d\n', "Row 2 has a quote .* not closed"),
        (b'a,b\n"c"d,e\n', "Row 2 has text after a closing quote"),
    ],
)
def test_what_is_no_csv_is_told(data, words):
    with pytest.raises(SheetError, match=words):
        read_sheet(data)


def test_long_files_are_read_in_linear_time():
    rows = b'"' + b'""' * 100_000 + b'",x\n' + b"1,2\n" * 20_000
    assert len(read_sheet(rows).rows) == 20_001
