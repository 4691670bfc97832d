"""Zip files that want to escape, to grow, or to lie."""

import random
import struct
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from course_utils.grading.intake import archives
from course_utils.grading.intake.archives import ArchiveError, Member, members


def packed(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def test_notebooks_come_in_order_without_what_lies_beside_them(tmp_path):
    files = {
        "b/nb.ipynb": b"1",
        "a/nb.IPYNB": b"2",
        "a/nb.ipynb.txt": b"3",
        "a/notes.md": b"",
        "a/.ipynb_checkpoints/nb-checkpoint.ipynb": b"",
        "__MACOSX/a/._nb.ipynb": b"",
        "folder.ipynb/": b"",
    }
    found = list(members(packed(tmp_path / "class.zip", files)))
    assert found == [
        Member(("b", "nb.ipynb"), b"1"),
        Member(("a", "nb.IPYNB"), b"2"),
        Member(("a", "nb.ipynb.txt"), b"3"),
    ]


@pytest.mark.parametrize("name", ["../../etc/nb.ipynb", "/etc/nb.ipynb", "..\\..\\etc\\nb.ipynb", "./etc//nb.ipynb"])
def test_no_name_leads_anywhere(tmp_path, name):
    path = tmp_path / "one" / "two" / "class.zip"
    path.parent.mkdir(parents=True)
    assert list(members(packed(path, {name: b"1"}))) == [Member(("etc", "nb.ipynb"), b"1")]
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "one", path.parent, path]


def test_a_link_in_a_zip_is_a_file_with_a_path_in_it(tmp_path):
    link = zipfile.ZipInfo("nb.ipynb")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert list(members(tmp_path / "class.zip")) == [Member(("nb.ipynb",), b"/etc/passwd")]


