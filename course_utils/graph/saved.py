"""What the recorded operations keep in memory for the backward pass."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import torch

from course_utils.graph import events
from course_utils.graph.memory import dtype_name, memory_of, shape_of
from course_utils.graph.naming import Known
from course_utils.graph.trace import ACCUMULATE, UNNAMED, LiveNode, check_tensors, node_name, nodes_behind, shortened
from course_utils.graph.values import Value, value_of

# held: there to be used. modified: written to since, so backward will refuse it. packed: a hook
# (checkpointing, save_on_cpu) holds something else and would have to run to give the tensor.
# freed: a backward pass let it go. attribute: set on ctx by a custom Function; backward never frees it.
State: TypeAlias = Literal["held", "modified", "packed", "freed", "attribute"]

PREFIX = "_raw_saved_"
MODIFIED = "modified by an inplace operation"

# Nodes that keep tensors which Python cannot see.
UNSEEN = ("CopySlices", UNNAMED)

# Where nodes of a C++ kind keep things. Classes of custom Functions are not remembered: that would keep them alive.
_ATTRIBUTES: dict[type, list[tuple[str, str, str]]] = {}


class SavedTensor(msgspec.Struct, frozen=True, gc=False):
    """One tensor that one node keeps.

    `node` is the node's number in `trace`, `name` PyTorch's name for what is kept ("self", "result", ...).
    `shape`, `dtype` and `storage` are None for packed and freed ones. `storage` numbers the memory:
    entries with the same number share it. `leaf` says that the memory belongs to a leaf of the graph
    (a parameter, say) or to a tensor that the caller gave, and is not kept for this graph alone. `label` says
    which named tensor it is: "x", "view of x", or "" without a name. `value` is what a kept tensor holds, where
    somebody asked for it and the tensor is small.
    """

    node: int
    operation: str
    name: str
    state: State
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    storage: int | None = None
    bytes: int = 0
    leaf: bool = False
    label: str = ""
    value: Value | None = None


class Saved(msgspec.Struct, frozen=True):
    """All that the nodes of a graph keep, in the order of `trace`."""

    tensors: tuple[SavedTensor, ...]
    unseen: int = 0  # nodes that keep more than Python can see

    @property
    def bytes(self) -> int:
        """Bytes kept for this graph alone, each storage counted once."""
        return sum({entry.storage: entry.bytes for entry in self.tensors if not entry.leaf}.values())

    @property
    def freed(self) -> tuple[SavedTensor, ...]:
        return tuple(entry for entry in self.tensors if entry.state == "freed")

    def __iter__(self) -> Iterator[SavedTensor]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __str__(self) -> str:
        rows = [_row(entry) for entry in self.tensors]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*([shortened(lines, "saved tensors")] if lines else []), repr(self)])

    def __repr__(self) -> str:
        freed = f", {len(self.freed)} freed" if self.freed else ""
        count = "1 saved tensor" if len(self) == 1 else f"{len(self)} saved tensors"
        unseen = f", and what {self.unseen} of its nodes keep unseen" if self.unseen else ""
        return f"{count}{freed}, {self.bytes:,} bytes kept for this graph{unseen}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def saved(*tensors: torch.Tensor, besides: Iterable[torch.Tensor] = ()) -> Saved:
    """Return what the graph of `tensors` keeps for backward, without running any part of it.

    Memory that belongs to the graph's leaves, or to the tensors in `besides` (inputs and buffers, which
    live anyway), is listed but not counted. Bytes are those of whole storages: a view keeps all of its base.
    What C++ nodes keep without naming it (CopySlices does) cannot be seen; such nodes are counted in `unseen`.

    Raises TypeError for anything that is not a tensor, and GraphTooLarge above MAX_NODES nodes.
    """
    besides = list(besides)
    check_tensors(besides)
    return scan(nodes_behind(*tensors), besides)


def scan(
    nodes: Sequence[LiveNode],
    besides: Iterable[torch.Tensor] = (),
    names: Mapping[str, torch.Tensor] | None = None,
    values: bool = False,
) -> Saved:
    """Return what live nodes keep, numbered by their place in `nodes`, with the labels that `names` give.

    With `values`, small tensors come with what they hold, unless they were written to since.
    """
    kinds = [type(node).__name__ for node in nodes]
    owners = [node.variable for node, kind in zip(nodes, kinds, strict=True) if kind == ACCUMULATE]
    own = {memory_of(tensor)[0] for tensor in (*owners, *besides)}
    known = Known(names) if names else None
    storages: dict[Hashable, tuple[int, int, bool]] = {}
    entries = []
    for index, node in enumerate(nodes):
        found = kept(node)
        operation = node_name(node) if found else ""
        for name, state, tensor in found:
            if tensor is None:
                entries.append(SavedTensor(index, operation, name, state))
                continue
            key, size = memory_of(tensor)
            memory = storages.get(key)
            if memory is None:
                memory = storages[key] = len(storages), size, key in own
            shape, dtype = shape_of(tensor), dtype_name(tensor.dtype)
            label = "" if known is None else known.label(tensor, key)
            value = value_of(tensor) if values and state != "modified" and tensor.numel() <= events.WHOLE else None
            entries.append(SavedTensor(index, operation, name, state, shape, dtype, *memory, label, value))
    return Saved(tuple(entries), sum(kinds.count(kind) for kind in UNSEEN))


def kept(node: LiveNode) -> list[tuple[str, State, torch.Tensor | None]]:
    """Return name, state and tensor of each thing that one node keeps.

    Where a hook packed a tensor, unpacking runs that hook, and on a checkpointed graph the hook is the whole
    forward. So nothing is unpacked that has a hook; `_raw_saved_x.data` shows what is there and runs nothing.
    """
    kind: type = type(node)
    attributes = _ATTRIBUTES.get(kind)
    if attributes is None:
        if isinstance(node, torch.autograd.function.FunctionCtx):
            return _kept_by_function(node)
        names = [name.removeprefix(PREFIX) for name in dir(kind) if name.startswith(PREFIX)]
        attributes = _ATTRIBUTES[kind] = [(PREFIX + name, "_saved_" + name, name) for name in names]
    found: list[tuple[str, State, torch.Tensor | None]] = []
    for raw_attribute, attribute, name in attributes:
        try:
            raw = getattr(node, raw_attribute)
        except RuntimeError:  # a list of saved tensors refuses to be read once it is freed
            found.append((name, "freed", None))
            continue
        if type(raw) is not tuple:
            # The usual case of _look, without the call: a graph has thousands of these.
            if raw.unpack_hook is None and (data := raw.data) is not None and data._version == 0:
                found.append((name, "held", data))
            elif (look := _look(raw, node, attribute)) is not None:
                found.append((name, look[0], look[1]))
            continue
        for position, item in enumerate(raw):
            if (look := _look(item, item, "unpack")) is not None:
                found.append((f"{name}[{position}]", *look))
    return found


def still_holds(node: LiveNode, name: str) -> bool:
    """Say whether a node holds what it had saved as `name`. A pass frees all that a node saved, or nothing."""
    attribute, _, position = name.partition("[")
    try:
        raw = getattr(node, PREFIX + attribute)
    except RuntimeError:  # a list of saved tensors refuses to be read once it is freed
        return False
    item = raw[int(position[:-1])] if position else raw
    return item.data is not None or item.unpack_hook is not None


def _kept_by_function(node: Any) -> list[tuple[str, State, torch.Tensor | None]]:
    """Return what a custom Function's node keeps: what it saved for backward, and tensors that hang on its ctx."""
    found: list[tuple[str, State, torch.Tensor | None]] = []
    try:
        raw = node._raw_saved_tensors
    except RuntimeError:  # after a pass PyTorch says so even where nothing was saved
        raw = ()
        found.append(("tensors, if any", "freed", None))
    looks = [_look(item, item, "unpack") for item in raw]
    states = [look[0] if look is not None else None for look in looks]
    if "modified" not in states and "packed" not in states and _refuses(node):
        # One of the node's own outputs, which cannot be asked one by one.
        own = [state == "held" and _refuses_alone(item) for state, item in zip(states, raw, strict=True)]
        states = ["modified" if mine else state for mine, state in zip(own, states, strict=True)]
    for position, (look, state) in enumerate(zip(looks, states, strict=True)):
        if look is not None and state is not None:
            found.append((f"tensors[{position}]", state, look[1]))
    for name, value in vars(node).items():
        if isinstance(value, torch.Tensor):
            found.append((f"ctx.{name}", "attribute", value))
        elif isinstance(value, list | tuple):
            inside = ((at, item) for at, item in enumerate(value) if isinstance(item, torch.Tensor))
            found += [(f"ctx.{name}[{at}]", "attribute", item) for at, item in inside]
    return found


