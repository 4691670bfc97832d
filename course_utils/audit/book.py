"""The parameters, optimizers and models of a training, as they are met: what each gradient is made of."""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from course_utils.audit.lines import Spot, name_of

COMPILED = "_orig_mod."

# A parameter's value is remembered by so many of its numbers.
_SAMPLE = 4096

# So many models and optimizers are kept to the end of the watch, the last ones met.
_KEPT = 64


class Slot:
    """One parameter, or another leaf, and what its gradient is made of.

    `content` holds the numbers of the passes that went into the present gradient, `used` the keys of the optimizers
    that have made a step with it as it is. `mixed` names the line of the pass that added onto a used gradient.
    """

    def __init__(self, key: int, tensor: torch.Tensor) -> None:
        self.key = key
        self.ref = weakref.ref(tensor)
        self.name = ""
        self.owner: int | None = None  # the key of the model that it belongs to
        self.shape = tuple(tensor.shape)
        self.is_parameter = isinstance(tensor, torch.nn.Parameter)
        self.wanted = False  # required a gradient when last looked at
        self.content: tuple[int, ...] = ()
        self.used: frozenset[int] = frozenset()
        self.mixed: Spot | None = None
        self.erased: tuple[int, ...] = ()  # what was cleared since the last step that had a gradient
        self.erased_at: Spot | None = None
        self.thrown: tuple[int, ...] = ()  # passes that were cleared unused since the last step
        self.received = 0  # passes that delivered a gradient
        self.moved = False
        self.touched = False  # it was changed in place since it was cleared, as by dividing it
        self.changed = False  # its gradient was changed in place since the last look
        self.seen: tuple[int, int] | None = None  # the gradient's id and version when last looked at
        self.first: torch.Tensor | None = None  # a sample of the value, when it was first looked at
        self._mark: torch.Tensor | None = None

    @property
    def tensor(self) -> torch.Tensor | None:
        return self.ref()

    def state(self) -> tuple[int, int] | None:
        """Return what tells one state of the gradient from another; None without one."""
        tensor = self.ref()
        grad = None if tensor is None else tensor.grad
        return None if grad is None else (id(grad), grad._version)

    def clear(self, spot: Spot | None) -> None:
        """Note that the gradient was cleared."""
        fresh = tuple(number for number in self.content if not self.used)
        if fresh:
            self.erased, self.erased_at = fresh, spot
            self.thrown = (*self.thrown[-63:], *fresh)
        self.content, self.used, self.mixed = (), frozenset(), None
        self.touched = False

    def is_zero(self) -> bool:
        tensor = self.ref()
        return tensor is None or tensor.grad is None or not bool(_dense(tensor.grad).any())

    def is_frozen(self) -> bool:
        """Say whether it is there and asks for no gradient."""
        tensor = self.ref()
        return tensor is not None and not tensor.requires_grad

    def remember(self) -> None:
        """Keep a sample of the value, to tell later whether it moved."""
        tensor = self.ref()
        if self.first is None and tensor is not None:
            self.first = sampled(tensor)

    def remember_now(self) -> None:
        """Forget what was remembered, and keep the present value."""
        self.first = None
        self.remember()

    def mark(self) -> None:
        """Keep what tells whether the value moves from now on."""
        tensor = self.ref()
        self._mark = None if tensor is None else sampled(tensor)

    def moved_since(self) -> bool:
        """Say whether the value was changed since `mark`, also where no version tells of it."""
        tensor = self.ref()
        if tensor is None or self._mark is None:
            return False
        now = sampled(tensor)
        return now.shape != self._mark.shape or not bool(torch.equal(now, self._mark))

    def has_moved(self) -> bool:
        """Say whether the value differs from what `remember` kept."""
        tensor = self.ref()
        if tensor is None or self.first is None:
            return False
        now = sampled(tensor)
        return now.shape != self.first.shape or not bool(torch.equal(now, self.first))


def _dense(grad: torch.Tensor) -> torch.Tensor:
    return grad.detach().coalesce().values() if grad.is_sparse else grad.detach()


