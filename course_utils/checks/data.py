"""The plain data that crosses between cases, observers and judges: numbers, text, arrays, nothing that can run."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import torch

# What one answer may send across. Larger tensors arrive as Other.
MAX_BYTES = 16_000_000
MAX_DEPTH = 20

_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    )
}


class Array(msgspec.Struct, frozen=True):
    """The numbers of a tensor, row by row, without its graph."""

    shape: tuple[int, ...]
    dtype: str
    data: bytes

    @staticmethod
    def of(tensor: torch.Tensor) -> Array:
        """Copy a tensor's numbers. The tensor itself is left as it was."""
        flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        numbers = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        return Array(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), numbers)

    def tensor(self) -> torch.Tensor:
        """Return a new tensor with these numbers. Raises ValueError where size and shape disagree."""
        dtype = _DTYPES.get(self.dtype)
        if dtype is None:
            raise ValueError(f"no dtype is called {self.dtype!r}")
        empty = torch.empty(self.shape, dtype=dtype)
        if empty.nbytes != len(self.data):
            raise ValueError(f"{len(self.data)} bytes cannot fill shape {self.shape} of {self.dtype}")
        if not self.data:
            return empty
        return torch.frombuffer(bytearray(self.data), dtype=dtype).reshape(self.shape)


class Other(msgspec.Struct, frozen=True):
    """Something that is no plain data: only the name of its type crosses."""

    kind: str


Value: TypeAlias = "bool | int | float | str | Array | Other | list[Value] | dict[str, Value] | None"
Observation: TypeAlias = dict[str, Any]


class Case(msgspec.Struct, frozen=True):
    """One situation that an answer is tried in: a name that messages can use, and what is given."""

    name: str
    given: dict[str, Any] = {}


class Raised(msgspec.Struct, frozen=True):
    """An exception that the learner's code raised, and the learner's own line, where there is one."""

    kind: str
    message: str
    line: str = ""
    line_number: int = 0


class TimedOut(msgspec.Struct, frozen=True):
    """The learner's code was stopped after `seconds`."""

    seconds: float


_KINDS: dict[int, type] = {1: Array, 2: Other, 3: Raised, 4: TimedOut}


def plain(value: object, depth: int = 0) -> Value:
    """Turn what a learner's code returned into plain data. Nothing of the learner's is called or changed.

    Exact types only: a subclass could carry code of its own, so it crosses as Other.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value  # type: ignore[return-value]
    if kind in (torch.Tensor, torch.nn.Parameter) and _storable(value):
        return Array.of(value)  # type: ignore[arg-type]
    if depth < MAX_DEPTH:
        if kind in (list, tuple, torch.Size):
            return [plain(item, depth + 1) for item in value]  # type: ignore[attr-defined]
        if kind is dict and all(type(key) is str for key in value):  # type: ignore[attr-defined]
            return {key: plain(item, depth + 1) for key, item in value.items()}  # type: ignore[attr-defined]
    return Other(type_name(value))


def type_name(value: object) -> str:
    """Name a value's type as a learner would: "function", "class Walker", "ndarray"."""
    if isinstance(value, type):
        return f"class {value.__name__}"
    return {"builtin_function_or_method": "function", "ellipsis": "..."}.get(type(value).__name__, type(value).__name__)


def encode(value: Value) -> bytes:
    """Write plain data as msgpack. Raises TypeError for anything that is no plain data."""
    return msgspec.msgpack.encode(_tagged(value))


def decode(message: bytes) -> Any:
    """Read plain data. Only the types of Value can come out, whatever the message holds.

    Raises msgspec.DecodeError where the message is none of ours.
    """
    return msgspec.msgpack.decode(message, ext_hook=_from_ext)


def _tagged(value: Any) -> Any:
    for code, kind in _KINDS.items():
        if type(value) is kind:
            return msgspec.msgpack.Ext(code, msgspec.msgpack.encode(value))
    if isinstance(value, list | tuple):
        return [_tagged(item) for item in value]
    if isinstance(value, dict):
        return {key: _tagged(item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a {type_name(value)} is no plain data: use plain(value), or Array.of(tensor)")


def _from_ext(code: int, data: memoryview) -> Any:
    if code not in _KINDS:
        raise msgspec.DecodeError(f"unknown extension {code}")
    return msgspec.msgpack.decode(data, type=_KINDS[code])


def _storable(value: Any) -> bool:
    return (
        value.layout is torch.strided
        and not value.is_meta
        and str(value.dtype).removeprefix("torch.") in _DTYPES
        and value.nbytes <= MAX_BYTES
    )
