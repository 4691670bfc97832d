"""Whose code runs, and whether a library is being imported."""

import builtins
import importlib
import sys
import sysconfig

import numpy
import pytest
import torch

from course_utils.checks import frames
from course_utils.checks.frames import importing, inside_import, is_course, is_learners

LIBRARY = """
import sys
def function():
    return look(sys._getframe())
body, called, made, learners = look(sys._getframe()), function(), eval("look(sys._getframe())"), ask()
courses = eval(compile("look(sys._getframe())", ask.course, "eval"))  # as the body of a module of the course
"""
MODULE = """
import sys
body = look(sys._getframe())
import watched_library
"""


def look(frame):
    return importing(frame), inside_import(frame)


def ask():
    return look(sys._getframe())


ask.course = frames.__file__


@pytest.mark.parametrize(
    "file",
    [
        *(torch.__file__, numpy.__file__, sysconfig.__file__, "<frozen runpy>"),
        "/home/ada/.local/lib/python3.11/site-packages/torch/__init__.py",
        "/usr/lib/python3/dist-packages/numpy/__init__.py",
    ],
)
def test_a_library_is_where_it_is_installed(file):
    assert not is_learners(file)
    assert not is_course(file)


@pytest.mark.parametrize("file", [__file__, "<ipython-input-1-ab>", "/tmp/ipykernel_7/1.py", "<string>"])
def test_what_is_neither_a_librarys_nor_the_courses_is_the_learners(file):
    assert is_learners(file)
    assert not is_learners(frames.__file__)


def test_whether_a_library_is_being_imported(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "watched_library.py").write_text(LIBRARY)
    (tmp_path / "watched_module.py").write_text(MODULE)
    for path in (folder, tmp_path):
        monkeypatch.syspath_prepend(path)
    for name, function in (("look", look), ("ask", ask)):
        monkeypatch.setattr(builtins, name, function, raising=False)
    module = importlib.import_module("watched_module")
    library = sys.modules["watched_library"]
    assert library.body == library.called == library.made == library.courses == (True, True)
    assert library.learners == (False, True)
    assert module.body == ask() == library.function() == (False, False)
    for name in ("watched_library", "watched_module"):
        del sys.modules[name]
