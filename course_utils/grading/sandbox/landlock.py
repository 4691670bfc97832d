"""Landlock: a process gives up the file system, but for folders that it may read. It needs no privilege."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable

from course_utils.grading.sandbox.kernel import call

_VERSION_ONLY = 1
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# How many kinds of access to files each version knows: 13, then refer, truncate and ioctl on devices.
_KINDS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_ALL_NET, _ALL_SCOPES = 0b11, 0b11


def version() -> int:
    """Return the kernel's version of Landlock; 0 where there is none."""
    try:
        return call("landlock_create_ruleset", None, 0, _VERSION_ONLY)
    except OSError:
        return 0


def restrict(readable: Iterable[str], listed: Iterable[str] = ()) -> None:
    """Forbid this process all files but those in `readable`, TCP, and signals to others, where the kernel knows how.

    What is in `listed` can only be listed: Python finds a library by a list of what lies beside it.

    no_new_privs must be set. Raises OSError where the kernel has no Landlock.
    """
    known = version()
    access = (1 << _KINDS[min(max(known, 1), 5)]) - 1
    fields = [access, _ALL_NET if known >= 4 else 0, _ALL_SCOPES if known >= 6 else 0]
    size = 8 if known < 4 else 16 if known < 6 else 24
    ruleset = call("landlock_create_ruleset", struct.pack("QQQ", *fields)[:size], size, 0)
    try:
        rules = [(path, _READ_FILE | _READ_DIR) for path in readable] + [(path, _READ_DIR) for path in listed]
        for path, rights in rules:
            try:
                folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:  # what this user cannot reach needs no rule
                continue
            try:
                if not stat.S_ISDIR(os.fstat(folder).st_mode):
                    rights &= ~_READ_DIR
                call("landlock_add_rule", ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, folder), 0)
            finally:
                os.close(folder)
        call("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)
