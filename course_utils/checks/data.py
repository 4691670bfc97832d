"""The plain data that crosses between cases, observers and judges: numbers, text, arrays, nothing that can run."""

from __future__ import annotations

import decimal
import numbers
import sys
from collections.abc import Callable, Mapping, Sequence
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
        kind = str(tensor.dtype).removeprefix("torch.")
        real = tensor.detach().clone() if tensor._is_zerotensor() else tensor  # torch.func makes some
        if kind in _DTYPES and kind != "bfloat16":
            return Array(tuple(tensor.shape), kind, real.numpy(force=True).tobytes())
        rows = real.detach().cpu().contiguous()  # of a kind that NumPy has not
        flat = rows.as_strided((rows.numel(),), (1,))  # a tensor of one number may have any stride, and is contiguous
        return Array(tuple(tensor.shape), kind, flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")

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
    """Turn what a learner's code returned into plain data. Nothing of the learner's is changed.

    Any mapping with texts for keys crosses as a dict, any sequence as a list, any real number, NumPy's too, as an int
    or a float. What a subclass of a built-in type holds is read by the built-in's own methods. Of tensors only exact
    types cross, as a subclass answers every question with code of its own.
    """
    kind = type(value)
    if value is None or kind in (bool, float):
        return value  # type: ignore[return-value]
    if isinstance(value, int):
        return int.__index__(value) if -(2**63) <= value < 2**64 else Other("int, too large to compare")
    if isinstance(value, str):
        return printable(str.__str__(value)) if str.__len__(value) <= MAX_TEXT else Other("text, too long to compare")
    if kind in (torch.Tensor, torch.nn.Parameter) and _storable(value):
        return Array.of(value)  # type: ignore[arg-type]
    if isinstance(value, torch.Tensor):
        return Other(_tensor_kind(value))
    if isinstance(value, type):
        return Other(type_name(value))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return plain(int(value), depth)
    if isinstance(value, numbers.Real | decimal.Decimal) or (numpy is not None and isinstance(value, numpy.floating)):
        return float(value)
    if depth < MAX_DEPTH:
        items = _items(value)
        if isinstance(items, dict) and all(isinstance(key, str) for key in items):
            return {printable(str.__str__(key)): plain(item, depth + 1) for key, item in items.items()}
        if isinstance(items, dict):
            return Other(f"{type_name(value)}, and not all its keys are texts")
        if isinstance(items, list):
            return [plain(item, depth + 1) for item in items]
    return Other(type_name(value))


def _items(value: object) -> dict[Any, Any] | list[Any] | None:
    """Return what a mapping or a sequence holds, None for anything else."""
    if isinstance(value, dict):
        return dict(dict.items(value))
    if isinstance(value, list):
        return [*list.__iter__(value)]
    if isinstance(value, tuple):
        return [*tuple.__iter__(value)]
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [value[number] for number in range(min(len(value), MAX_TEXT))]
    return None


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