def _refuses(node: Any) -> bool:
    try:
        _ = node.saved_tensors
    except RuntimeError as error:
        return MODIFIED in str(error)
    return False


def _refuses_alone(raw: Any) -> bool:
    try:
        raw.unpack()
    except RuntimeError:
        return True
    return False


def _look(raw: Any, holder: Any, attribute: str) -> tuple[State, torch.Tensor | None] | None:
    """Say what became of one saved tensor; None for an input that backward never needed.

    Unpacking it is reading `attribute` of `holder`: of the node, for a saved output can be unpacked through it only.
    """
    if raw.unpack_hook is not None:
        return "packed", None
    data = raw.data
    if data is not None and data._version == 0:  # never written to, so there is nothing to find out
        return "held", data
    try:
        value = getattr(holder, attribute)
        if holder is raw:
            value = value()
    except RuntimeError as error:
        if data is None:
            return "freed", None
        return ("modified" if MODIFIED in str(error) else "held"), data
    return None if value is None else ("held", data)


def _row(entry: SavedTensor) -> tuple[str, ...]:
    what = "" if entry.shape is None else f"{entry.shape} {entry.dtype}"
    size = "" if entry.storage is None else f"{entry.bytes:,} bytes in storage {entry.storage}"
    whose = "a leaf's or input's" if entry.leaf else ""
    return str(entry.node), entry.operation, entry.name, entry.state, what, size, whose