def sampled(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of so many elements of a tensor as a watch remembers, in one row."""
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // _SAMPLE)][:_SAMPLE].clone()


@dataclass(eq=False)
class Trainer:
    """One optimizer. Counts are of steps made while it was watched."""

    key: int
    ref: Callable[[], torch.optim.Optimizer | None]
    name: str = ""
    made: Spot | None = None
    slots: list[Slot] = field(default_factory=list)
    steps: int = 0
    spot: Spot | None = None  # its last step
    groups: tuple[int, ...] = ()


@dataclass(eq=False)
class Model:
    """One module that the learner's code calls or gave, with all its parts."""

    key: int
    ref: weakref.ref[torch.nn.Module]
    name: str = ""
    slots: list[Slot] = field(default_factory=list)
    calls: int = 0


class Book:
    """All that is known. Tensors are referred to weakly."""

    def __init__(self) -> None:
        self.slots: dict[int, Slot] = {}  # by the tensor's id
        self.trainers: dict[int, Trainer] = {}  # by the optimizer's id
        self.models: dict[int, Model] = {}  # by the module's id
        self.transformed: Counter[int] = Counter()  # by the module's id, its calls inside of torch.func's transforms
        self.made: weakref.WeakKeyDictionary[Any, Spot] = weakref.WeakKeyDictionary()
        self.rates: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()  # of groups, as first made
        # A function's model is gone when the function has returned, and the watch goes on: the last few are kept.
        self._kept: deque[object] = deque(maxlen=_KEPT)
        self._kept_leaves: deque[torch.Tensor] = deque(maxlen=_KEPT)
        self._next = 0

    def _key(self) -> int:
        self._next += 1
        return self._next

    def slot(self, tensor: torch.Tensor) -> Slot:
        """Return the record of a leaf, a new one where it is met first."""
        found = self.slots.get(id(tensor))
        if found is None or found.ref() is not tensor:
            found = self.slots[id(tensor)] = Slot(self._key(), tensor)
            found.seen = found.state()
        return found

    def keep(self, leaf: torch.Tensor) -> None:
        """Keep a leaf that belongs to no model to the end of the watch."""
        if all(leaf is not kept for kept in self._kept_leaves):
            self._kept_leaves.append(leaf)

    def find(self, tensor: torch.Tensor) -> Slot | None:
        found = self.slots.get(id(tensor))
        return found if found is not None and found.ref() is tensor else None

    def trainer(self, optimizer: torch.optim.Optimizer) -> Trainer:
        """Return the record of an optimizer, with the parameters that it holds now."""
        found = self.trainers.get(id(optimizer))
        if found is None or found.ref() is not optimizer:
            found = Trainer(self._key(), weakref.ref(optimizer), name_of(optimizer) or "", self.made.get(optimizer))
            self.trainers[id(optimizer)] = found
            self._kept.append(optimizer)
        groups = tuple(len(group["params"]) for group in optimizer.param_groups)
        if groups != found.groups:
            found.groups = groups
            found.slots = [self.slot(p) for group in optimizer.param_groups for p in group["params"]]
        if not found.name:
            found.name = name_of(optimizer) or ""
        return found

    def hand(self) -> Trainer:
        """Return the record of updates that the learner's own code makes, without an optimizer."""
        return self.trainers.setdefault(0, Trainer(0, _nobody, "your update"))

    def trainer_of(self, key: int | None) -> Trainer | None:
        """Return the record of an optimizer, or of the learner's own updates, with a key."""
        return next((it for it in self.trainers.values() if it.key == key), None)

    def model_of(self, key: int | None) -> Model | None:
        """Return the model with a key, as slots have their owner's."""
        return next((it for it in self.models.values() if it.key == key), None)

    def model(self, module: torch.nn.Module) -> Model:
        found = self.models.get(id(module))
        if found is None or found.ref() is not module:
            found = self.models[id(module)] = Model(self._key(), weakref.ref(module), name_of(module) or "")
            self._kept.append(module)
        return found

    def index(self) -> None:
        """Name the parameters of all models. To be called while no module is running: some swap their parameters."""
        self.slots = {key: slot for key, slot in self.slots.items() if slot.ref() is not None}
        for model in list(self.models.values()):
            module = model.ref()
            if module is None:
                continue
            prefix = f"{model.name}." if model.name else ""
            slots = []
            for name, parameter in module.named_parameters():
                if not parameter.is_leaf:
                    continue
                slot = self.slot(parameter)
                if slot.owner is None or not slot.name:
                    slot.name = prefix + name.removeprefix(COMPILED)
                    slot.owner = model.key
                slots.append(slot)
            model.slots = slots

    def live(self) -> Iterator[Slot]:
        return (slot for slot in list(self.slots.values()) if slot.ref() is not None)

    def held(self) -> set[int]:
        """Return the keys of all leaves that an optimizer holds."""
        return {slot.key for trainer in self.trainers.values() for slot in trainer.slots}

    def trained(self, module: torch.nn.Module) -> bool:
        """Say whether a module has parameters that an optimizer holds."""
        held = self.held()
        found = (self.find(p) for p in module.parameters())
        return any(slot is not None and slot.key in held for slot in found)


def _nobody() -> None:
    return None


def listed(slots: Iterable[Slot], most: int = 3) -> str:
    """Return names for reading: "a, b, c and 4 more"."""
    return listed_names([slot.name or f"a tensor of shape {slot.shape}" for slot in slots], most)


def listed_names(names: Sequence[str], most: int = 3) -> str:
    """Return names for reading: "a, b, c and 4 more"."""
    text = ", ".join(names[:most])
    return f"{text} and {len(names) - most} more" if len(names) > most else text
