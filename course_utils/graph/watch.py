"""`memory`: run a function once and keep how many bytes were alive, when, and whose they were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.graph.alive import OwnedMemory, tensors_in
from course_utils.graph.memory import parts_of
from course_utils.graph.owners import NO_PASS, Owners, backward_pass
from course_utils.graph.timeline import Sample, Timeline

# A timeline has at most so many samples, and one for the end.
MAX_SAMPLES = 2_000

# What torch.tensor calls on the tensor that it has made from Python's numbers.
_MADE_UNSEEN = (torch.ops.aten.lift_fresh.default,)


def memory(fn: Callable[[], object], model: torch.nn.Module | None = None) -> Timeline:
    """Run `fn()` once and return the bytes alive after each of its operations, by the part of `model` that made them.

    Counted is the memory of tensors made while `fn` runs, each storage once: a view adds nothing, and memory counts
    until nothing holds it. What existed before (parameters, buffers, inputs) is not counted, and neither is what an
    operation takes for itself while it runs. Without a model everything outside backward passes is "outside". The
    number 1 that `loss.backward()` starts from is made before the pass, so it is "outside" too. What `fn` returns
    is dropped; memory that somebody else still holds is left at the end.

    Raises TypeError where `fn` is no function or `model` no module. Errors of `fn` come through, and no hook stays.
    """
    if not callable(fn):
        raise TypeError(
            f"memory() got {type(fn).__name__}, not a function: pass the function itself, as in memory(step) "
            "or memory(lambda: model(x).sum().backward())"
        )
    if not isinstance(model, torch.nn.Module | None):
        raise TypeError(f"memory() got model={type(model).__name__}; model is the torch.nn.Module whose parts to tell")
    owners = Owners(model)
    watch = _Watch(owners)
    with owners, watch:
        result = fn()
        watch.returned()
        del result
    return watch.timeline()


class _Moment(NamedTuple):
    """Bytes by owner after some operations, and whether a backward pass ran the last of them."""

    operation: int
    bytes: Mapping[str, int]
    total: int
    in_backward: bool


class _Moments:
    """The highest moment of each stretch of operations. Stretches double in length when there are too many."""

    def __init__(self) -> None:
        self.kept = [_Moment(0, {}, 0, False)]
        self._stretch = 1
        self._ends = 0  # the last operation of the present stretch

    def add(self, operation: int, alive: Mapping[str, int], in_backward: bool) -> None:
        total = sum(alive.values())
        if operation > self._ends:
            if len(self.kept) == MAX_SAMPLES:
                self.kept = [max(pair, key=_total) for pair in zip(self.kept[::2], self.kept[1::2], strict=True)]
                self._stretch *= 2
            self._ends = operation - 1 + self._stretch
        elif total > self.kept[-1].total:
            self.kept.pop()
        else:
            return
        self.kept.append(_Moment(operation, dict(alive), total, in_backward))


def _total(moment: _Moment) -> int:
    return moment.total


class _Watch(TorchDispatchMode):
    """Looks at every operation, also those of backward passes: who runs it, and what it makes."""

    def __init__(self, owners: Owners) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._owners = owners
        self._memory = OwnedMemory()
        self._moments = _Moments()
        self._operations = 0
        self._last_pass = NO_PASS
        self._passes: dict[int, int] = {}  # by their numbers, which grow: the operations before each
        self._forward: _Moment | None = None

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self._look_for_pass()
        owner = self._owners.now()
        result = function(*args, **kwargs)
        given = () if function in _MADE_UNSEEN else (args, *kwargs.values())
        existed = {storage._cdata for storage in _storages(given) if storage not in self._memory}
        for storage in _storages((result,)):
            if storage._cdata not in existed:
                self._memory.add(storage, owner)
        self._operations += 1
        self._moments.add(self._operations, self._memory.alive, self._last_pass != NO_PASS)
        return result

    def returned(self) -> None:
        """Note that the function has returned. Its result is still there."""
        self._forward = self._forward or self._now()

    def timeline(self) -> Timeline:
        """Return what happened. To be called once, after the run."""
        end = self._now()
        self._memory.forget()
        order = [name for name in self._owners.order if name in end.bytes]

        def sample(moment: _Moment) -> Sample:
            sizes = tuple(moment.bytes.get(name, 0) for name in order)
            return Sample(moment.operation, sizes, moment.in_backward)

        moments = self._moments.kept
        return Timeline(
            owners=tuple(order),
            samples=(*map(sample, moments), sample(end)),
            forward=sample(self._forward or end),
            peak=sample(max(moments, key=_total)),
            end=sample(end),
            passes=tuple(self._passes.values()),
            operations=self._operations,
        )

    def _now(self) -> _Moment:
        alive = dict(self._memory.alive)
        return _Moment(self._operations, alive, sum(alive.values()), self._last_pass != NO_PASS)

    def _look_for_pass(self) -> None:
        """Note where a backward pass begins. One inside another, as some checkpointing runs, is part of it."""
        running = backward_pass()
        if running not in (self._last_pass, NO_PASS):
            if running in self._passes:  # back in it: those that began since ran inside it
                self._passes = {number: before for number, before in self._passes.items() if number <= running}
            else:
                self._passes[running] = self._operations
                self._forward = self._forward or self._now()
        self._last_pass = running


def _storages(values: Iterable[Any]) -> Iterator[torch.UntypedStorage]:
    """Yield the storages of the tensors among `values`, for kinds that have none those of their parts."""
    for tensor in tensors_in(values):
        try:
            yield tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):
            yield from _storages(parts_of(tensor))
