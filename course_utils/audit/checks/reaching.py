"""Parameters that no gradient reaches: cut off, flattened to zero, or lost in a Function of the learner's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.book import Slot, Trainer, listed
from course_utils.audit.check import Check, Found
from course_utils.audit.classes import assigned_anywhere, backward_of, gives_none, gives_zeros
from course_utils.audit.events import Op, Pass, PassGraph, Step
from course_utils.audit.lines import Spot
from course_utils.graph.trace import walk

_STEPS = 3


class Reaching(Check):
    """What an optimizer holds, and no pass ever reached."""

    codes: ClassVar = ("never-reached", "zero-gradient", "silent-function")
    functions: ClassVar = frozenset({"*"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._flat: dict[int, tuple[Slot, int]] = {}  # leaves whose gradients were all zero, and how often
        self._alive: set[int] = set()
        self._handed: set[int] = set()  # the learner's code wrote their gradients, and no pass did
        self._behind: list[tuple[Any, frozenset[int]]] = []  # Functions of the learner's, and the leaves behind them
        self._graph: frozenset[int] = frozenset()
        self._silent: Counter[Any] = Counter()
        self._before: dict[Any, frozenset[int]] = {}  # all leaves that ever stood behind a Function
        self._lost: dict[Any, set[int]] = {}
        self._spot: Spot | None = None
        self._stepped_inside = False

    def function(self, event: Op) -> None:
        self.recorder.cuts.look(event)

    def pass_begins(self, event: Pass) -> None:
        self._behind = []
        if self.recorder.operations is None or not event.accumulate or event.limited:
            return
        self._spot = event.spot
        for node in event.graph.inner:
            kind = getattr(node, "_forward_cls", None)
            if kind is not None and isinstance(node, torch.autograd.function.BackwardCFunction) and backward_of(kind):
                for to, _ in node.next_functions:
                    behind = PassGraph(walk([to])).leaves if to is not None else []
                    keys = frozenset(self.book.slot(leaf).key for _, leaf in behind)
                    if keys:
                        self._behind.append((kind, keys))
                        self._before[kind] = self._before.get(kind, frozenset()) | keys

    def pass_ended(self, event: Pass) -> None:
        if not self._behind or self._stepped_inside:
            return
        received = {slot.key for slot in event.received}
        for kind, keys in self._behind:
            lost = keys - received
            if lost and lost == keys:
                self._silent[kind] += 1
                self._lost.setdefault(kind, set()).update(lost)
        self._behind = []

    def step_begins(self, event: Step) -> None:
        self._stepped_inside |= event.in_pass
        if self.recorder.operations is None or event.trainer.key == 0:
            return
        for slot in event.fresh:
            if not slot.received and slot.key not in self._handed and not slot.is_zero():
                self._handed.add(slot.key)
            if slot.key in self._alive or not slot.received:
                continue
            if slot.is_zero():
                self._flat[slot.key] = slot, self._flat.get(slot.key, (slot, 0))[1] + 1
            else:
                self._alive.add(slot.key)
                self._flat.pop(slot.key, None)

    def found(self) -> Iterator[Found]:
        by_key = {slot.key: slot for slot in self.book.live()}
        told: set[int] = set()
        for kind, times in self._silent.items():
            lost = [by_key[key] for key in self._lost[kind] if key in by_key and by_key[key].received == 0]
            if times >= 2 and lost:
                told |= {slot.key for slot in lost}
                yield self._silent_function(kind, times, lost)
        for trainer in self.book.trainers.values():
            if trainer.steps < _STEPS:
                continue
            waiting = (
                [it for it in trainer.slots if _is_waiting(it)] if any(it.received for it in by_key.values()) else []
            )
            never = [it for it in [*waiting, *self._cut_off(trainer)] if it.key not in told | self._handed]
            while never:
                cut = self.recorder.cuts.before(frozenset(slot.key for slot in never))
                mine = never if cut is None else [slot for slot in never if slot.key in cut.leaves]
                never = [slot for slot in never if slot not in mine]
                yield self._never(mine, cut, trainer.steps, trainer.spot)
        yield from self._zeros(told)

    def _cut_off(self, trainer: Trainer) -> list[Slot]:
        """Return what an optimizer holds that is of no model, where no pass reached it and a known cut is behind it."""
        if not self.clock.passes:
            return []
        lone = [it for it in trainer.slots if it.owner is None and not it.received and not it.is_frozen()]
        cuts = ((slot, self.recorder.cuts.before(frozenset({slot.key}))) for slot in lone)
        return [slot for slot, cut in cuts if cut is not None and cut.weight == 3]

    def _never(self, slots: list[Slot], cut: Any, times: int, spot: Spot | None) -> Found:
        name = listed(slots)
        about = {slot.key for slot in slots}
        names = [slot.name for slot in slots]
        if cut is None:
            return self.say(
                "never-reached",
                spot,
                f"no gradient ever reached {name}",
                "No backward pass had them in its graph. The part of the model was not used, or what it gave was not "
                "part of the loss.",
                "use the part in the loss, or leave it out of the optimizer",
                level="note",
                certain=False,
                times=times,
                about=about,
                names=names,
            )
        return self.say(
            "never-reached",
            cut.spot,
            f"no gradient ever reached {name}: {cut.words}",
            f"What they compute goes through this line, and no loss has them behind it: in {times} steps they never "
            "moved.",
            _REPAIR.get(cut.name, f"leave out {cut.name}() on the way to the loss"),
            level="error" if cut.weight == 3 else "likely",
            certain=cut.weight == 3,
            times=times,
            about=about,
            names=names,
        )

    def _zeros(self, told: set[int]) -> Iterator[Found]:
        zeros = [slot for slot, times in self._flat.values() if times >= _STEPS and slot.key not in told]
        if not zeros:
            return
        keys = frozenset(slot.key for slot in zeros)
        for kind, behind in self._before.items():
            place = gives_zeros(kind)
            if place is not None and keys & behind:
                yield self._zeros_of(kind, place, [slot for slot in zeros if slot.key in behind])
                zeros = [slot for slot in zeros if slot.key not in behind]
                keys -= behind
        if not zeros:
            return
        cut = self.recorder.cuts.before(keys, flat=True)
        if cut is None and len(zeros) >= 2 and all(map(_is_all_zero, zeros)):
            yield self._both_zero(zeros)
            return
        yield self.say(
            "zero-gradient",
            cut.spot if cut else self._spot,
            f"the gradient of {listed(zeros)} is exactly zero in every step",
            f"Here {cut.words}: everything before it gets zeros."
            if cut
            else "Their gradient arrives, and holds nothing but zeros: something after them is flat there.",
            _flat_repair(cut),
            level="error" if cut else "note",
            certain=cut is not None,
            times=max(times for _, times in self._flat.values()),
            about=keys,
            names=[slot.name for slot in zeros],
        )

    def _both_zero(self, zeros: list[Slot]) -> Found:
        """Factors that were both made of zeros: each one's gradient is a product with the other."""
        model = self.book.model_of(zeros[0].owner)
        module, name = model.ref() if model is not None else None, zeros[0].name
        path, _, attribute = name.removeprefix(f"{model.name}." if model is not None else "").rpartition(".")
        kind = type(module.get_submodule(path)) if module is not None else None
        return self.say(
            "zero-gradient",
            (assigned_anywhere(kind, f"self.{attribute}") if kind is not None else None) or self._spot,
            f"{listed(zeros)} are all zeros, and so are their gradients in every step",
            "They were made of zeros and never moved. Where two of them are multiplied, the gradient of each has the "
            "other as a factor: zeros keep both at zero.",
            "nn.init.kaiming_uniform_(...)  # one of the two factors; the other may stay zero",
            certain=False,
            times=max(times for _, times in self._flat.values()),
            about={slot.key for slot in zeros},
            names=[slot.name for slot in zeros],
        )

    def _zeros_of(self, kind: Any, place: Spot, lost: list[Slot]) -> Found:
        return self.say(
            "zero-gradient",
            place,
            f"{kind.__name__}.backward gives zeros: {listed(lost)} never learn",
            "Whatever gradient arrives, zeros go on from here. All passes reached them through it, and their "
            "gradient was exactly zero in every step.",
            "return grad  # straight through; or leave them out of the optimizer, if nothing shall pass",
            times=max(times for _, times in self._flat.values()),
            about={slot.key for slot in lost},
            names=[slot.name for slot in lost],
        )

    def _silent_function(self, kind: Any, times: int, lost: list[Slot]) -> Found:
        return self.say(
            "silent-function",
            gives_none(kind) or backward_of(kind),
            f"{kind.__name__}.backward gives nothing back for an input: no gradient reaches {listed(lost)}",
            "They stand in the graph behind it, and their .grad stays None after each pass. None in place of a "
            "gradient, as a backward without return gives it, means: no gradient.",
            "return grad * ...  # one gradient for each input of forward",
            times=times,
            about={slot.key for slot in lost},
            names=[slot.name for slot in lost],
        )


_REPAIR = {
    "detach": "leave out .detach() on the way to the loss",
    "data.__get__": "leave out .data",
    "numpy": "compute with torch functions instead of NumPy: torch.clamp for np.clip, and so on",
    "no_grad": "move this computation out of the block that switches recording off",
    "tensor": "use the tensor itself; torch.tensor() copies the numbers and drops the graph",
    "checkpoint": "checkpoint(..., use_reentrant=False)",
    "item": "leave out .item(): compute with the tensor",
}


def _is_all_zero(slot: Slot) -> bool:
    tensor = slot.tensor
    return tensor is not None and tensor.dim() >= 2 and not bool(tensor.detach().any())


def _flat_repair(cut: Any) -> str:
    if cut is None:
        return "look at what follows them"
    if cut.name == "one-entry":
        return "torch.sigmoid for one score; else the dimension that holds the entries to weigh: dim=-1"
    return "compute the loss from the values before they were rounded"


def _is_waiting(slot: Slot) -> bool:
    tensor = slot.tensor
    return slot.received == 0 and tensor is not None and tensor.requires_grad and slot.owner is not None
