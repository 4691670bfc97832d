"""Which system calls sandboxed code may make: a list of allowed ones, as a filter that the kernel runs."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from course_utils.grading.sandbox.kernel import prctl

# Everything that computing, memory, threads, clocks and files of one's own need. What is missing here cannot be called:
# no new processes, no programs, no network, no mounts, no signals to others, no tracing, no limits lifted. Nor what
# changes a file that can only be read: a lock on it, its pages in memory, and for its owner, whom Landlock does not
# stop, its mode and its times. The numbers are the kernel's, for x86_64 and for the newer architectures; None where the
# newer ones lack the call.
_ALLOWED: dict[str, tuple[int, int | None]] = {
    **{"read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67)},
    **{"pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70), "lseek": (8, 62), "close": (3, 57)},
    **{"futex": (202, 98), "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226)},
    **{"madvise": (28, 233), "mincore": (27, 232), "brk": (12, 214), "msync": (26, 227), "membarrier": (324, 283)},
    **{"clock_gettime": (228, 113), "clock_getres": (229, 114), "gettimeofday": (96, 169), "time": (201, None)},
    **{"nanosleep": (35, 101), "clock_nanosleep": (230, 115), "times": (100, 153), "getrusage": (98, 165)},
    **{"setitimer": (38, 103), "getitimer": (36, 102), "alarm": (37, None), "pause": (34, None)},
    **{"rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136)},
    **{"rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132)},
    **{"restart_syscall": (219, 128), "exit": (60, 93), "exit_group": (231, 94), "sched_yield": (24, 124)},
    **{"set_robust_list": (273, 99), "get_robust_list": (274, 100), "set_tid_address": (218, 96), "rseq": (334, 293)},
    **{"sched_getaffinity": (204, 123), "sched_getparam": (143, 121), "sched_getscheduler": (145, 120)},
    **{"getcpu": (309, 168), "getrandom": (318, 278), "sysinfo": (99, 179), "uname": (63, 160), "getrlimit": (97, 163)},
    **{"getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175)},
    **{"getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148), "getresgid": (120, 150)},
    **{"getgroups": (115, 158), "getpgrp": (111, None), "getpgid": (121, 155), "getsid": (124, 156)},
    **{"open": (2, None), "openat": (257, 56), "openat2": (437, 437), "close_range": (436, 436), "creat": (85, None)},
    **{"stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291)},
    **{"access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None)},
    **{"readlinkat": (267, 78), "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50)},
    **{"mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None), "unlinkat": (263, 35)},
    **{"rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "ftruncate": (77, 46)},
    **{"fsync": (74, 82), "fdatasync": (75, 83), "fallocate": (285, 47), "sendfile": (40, 71)},
    **{"copy_file_range": (326, 285), "umask": (95, 166), "statfs": (137, 43), "fstatfs": (138, 44)},
    **{"dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None), "pipe2": (293, 59)},
    **{"poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72)},
    **{"epoll_create": (213, None), "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None)},
    **{"epoll_pwait": (281, 22), "eventfd": (284, None), "eventfd2": (290, 19)},
    **{"recvfrom": (45, 207), "sendto": (44, 206), "recvmsg": (47, 212), "sendmsg": (46, 211), "shutdown": (48, 210)},
    **{"getsockopt": (55, 209), "getsockname": (51, 204), "getpeername": (52, 205), "get_mempolicy": (239, 236)},
    **{"pkey_alloc": (330, 289), "pkey_mprotect": (329, 288), "pkey_free": (331, 290)},
}
# Allowed with some arguments only: see `program`.
_SOME = {"clone": (56, 220), "fcntl": (72, 25), "ioctl": (16, 29), "prlimit64": (302, 261), "socketpair": (53, 199)}
_SOME |= {"tgkill": (234, 131)}
_CLONE3 = 435

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

_CLONE_THREAD = 0x10000
# fcntl's F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ. Others lock files and set hints
# on them, which every process sees, let the kernel send signals to others, or take of what a user has once.
_OF_DESCRIPTORS = (0, 1, 2, 3, 4, 1030, 1032)
# ioctl's TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
_HARMLESS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)

_LOAD, _EQUAL, _BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE = 0, 4

_PR_SET_SECCOMP, _FILTER = 22, 2


def supported() -> bool:
    """Return whether the filter knows this processor's system calls."""
    return platform.machine() in _ARCHITECTURES


def install() -> None:
    """Install the filter in this thread and what it starts, for good. no_new_privs must be set.

    Raises OSError where the kernel refuses, and KeyError where the processor is unknown.
    """
    code = program(platform.machine(), os.getpid())
    held = ctypes.create_string_buffer(code, len(code))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held)), 16)
    prctl(_PR_SET_SECCOMP, _FILTER, ctypes.addressof(head))


def program(machine: str, pid: int) -> bytes:
    """Return the filter in the kernel's form for the process `pid`: instructions of 8 bytes."""
    architecture, column = _ARCHITECTURES[machine]
    code = [_op(_LOAD, _ARCHITECTURE), _op(_EQUAL, architecture, 1, 0), _op(_RETURN, _KILL), _op(_LOAD, _NUMBER)]
    for numbers in _ALLOWED.values():
        number = numbers[column]
        if number is not None:
            code += [_op(_EQUAL, number, 0, 1), _op(_RETURN, _ALLOW)]
    some = {name: numbers[column] for name, numbers in _SOME.items()}
    refuse = _op(_RETURN, _ERRNO | errno.EPERM)
    allow = _op(_RETURN, _ALLOW)
    threads = [_op(_LOAD, _low(0)), _op(_BITS, _CLONE_THREAD, 0, 1), allow, refuse]
    own = [_op(_LOAD, _low(0)), _op(_EQUAL, pid, 0, 1), allow, refuse]
    local = [_op(_LOAD, _low(0)), _op(_EQUAL, 1, 0, 1), allow, refuse]  # AF_UNIX
    commands = [_op(_LOAD, _low(1))]
    for command in _OF_DESCRIPTORS:
        commands += [_op(_EQUAL, command, 0, 1), allow]
    requests = [_op(_LOAD, _low(1))]
    for request in _HARMLESS:
        requests += [_op(_EQUAL, request, 0, 1), allow]
    reading = []  # prlimit64(0, what, NULL, ...): only one's own limits, and no new ones
    for word in (_low(0), _low(2), _low(2) + 4):
        reading += [_op(_LOAD, word), _op(_EQUAL, 0, 1, 0), refuse]
    blocks = {"clone": threads, "tgkill": own, "socketpair": local, "fcntl": [*commands, refuse]}
    blocks |= {"ioctl": [*requests, refuse], "prlimit64": [*reading, allow]}
    for name, block in blocks.items():
        code += [_op(_EQUAL, some[name], 0, len(block)), *block]
    # With "no such call" the C library starts its threads by clone, whose flags a filter can see.
    code += [_op(_EQUAL, _CLONE3, 0, 1), _op(_RETURN, _ERRNO | errno.ENOSYS), refuse]
    return b"".join(code)


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)


def _low(argument: int) -> int:
    return 16 + 8 * argument  # both architectures are little-endian
