"""What this machine has of what the course needs, and how to mend what it lacks."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from course_utils.place import ROOT

State = Literal["fine", "odd", "missing"]

MARKS: dict[State, str] = {"fine": "✔", "odd": "?", "missing": "✘"}
# What installs into this environment, whether or not its commands are on the path.
_INSTALL = f"{sys.executable} -m pip install"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Look:
    """One thing that was looked at: what was found, and what to do where it is not fine."""

    name: str
    state: State
    found: str
    repair: str = ""

    def __str__(self) -> str:
        line = f"{MARKS[self.state]} {self.name}: {self.found}"
        return f"{line}\n    {self.repair}" if self.repair else line


def look() -> Iterator[Look]:
    """Look at one thing after another: "missing" is what lessons cannot do without, "odd" what only a part needs."""
    for name, each in _LOOKS.items():
        try:
            yield each()
        except ImportError as error:
            found = f"cannot be looked at: {error}"
            yield Look(name, "missing", found, f"Try: {_INSTALL} {error.name or 'autograd-course'}")


def _python() -> Look:
    return Look("Python", "fine", f"{platform.python_version()} at {sys.executable}")


def _torch() -> Look:
    wanted = _pin("torch")
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return Look("PyTorch", "missing", "not installed", f"Try: {_INSTALL} torch=={wanted}")
    try:
        import torch  # noqa: F401
    except (ImportError, OSError) as error:  # a library of the system that it needs, or a part of its own
        again = f"Try: {_INSTALL} --force-reinstall --no-deps torch=={wanted}"
        return Look("PyTorch", "missing", f"{version} cannot be imported: {error}", again)
    build = version.partition("+")[2] or "as PyPI brings it"
    if version.partition("+")[0] != wanted:
        repair = f"Outputs of the course are those of {wanted}; some cells will differ. Try: {_INSTALL} torch=={wanted}"
        return Look("PyTorch", "odd", f"{version}, build: {build}", repair)
    return Look("PyTorch", "fine", f"{version}, build: {build}")


def _packages() -> Look:
    names = [name for line in _required() if (name := re.split(r"[^\w.-]", line)[0]) != "torch"]
    if not names:
        repair = "Install it: `make lab` in a clone, or its wheel with pip."
        return Look("Packages", "missing", "the course itself is not installed in this Python", repair)
    lacking = [name for name in names if not _installed(name)]
    if lacking:
        return Look("Packages", "missing", f"no {', '.join(lacking)}", f"Try: {_INSTALL} {' '.join(lacking)}")
    return Look("Packages", "fine", f"all {len(names)} that the course needs are here")


def _kernel() -> Look:
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        command = KernelSpecManager().get_kernel_spec("python3").argv[0]  # "python" stands for the one that starts it
    except NoSuchKernel:
        repair = f"Try: {sys.executable} -m ipykernel install --sys-prefix"
        return Look("Kernel", "missing", "no kernel is called python3", repair)
    if Path(command).is_absolute() and not _same(command, sys.executable):
        repair = (
            "Notebooks run in that Python, not in this one. Start JupyterLab with `course lab` of this environment."
        )
        return Look("Kernel", "odd", command, repair)
    return Look("Kernel", "fine", "notebooks run in this Python")


def _notebooks() -> Look:
    count = len(list((ROOT / "notebooks").glob("*.ipynb")))
    if not count:
        return Look("Lessons", "missing", f"none in {ROOT / 'notebooks'}", "Clone the course, or install its wheel.")
    return Look("Lessons", "fine", f"{count} in {ROOT / 'notebooks'}")


def _copy() -> Look:
    from course_utils import copies

    own = copies.place()
    if not own.exists():
        return Look("Your copy", "fine", f"none yet: `course lab` makes {own}")
    from nbformat import read
    from nbformat.sign import NotebookNotary

    notary, files = NotebookNotary(), list(own.glob("notebooks/*.ipynb"))
    try:
        untrusted = [path.name for path in files if not notary.check_signature(read(path, 4))]
    except Exception as error:  # nbformat raises many kinds for damaged files
        reason = f"a notebook of it cannot be read: {type(error).__name__}"
        return Look("Your copy", "odd", reason, "course lab --fresh NN starts a lesson again, and keeps the old file.")
    if untrusted:
        trust = f"{sys.executable} -m jupyter trust {own}/notebooks/*.ipynb"
        repair = f"Their pictures and widgets stay blank until you trust them: {trust}"
        return Look("Your copy", "odd", f"{own}, not trusted: {', '.join(untrusted)}", repair)
    return Look("Your copy", "fine", f"{own}, {len(files)} lessons, trusted")


def _progress() -> Look:
    from course_utils.checks.progress import path

    folder = next(parent for parent in (path(), *path().parents) if parent.exists())
    if not os.access(folder, os.W_OK):
        return Look("Progress", "odd", f"{path()} cannot be written", "Name another file: COURSE_PROGRESS=FILE")
    return Look("Progress", "fine", f"kept in {path()}")


def _sandbox() -> Look:
    """Only teachers need it."""
    from course_utils.grading.controller.machine import available

    try:
        mode = available()
    except (OSError, subprocess.SubprocessError) as error:
        return Look("Sandbox", "odd", f"could not be tried: {error}", "Lessons do without. To grade, take a Linux.")
    if mode == "none":
        return Look("Sandbox", "odd", "none here", "Lessons do without. To grade a class, take a Linux: SECURITY.md.")
    return Look("Sandbox", "fine", f"{mode}, for grading")


def _browser() -> Look:
    """Only the test suite needs it."""
    found = chromium()
    if found:
        return Look("Chromium", "fine", f"{found}, for the browser tests")
    repair = "Lessons do without. To test: install it, or `.venv/bin/playwright install chromium`."
    return Look("Chromium", "odd", "none found", repair)


def chromium() -> str | None:
    """Return the Chromium that browser tests run: $CHROMIUM, or an installed one; None where there is neither."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


# Name by name, what is looked at, in this order.
_LOOKS: dict[str, Callable[[], Look]] = {
    "Python": _python,
    "PyTorch": _torch,
    "Packages": _packages,
    "Kernel": _kernel,
    "Lessons": _notebooks,
    "Your copy": _copy,
    "Progress": _progress,
    "Sandbox": _sandbox,
    "Chromium": _browser,
}


def _required() -> list[str]:
    """Return what a learner's install asks for, from the course's own metadata; nothing where it is not installed."""
    try:
        return [line for line in metadata.requires("autograd-course") or [] if "extra ==" not in line]
    except metadata.PackageNotFoundError:
        return []


def _pin(name: str) -> str:
    """Return the version of a package that the course is made for."""
    return next((line.partition("==")[2] for line in _required() if line.startswith(f"{name}==")), "")


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _same(one: str, other: str) -> bool:
    try:
        return Path(one).parent.resolve() == Path(other).parent.resolve()
    except OSError:
        return False


def report(say: Callable[[str], None]) -> bool:
    """Say what was found, line by line as it is found, and return whether lessons will run."""
    states = []
    for each in look():
        say(str(each))
        states.append(each.state)
    return "missing" not in states
