"""The kernel's calls that Python has no names for."""

from __future__ import annotations

import ctypes
import os
import platform

_LIBRARY = ctypes.CDLL(None, use_errno=True)

# x86_64 and the newer architectures
_NUMBERS = {
    **{
        "pivot_root": (155, 41),
        "capset": (126, 91),
        "mount_setattr": (442, 442),
        "landlock_create_ruleset": (444, 444),
    },
    **{"landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446)},
}

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
MNT_DETACH = 2
MADV_COLLAPSE = 25
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38


def call(name: str, *arguments: int | bytes | None) -> int:
    """Make a system call. Raises OSError with the kernel's reason."""
    number = _NUMBERS[name][platform.machine() != "x86_64"]
    words = [ctypes.c_long(word) if isinstance(word, int) else ctypes.c_char_p(word) for word in arguments]
    return _checked(_LIBRARY.syscall(ctypes.c_long(number), *words), name)


def prctl(option: int, *arguments: int) -> None:
    """Change a property of this process. Raises OSError."""
    words = [ctypes.c_ulong(word) for word in (*arguments, 0, 0, 0, 0)[:4]]
    _checked(_LIBRARY.prctl(ctypes.c_int(option), *words), "prctl")


def unshare(flags: int) -> None:
    """Give this process new namespaces. Raises OSError where that is forbidden."""
    _checked(_LIBRARY.unshare(ctypes.c_int(flags)), "unshare")


def madvise(start: int, size: int, advice: int) -> None:
    """Tell how a part of this process's memory is to be kept. Raises OSError."""
    words = ctypes.c_void_p(start), ctypes.c_size_t(size), ctypes.c_int(advice)
    _checked(_LIBRARY.madvise(*words), "madvise")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount something. Raises OSError."""
    words = [ctypes.c_char_p(text.encode()) for text in (source, target, kind)]
    _checked(_LIBRARY.mount(*words, ctypes.c_ulong(flags), ctypes.c_char_p(options.encode())), f"mount {target}")


def unmount(target: str) -> None:
    """Take a mount away, now or once nothing uses it. Raises OSError."""
    _checked(_LIBRARY.umount2(ctypes.c_char_p(target.encode()), ctypes.c_int(MNT_DETACH)), f"umount {target}")


def make_read_only(target: str) -> None:
    """Make a mount and those inside it read-only, without devices and set-user-id. Raises OSError before Linux 5.12."""
    attributes = 1 | 2 | 4  # MOUNT_ATTR_RDONLY, _NOSUID, _NODEV
    recursive = 0x8000
    held = attributes.to_bytes(8, "little") + bytes(24)
    call("mount_setattr", -100, target.encode(), recursive, held, len(held))


def drop_capabilities() -> None:
    """Give up every capability. Raises OSError."""
    version = (0x20080522).to_bytes(4, "little") + bytes(4)
    call("capset", version, bytes(24))


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