def test_bombs_are_told_and_not_unpacked(tmp_path):
    files = {"big.ipynb": b" " * 25_000_000, "dense.ipynb": b" " * 10_000_000, "good.ipynb": b"{}"}
    path = packed(tmp_path / "class.zip", files)
    start = time.monotonic()
    tracemalloc.start()
    big, dense, good = members(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "larger than 20 MB" in big.trouble
    assert "grows more than 200 times" in dense.trouble
    assert good == Member(("good.ipynb",), b"{}")
    assert peak < archives.MAX_DIRECTORY + 1_000_000
    assert time.monotonic() - start < 20, "seconds that no slow machine needs"


def test_a_size_that_lies_is_believed_no_further(tmp_path):
    """The list of members says 10 bytes; the data would unpack to 10 million."""
    path = packed(tmp_path / "class.zip", {"nb.ipynb": b" " * 10_000_000})
    data = path.read_bytes().replace(struct.pack("<L", 10_000_000), struct.pack("<L", 10))
    path.write_bytes(data)
    (member,) = members(path)
    assert "damaged" in member.trouble
    assert not member.data


def test_totals_are_limited(tmp_path, monkeypatch):
    path = packed(tmp_path / "class.zip", {f"{number}.ipynb": b"123456" for number in range(5)})
    monkeypatch.setattr(archives, "MAX_TOTAL", 20)
    assert [bool(member.trouble) for member in members(path)] == [False, False, False, True, True]


def test_what_is_not_wanted_is_not_unpacked(tmp_path, monkeypatch):
    path = packed(tmp_path / "class.zip", {f"{name}.ipynb": name.encode() * 1000 for name in "abc"})
    monkeypatch.setattr(archives, "MAX_TOTAL", 1999)
    unpacked = []
    real = archives._read
    monkeypatch.setattr(
        archives, "_read", lambda opened, info, parts: unpacked.append(parts) or real(opened, info, parts)
    )
    asked = []

    def choice(parts, size, packed):
        asked.append((parts[0][0], size, 0 < packed < 100))
        return {"a": None, "b": "Too much."}.get(parts[0][0], "")

    assert [(member.parts, member.trouble) for member in members(path, choice)] == [
        (("b.ipynb",), "Too much."),
        (("c.ipynb",), ""),
    ]
    assert asked == [("a", 1000, True), ("b", 1000, True), ("c", 1000, True)]
    assert unpacked == [("c.ipynb",)]


def test_long_names_are_cut_and_not_read(tmp_path):
    most = "x" * (archives.MAX_PART - 6)
    names = [f"{most}.ipynb", f"{most}a.ipynb", f"{most}b.ipynb", f"{'y' * 300}/nb.ipynb"]
    found = list(members(packed(tmp_path / "class.zip", dict.fromkeys(names, b"{}"))))
    assert found[0] == Member((names[0],), b"{}")
    assert all("more than 255 characters" in one.trouble and not one.data for one in found[1:])
    assert all(len(part) <= archives.MAX_PART for one in found for part in one.parts)
    assert len({one.parts for one in found}) == 4


def test_a_list_of_members_may_not_be_huge(tmp_path, monkeypatch):
    path = packed(tmp_path / "class.zip", {f"{number}.ipynb": b"" for number in range(1_000)})
    monkeypatch.setattr(archives._Bounded, "most", 10_000)
    with pytest.raises(ArchiveError, match=r"list of files of \d\d,\d\d\d bytes; at most 10,000 are read"):
        list(members(path))


def test_extra_fields_may_not_be_long(tmp_path):
    path = tmp_path / "class.zip"
    with zipfile.ZipFile(path, "w") as opened:
        info = zipfile.ZipInfo("nb.ipynb")
        info.extra = b"\x01\x00\x00\x00" * 300
        opened.writestr(info, "{}")
    with pytest.raises(ArchiveError, match=r"has 1,200 bytes of extra fields; at most 1,000 are read"):
        list(members(path))


def test_members_that_share_their_bytes_are_unpacked_once(tmp_path):
    text = random.Random(0).randbytes(3000)
    path = packed(tmp_path / "class.zip", {"a.ipynb": text})
    data = path.read_bytes()
    begin = data.index(b"PK\x01\x02")
    listed = data[begin : data.index(b"PK\x05\x06")]
    end = bytearray(data[begin + len(listed) :])
    struct.pack_into("<2HI", end, 8, 40, 40, 40 * len(listed))
    path.write_bytes(data[:begin] + 40 * listed + end)
    found = list(members(path))
    assert len(found) == 40
    assert found[0] == Member(("a.ipynb",), text)
    assert "lie over each other" in found[-1].trouble


def test_zips_in_zips_passwords_and_rare_methods_are_told(tmp_path):
    inner = packed(tmp_path / "inner.zip", {"nb.ipynb": b"{}"}).read_bytes()
    (member,) = members(packed(tmp_path / "class.zip", {"alice/homework.zip": inner}))
    assert "zip inside a zip" in member.trouble
    (member,) = members(packed(tmp_path / "lzma.zip", {"nb.ipynb": b"{}"}, zipfile.ZIP_LZMA))
    assert "unusual way" in member.trouble
    path = packed(tmp_path / "locked.zip", {"nb.ipynb": b"{}"})
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    (member,) = members(path)
    assert "password" in member.trouble


@pytest.mark.parametrize("data", [b"", b"PK", b"no zip at all", b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_zip_is_told(tmp_path, data):
    (tmp_path / "class.zip").write_bytes(data)
    with pytest.raises(ArchiveError, match=r"^The .*\.$"):
        list(members(tmp_path / "class.zip"))


def test_a_thousand_corrupted_zips(tmp_path):
    rng = random.Random(6)
    files = {f"student{number}/nb.ipynb": rng.randbytes(200) + b"{}" * 500 for number in range(4)}
    original = packed(tmp_path / "class.zip", files).read_bytes()
    path = tmp_path / "bad.zip"
    refused = told = 0
    for _ in range(1_000):
        data = bytearray(original)
        for _ in range(rng.randrange(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data[: rng.randrange(len(data))] if rng.random() < 0.2 else data)
        try:
            told += any(member.trouble for member in members(path))
        except ArchiveError:
            refused += 1
    assert refused > 100
    assert told > 100


def test_files_are_closed(tmp_path):
    path = packed(tmp_path / "class.zip", {"nb.ipynb": b"{}"})
    opened = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc").exists() else 0
    for _ in range(5):
        list(members(path))
    (tmp_path / "bad.zip").write_bytes(b"bad")
    for _ in range(5):
        with pytest.raises(ArchiveError):
            list(members(tmp_path / "bad.zip"))
    if opened:
        assert len(list(Path("/proc/self/fd").iterdir())) == opened
