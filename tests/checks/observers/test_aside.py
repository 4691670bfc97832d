"""Noticing what an answer reaches for, by Python's audit. The hook stays for the process's life, so it runs in one."""

import subprocess
import sys

import pytest

_BEGIN = """
import gc, sys, threading, collections, inspect
from course_utils.checks.observers import aside, telling
told = []
telling.listen_for_good(told.append)
auditing = aside.Auditing(lambda file: file == "<string>")
def f(): yield sys
"""

REACHING = {
    "sys._getframe()": "sys._getframe",
    "gc.get_objects()": "gc.get_objects",
    "f.__code__": "object.__getattr__",
    "f().gi_frame.f_code": "object.__getattr__",
    "exec('1')": "exec",
    "inspect.stack(0)": "sys._getframe",
    "auditing.thread()": "a thread",
}
INNOCENT = (
    "collections.namedtuple('N', 'a b')",
    "import dataclasses; dataclasses.make_dataclass('D', ['a'])",
    "sorted([2, 1])",
)


def told_by(source: str) -> list[str]:
    code = f"{_BEGIN}auditing.begin()\n{source}\nauditing.end()\n{source}\nprint(*sorted(set(told)), sep='|')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [it for it in run.stdout.strip().split("|") if it]


@pytest.mark.parametrize("source", REACHING)
def test_it_tells_what_an_answer_does(source: str) -> None:
    assert f"reached: {REACHING[source]}" in told_by(source)


def test_it_says_nothing_of_what_libraries_do() -> None:
    assert told_by("; ".join(INNOCENT)) == []


_IMPORT = """
import importlib, importlib.util, os, subprocess, sys, sysconfig, tempfile
folder = tempfile.mkdtemp()
package = os.path.join(folder, "site-packages")
os.mkdir(package)
open(os.path.join(package, "asking.py"), "w").write("import subprocess; subprocess.run(['true'])")
sys.path.insert(0, package)
"""


def test_a_process_that_a_library_needs_while_it_is_imported_is_no_answers() -> None:
    assert told_by(f"{_IMPORT}auditing.end(); import asking; told.clear(); auditing.begin()") == []
    started = "auditing.end(); subprocess.run(['true']); told.clear(); auditing.begin()"
    assert told_by(_IMPORT + started) == ["reached: a thread, before the case"]


def test_a_thread_of_before_is_told_in_each_case() -> None:
    assert told_by("pass\nauditing.end(); auditing.thread(); told.clear(); auditing.begin()") == [
        "reached: a thread, before the case"
    ]
