"""What the controller and the processes that run learner code say to each other: typed messages in frames of a size."""

from __future__ import annotations

import select
import socket
import time
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args

import msgspec

# How learner code is kept in, from the strongest. "namespaces" needs root, and each of its children runs as a user of
# its own; "user namespaces" needs a kernel that lets ordinary users make them; "landlock" shares process ids with the
# rest of the machine, without root its user too, and relies on Landlock and the filter alone; "none" limits time and
# memory, and nothing else.
Mode: TypeAlias = Literal["namespaces", "user namespaces", "landlock", "none"]
MODES: tuple[Mode, ...] = get_args(Mode)

# To a warm parent, in place of a message: stop the child.
STOP = b"stop"

# No right answer's observation comes near it. A larger one is refused before it is read.
MAX_FRAME = 4_000_000

# What a child may say beside observations. Decoding refuses more, so that nothing later has to think of it.
MAX_TEXT = 4000
MAX_TEXTS = 10
MAX_CELLS = 5000
# Threads that one cell may start. A process with four times as many is ended from outside.
MAX_THREADS = 64
MAX_RAISED = 200
MAX_NAMED = 300
Token: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=16)]
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Texts: TypeAlias = Annotated[tuple[Text, ...], msgspec.Meta(max_length=MAX_TEXTS)]
CellIndex: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MAX_CELLS)]
CellIndices: TypeAlias = Annotated[tuple[CellIndex, ...], msgspec.Meta(max_length=MAX_CELLS)]
Named: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_NAMED)]
RaisedIn: TypeAlias = Annotated[tuple[tuple[CellIndex, Named], ...], msgspec.Meta(max_length=MAX_RAISED)]


class WireError(Exception):
    """The other side sent what is no message, or too much, or nothing in time. The message says which."""


class Closed(WireError):
    """The other side is gone."""


class Limits(msgspec.Struct, frozen=True):
    """What a submission may use: wall seconds, and bytes of memory beyond those of the process that it is forked from.

    `readable` are folders that stay readable, `hidden` folders inside them that do not; a warm parent adds its own.
    """

    mode: Mode
    seconds: float
    memory: int
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


class Start(msgspec.Struct, frozen=True):
    """To a warm parent: fork a child for the socket that comes along, for this lesson, and watch over it."""

    lesson: str
    limits: Limits


class Started(msgspec.Struct, frozen=True, tag=True):
    """From a warm parent: it has loaded what it lacked, and forks the child now."""


class Ended(msgspec.Struct, frozen=True, tag=True):
    """From a warm parent: how a child ended, after what CPU seconds and bytes of memory at most."""

    how: str  # "stopped" by the controller, "timeout", "memory", "threads", "refused" by the machine, or "died"
    detail: str = ""
    cpu: float = 0.0
    memory: int = 0


class Run(msgspec.Struct, frozen=True, tag="run"):
    """To a child: run these cells, each for so many seconds. The answers are observed in the second way if `second`."""

    token: bytes
    sources: tuple[str, ...]
    seconds: float
    second: bool = False


class Try(msgspec.Struct, frozen=True, tag="try"):
    """To a child: say whether the answer to an exercise, which stands under `name`, can be tried at all."""

    token: bytes
    exercise: str
    name: str
    lesson: str
    call: str | None
    seconds: float


class Observe(msgspec.Struct, frozen=True, tag="observe"):
    """To a child: observe the answer that was tried last in one case. `given` is encoded as checks/data.py does.

    After the `last` case it looks what the answer changed: any change makes all of the exercise wrong.
    """

    token: bytes
    case: str
    given: bytes
    seed: int
    seconds: float
    last: bool


Request = Run | Try | Observe


class Ran(msgspec.Struct, frozen=True):
    """From a child: which cells, from 0, were stopped by their time limit, lacked memory, or asked for more threads.

    `raised` are the other cells that raised an exception, the first MAX_RAISED of them, each with its name and first
    line: a text of the learner's, which is shown and decides nothing.
    """

    token: Token
    stopped: CellIndices = ()
    starved: CellIndices = ()
    crowded: CellIndices = ()
    raised: RaisedIn = ()


class Tried(msgspec.Struct, frozen=True):
    """From a child: whether there is an answer, and why it cannot be tried, if so."""

    token: Token
    attempted: bool
    problem: Text = ""


class Seen(msgspec.Struct, frozen=True):
    """From a child: an encoded observation, the warnings, and what the answer changed that it should not have."""

    token: Token
    seen: bytes
    warnings: Texts = ()
    changed: Texts = ()


Answer = Ran | Tried | Seen
Kind = TypeVar("Kind", bound=Answer)

_encode = msgspec.msgpack.Encoder().encode


def send(line: socket.socket, message: msgspec.Struct, seconds: float = 30.0) -> None:
    """Send one message. Raises Closed where the other side is gone or takes nothing for `seconds`."""
    body = _encode(message)
    line.settimeout(seconds)
    try:
        line.sendall(len(body).to_bytes(4, "big") + body)
    except OSError as error:
        raise Closed(f"nothing can be sent: {error}") from error


def ask(line: socket.socket, question: Request, kind: type[Kind], end: float) -> Kind:
    """Ask a child, and return its answer, which comes by `end` on the monotonic clock.

    Raises Closed where the child is gone, and WireError where something came that nobody asked for, or comes that is
    no such answer or not the one to this question.
    """
    if select.select([line], [], [], 0)[0] and line.recv(1, socket.MSG_PEEK):
        raise WireError("a message came that nobody asked for")
    send(line, question, max(end - time.monotonic(), 0.1))
    answer: Kind = receive(line, kind, max(end - time.monotonic(), 0.1))
    if answer.token != question.token:
        raise WireError("an answer came to another question")
    return answer


def receive(line: socket.socket, kind: Any, seconds: float | None = None, largest: int = MAX_FRAME) -> Any:
    """Receive one message of a type, of at most `largest` bytes. Raises Closed, or WireError where none such comes."""
    end = None if seconds is None else time.monotonic() + seconds
    size = int.from_bytes(_exactly(line, 4, end), "big")
    if size > largest:
        raise WireError(f"a message of {size:,} bytes came; at most {largest:,} are read")
    body = _exactly(line, size, end)
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(f"what came is no message: {error}") from error


def _exactly(line: socket.socket, size: int, end: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            raise WireError("nothing came in time")
        line.settimeout(left)
        try:
            part = line.recv(min(size - len(parts), 1 << 20))
        except TimeoutError as error:
            raise WireError("nothing came in time") from error
        except OSError as error:
            raise Closed(f"nothing can be received: {error}") from error
        if not part:
            raise Closed("the other side is gone")
        parts += part
    return bytes(parts)
