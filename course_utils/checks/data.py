"""The plain data that crosses between cases, observers and judges: numbers, text, arrays, nothing that can run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import torch

from course_utils.explain.crossing import Told

# The largest tensor and text that cross. Larger ones arrive as Other.
MAX_BYTES = 16_000_000
MAX_TEXT = 100_000
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
        real = tensor.detach().clone() if tensor._is_zerotensor() else tensor.detach()  # torch.func makes some
        flat = real.cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
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
Answer: TypeAlias = Callable[..., Any]  # what a learner wrote, where it is a function


class Case(msgspec.Struct, frozen=True):
    """One situation that an answer is tried in: a name that messages can use, and what is given."""

    name: str
    given: dict[str, Any] = {}


class Raised(msgspec.Struct, frozen=True):
    """An exception that the learner's code raised, the learner's own line, where there is one, and what it means.

    The explanation comes from the learner's process: it is shown as text, and decides nothing.
    """

    kind: str
    message: str
    line: str = ""
    line_number: int = 0
    explanation: Told | None = None


class TimedOut(msgspec.Struct, frozen=True):
    """The learner's code was stopped after `seconds`."""

    seconds: float


_KINDS: dict[int, type] = {1: Array, 2: Other, 3: Raised, 4: TimedOut}


def plain(value: object, depth: int = 0) -> Value:
    """Turn what a learner's code returned into plain data. Nothing of the learner's is called or changed.

    Exact types only: a subclass could carry code of its own, so it crosses as Other.
    """
    kind = type(value)
    if value is None or kind in (bool, float):
        return value  # type: ignore[return-value]
    if kind is int:
        return value if -(2**63) <= value < 2**64 else Other("int, too large to compare")  # type: ignore
    if kind is str:
        return printable(value) if len(value) <= MAX_TEXT else Other("text, too long to compare")  # type: ignore
    if kind in (torch.Tensor, torch.nn.Parameter) and _storable(value):
        return Array.of(value)  # type: ignore[arg-type]
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic) and kind.__module__ == "numpy":
        return plain(value.item(), depth + 1) if depth < MAX_DEPTH else Other(type_name(value))
    if depth < MAX_DEPTH:
        if kind in (list, tuple, torch.Size):
            return [plain(item, depth + 1) for item in value]  # type: ignore[attr-defined]
        if kind is dict and all(type(key) is str for key in value):  # type: ignore[attr-defined]
            return {printable(key): plain(item, depth + 1) for key, item in value.items()}  # type: ignore[attr-defined]
    return Other(_tensor_kind(value) if isinstance(value, torch.Tensor) else type_name(value))


def printable(text: str) -> str:
    """Return the text with what UTF-8 cannot hold escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def type_name(value: object) -> str:
    """Name a value's type as a learner would: "function", "class Walker", "ndarray"."""
    if isinstance(value, type):
        return f"class {_name(value)}"
    kind = type(value)
    module = f"{kind.__module__}." if str(kind.__module__) == "numpy" else ""
    name = f"{module}{_name(kind)}"
    return {"builtin_function_or_method": "function", "ellipsis": "..."}.get(name, name)


def _name(kind: type) -> str:
    name: str = type.__dict__["__name__"].__get__(kind)  # a metaclass of the learner's may have another
    return printable(name)


def _tensor_kind(value: torch.Tensor) -> str:
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        return type_name(value)
    if value.layout is not torch.strided:
        return f"{str(value.layout).removeprefix('torch.').replace('_', ' ')} tensor"
    if value.is_meta:
        return "tensor on the device meta, without numbers"
    if value.dtype not in _DTYPES.values():
        return f"tensor of dtype {str(value.dtype).removeprefix('torch.')}"
    return "tensor that is too large to compare"


def encode(value: Value | Raised | TimedOut) -> bytes:
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
    ordinary = value.layout is torch.strided and not value.is_meta and value.dtype in _DTYPES.values()
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return False
    return ordinary and value.nbytes <= MAX_BYTES
