"""`course doctor`: what is here, what is odd, what is missing, and how to mend it."""

import os
import subprocess
import sys
from importlib import metadata

import pytest
from click.testing import CliRunner

from course_utils import cli, doctor
from course_utils.doctor import Look, look, report
from course_utils.place import ROOT


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.sqlite"))
    monkeypatch.setenv("COURSE_COPY", str(tmp_path / "mine"))


def found(name):
    return next(one for one in look() if one.name == name)


def test_here_nothing_is_missing():
    done = CliRunner().invoke(cli.course, ["doctor"])
    assert done.exit_code == 0
    assert "✘" not in done.output
    assert f"PyTorch: {metadata.version('torch')}" in done.output


def test_another_pytorch_is_odd(monkeypatch):
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "2.9.1+cu128" if name == "torch" else version(name))
    torch = found("PyTorch")
    assert torch.state == "odd"
    assert "2.9.1+cu128, build: cu128" in torch.found
    assert "pip install torch==2.13.0" in torch.repair


def test_a_missing_package_is_missing_and_the_exit_code_says_so(monkeypatch):
    version = metadata.version

    def without(name):
        if name == "torchviz":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    done = CliRunner().invoke(cli.course, ["doctor"])
    assert done.exit_code == 1
    assert f"✘ Packages: no torchviz\n    Try: {sys.executable} -m pip install torchviz\n" in done.output


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("torch", "✘ PyTorch: {torch} cannot be imported: gone"),
        ("jupyter_client", "✘ Kernel: cannot be looked at: gone"),
    ],
)
def test_whatever_cannot_be_imported_all_the_rest_is_looked_at(module, line, tmp_path):
    """A package may be listed as installed, and still not load: a library that it needs is missing, say."""
    (tmp_path / module).mkdir()
    (tmp_path / module / "__init__.py").write_text("raise ImportError('gone', name='lost')")
    (tmp_path / "mine").mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "course_utils", "doctor"], env=environment, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 1, done.stderr
    assert line.format(torch=metadata.version("torch")) in done.stdout
    said = [row[2:].partition(":")[0] for row in done.stdout.splitlines() if row[0] != " "]
    assert said == list(doctor._LOOKS)


def test_where_the_course_is_not_installed_what_it_needs_is_not_known(monkeypatch):
    def none(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", none)
    assert found("Packages").state == "missing"
    assert "course itself is not installed" in found("Packages").found


def test_a_kernel_of_another_python_is_odd(monkeypatch):
    from jupyter_client.kernelspec import KernelSpecManager

    class Other:
        argv = ("/opt/other/bin/python", "-m", "ipykernel_launcher")

    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", lambda self, name: Other)
    kernel = found("Kernel")
    assert (kernel.state, kernel.found) == ("odd", "/opt/other/bin/python")


def test_without_lessons_nothing_can_be_learnt(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    assert found("Lessons").state == "missing"


def test_a_copy_that_is_not_trusted_is_odd(tmp_path):
    (tmp_path / "mine" / "notebooks").mkdir(parents=True)
    text = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    (tmp_path / "mine" / "notebooks" / "00_a.ipynb").write_text(text)
    copy = found("Your copy")
    assert copy.state == "odd"
    assert "not trusted: 00_a.ipynb" in copy.found
    assert "jupyter trust" in copy.repair
    (tmp_path / "mine" / "notebooks" / "00_a.ipynb").write_text("{")
    assert "cannot be read" in found("Your copy").found


def test_no_sandbox_and_no_browser_are_odd_and_do_not_fail(monkeypatch):
    monkeypatch.setattr("course_utils.grading.controller.machine.available", lambda: "none")
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    said = []
    assert report(said.append)
    assert [line[0] for line in said if line.startswith(("? Sandbox", "? Chromium"))] == ["?", "?"]


def test_a_look_says_its_repair_on_a_line_of_its_own():
    assert str(Look("Kernel", "odd", "elsewhere", "Start anew.")) == "? Kernel: elsewhere\n    Start anew."
