"""The recorder: it stands at PyTorch's entry points, keeps the book, and tells the checks what happens."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from course_utils.audit.book import Book, Model, Slot, Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Clip, Clock, Pass, Step, node_behind, number_of, sequence_now
from course_utils.audit.gradients import delivered, same_after, synchronize
from course_utils.audit.lines import asked_directly, called_by_torch, here, spots
from course_utils.audit.modes import dependents
from course_utils.audit.operations import Operations
from course_utils.graph.alive import tensors_in
from course_utils.graph.owners import NO_PASS, backward_pass
from course_utils.graph.trace import GraphTooLarge

# What the recorder itself asks of tensors goes past every mode and subclass.
unseen = torch._C.DisableTorchFunction

_EVENTS = (
    "pass_begins",
    "pass_ended",
    "step_begins",
    "step_ended",
    "called",
    "clipped",
    "scheduled",
    "hooked",
    "mode_set",
    "loaded",
)


class Recorder:
    """Keeps the book of one watch. `operations` is there while the full tier runs."""

    def __init__(self, kinds: Iterable[type[Check]], full_steps: int) -> None:
        self.book = Book()
        self.clock = Clock()
        self.missed: dict[str, str] = {}
        self.broken: dict[type[Check], str] = {}
        self.operations: Operations | None = Operations() if full_steps > 0 else None
        self.lines = Operations.spots_of(self.operations)
        self._full_steps = full_steps
        self._thread = threading.get_ident()
        self.running: Pass | None = None
        self.scaled_passes: set[int] = set()
        self._scaled: deque[int] = deque(maxlen=64)  # numbers of the nodes that scaled a loss
        self._scalers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._depth = 0
        self._stepping = False
        self.checks = [kind(self) for kind in kinds]
        self._hear: dict[str, list[tuple[Check, Callable[..., None]]]] = {
            name: [
                (check, getattr(check, name))
                for check in self.checks
                if getattr(type(check), name) is not getattr(Check, name)
            ]
            for name in _EVENTS
        }
        if self.operations is not None:
            self.operations.begin(self)

    def tell(self, name: str, *event: Any) -> None:
        """Tell every check that wants to know. One that fails is left out from then on, and said so."""
        for check, hear in self._hear[name]:
            if type(check) not in self.broken:
                try:
                    hear(*event)
                except GraphTooLarge:
                    for code in check.codes:
                        self.missed[code] = "a graph was too large to look at"
                except Exception as error:
                    self.broken[type(check)] = f"the check itself failed: {type(error).__name__}: {error}"

    def idle(self) -> bool:
        """Say whether what happens now is not for the book: other threads, and PyTorch's own work."""
        return threading.get_ident() != self._thread or backward_pass() != NO_PASS

    # Backward passes

    def run_engine(self, original: Callable[..., Any], outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self.idle() or self.running is not None:
            return original(outputs, *args, **kwargs)
        with unseen():
            event = self._begin(outputs, args, bool(kwargs.get("accumulate_grad")))
        self.running = event
        try:
            result = original(outputs, *args, **kwargs)
        finally:
            self.running = None
            event.forget()
            event.ended = sequence_now()
        with unseen():
            if event.accumulate:
                event.received = delivered(self.book, event)
            self.tell("pass_ended", event)
        return result

    def _begin(self, outputs: Any, args: tuple[Any, ...], accumulate: bool) -> Pass:
        seeds, retain, create, inputs = args[:4]
        self.clock.passes += 1
        event = Pass(
            number=self.clock.passes,
            spot=here(),
            step=self.clock.steps,
            accumulate=accumulate,
            retain=bool(retain),
            create=bool(create),
            seeded=not accumulate or any(seed is not None and seed.dim() > 0 for seed in seeds),
            limited=bool(inputs),
            direct=asked_directly(),
            began=sequence_now(),
            outputs=tuple(outputs),
        )
        node = node_behind(event.outputs[0]) if event.outputs else None
        if node is not None:
            event.root = number_of(node), getattr(event.outputs[0], "output_nr", 0)
            event.scaled = event.root[0] in self._scaled
            if event.scaled:
                self.scaled_passes = {*list(self.scaled_passes)[-500:], event.number}
        if self.clock.passes == 1 or self.clock.passes % 50 == 0:
            self.book.index()
        synchronize(self.book.live(), added_onto=accumulate)
        self.tell("pass_begins", event)
        return event

    # Optimizers

    def step_pre(self, optimizer: Any, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        if threading.get_ident() != self._thread:
            return None
        with unseen():
            trainer = self._step_begins(optimizer, args, kwargs)
        closure = next((value for value in (*args[1:], *kwargs.values()) if callable(value)), None)
        if closure is None:
            return None

        def watched() -> Any:
            self._stepping = False
            try:
                return closure()
            finally:
                self._stepping = True
                for slot in trainer.slots:
                    slot.used |= {trainer.key}

        arguments = tuple(watched if value is closure else value for value in args)
        return arguments, {name: watched if value is closure else value for name, value in kwargs.items()}

    def _step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> Trainer:
        known = len(self.book.trainers)
        trainer = self.book.trainer(optimizer)
        if len(self.book.trainers) != known:
            self.book.index()
        if self.running is not None:
            delivered(self.book, self.running, trainer.slots)
        else:
            synchronize(trainer.slots, added_onto=False)
        having = [slot for slot in trainer.slots if slot.known() is not None]
        event = Step(
            trainer=trainer,
            spot=here(),
            number=trainer.steps + 1,
            fresh=tuple(slot for slot in having if trainer.key not in slot.used),
            stale=tuple(slot for slot in having if trainer.key in slot.used),
            empty=tuple(slot for slot in trainer.slots if slot.known() is None),
            mixed=tuple(slot for slot in having if slot.mixed is not None),
            in_pass=self.running is not None,
            closure=any(map(callable, (*args[1:], *kwargs.values()))),
        )
        trainer.spot = event.spot
        self.tell("step_begins", event)
        for slot in trainer.slots:
            slot.erased, slot.erased_at = (), None
        self._stepping, self._step = True, event
        return trainer

    def step_post(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        self._stepping = False
        with unseen():
            self._step_ended(self.book.trainer(optimizer))

    def _step_ended(self, trainer: Trainer) -> None:
        for slot in trainer.slots:
            slot.note(slot.state())
            if slot.known() is not None:
                slot.used |= {trainer.key}
                slot.mixed = None
        trainer.steps += 1
        self.clock.steps = max(self.clock.steps, trainer.steps)
        if self.clock.steps == trainer.steps:
            self.clock.marks = [*self.clock.marks[-7:], sequence_now()]
        self.tell("step_ended", self._step)
        if self.clock.steps >= self._full_steps:
            self.end_full()

    def end_full(self) -> None:
        """Leave the full tier."""
        if self.operations is not None and self.operations.end():
            self.operations = None

    def made_optimizer(self, original: Callable[..., None], optimizer: Any, *args: Any, **kwargs: Any) -> None:
        original(optimizer, *args, **kwargs)
        spot = here()
        if spot is not None:
            self.book.made[optimizer] = spot

    def zero(self, original: Callable[..., None], owner: Any, *args: Any, **kwargs: Any) -> None:
        original(owner, *args, **kwargs)
        if threading.get_ident() != self._thread or self.running is not None:
            return
        if isinstance(owner, torch.nn.Module):
            slots: Iterable[Slot | None] = [self.book.find(p) for p in owner.parameters()]
        else:
            slots = self.book.trainer(owner).slots
        spot = here()
        with unseen():
            for slot in slots:
                if slot is not None:
                    slot.clear(spot)
                    slot.note(slot.state())

    # Modules

    def call(self, original: Callable[..., Any], module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if self._depth or torch.compiler.is_compiling() or self.idle():
            return original(module, *args, **kwargs)
        model = self.book.model(module)
        training, grad = module.training, torch.is_grad_enabled()
        aside = self.operations is not None and not training and not grad
        self._depth = 1
        if aside and self.operations is not None:
            # In evaluation some of PyTorch's modules take another way where functions are watched.
            aside = self.operations.step_aside()
        try:
            out = original(module, *args, **kwargs)
        finally:
            self._depth = 0
            if aside and self.operations is not None:
                self.operations.step_back()
        with unseen():
            self._called(model, module, args, kwargs, out, training, grad)
        return out

    def _called(
        self,
        model: Model,
        module: torch.nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
        training: bool,
        grad: bool,
    ) -> None:
        self.clock.calls += 1
        model.calls += 1
        tensors = list(tensors_in((list(out.values()) if isinstance(out, Mapping) else out,)))
        made = next((tensor for tensor in tensors if tensor.grad_fn is not None), None)
        first = next(tensors_in((*args, *kwargs.values())), None)
        active, asleep = dependents(module)
        event = Call(
            model=model,
            module=module,
            spots=spots(),
            number=self.clock.calls,
            training=training,
            grad=grad,
            recorded=None if made is None else number_of(made.grad_fn),
            given=first,
            out=made,
            active=active,
            asleep=asleep,
            by_torch=called_by_torch(3),
        )
        self.tell("called", event)

    def train(self, original: Callable[..., Any], module: Any, *args: Any, **kwargs: Any) -> Any:
        if self._depth:
            return original(module, *args, **kwargs)
        self._depth = 1
        try:
            result = original(module, *args, **kwargs)
        finally:
            self._depth = 0
        with unseen():
            self.tell("mode_set", module, module.training, here())
        return result

    def load(self, original: Callable[..., Any], module: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(module, *args, **kwargs)
        with unseen():
            self.tell("loaded", module, here())
        return result

    # Scaling, clipping, schedules, hooks

    def scale(self, original: Callable[..., Any], scaler: Any, *args: Any, **kwargs: Any) -> Any:
        out = original(scaler, *args, **kwargs)
        if scaler.is_enabled():
            self._scalers.add(scaler)
            with unseen():
                self._scaled += [number_of(it.grad_fn) for it in tensors_in((out,)) if it.grad_fn is not None]
        return out

    def is_unscaled(self, trainer: Trainer) -> bool:
        """Say whether a scaler has taken its factor off an optimizer's gradients."""
        states = [scaler._per_optimizer_states.get(id(trainer.ref())) for scaler in self._scalers]
        return any(state is not None and state["stage"].name != "READY" for state in states)

    def clip_norm(self, original: Callable[..., Any], grads: Any, *args: Any, **kwargs: Any) -> Any:
        grads = [grads] if isinstance(grads, torch.Tensor) else list(grads)
        bound = sys._getframe(2).f_locals.get("max_norm")
        self._clip(grads, bound is None or float(bound) != float("inf"))
        return original(grads, *args, **kwargs)

    def clip_scale(self, original: Callable[..., Any], parameters: Any, *args: Any, **kwargs: Any) -> Any:
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        slots = [slot for slot in map(self.book.find, parameters) if slot is not None]
        with unseen():
            synchronize(slots, added_onto=False)
        result = original(parameters, *args, **kwargs)
        with unseen():
            same_after(slots)
        return result

    def clip_value(self, original: Callable[..., Any], grads: Any, *args: Any, **kwargs: Any) -> Any:
        if sys._getframe(2).f_code.co_name == "clip_grad_value_":
            self._clip(list(grads[0]), True)
        return original(grads, *args, **kwargs)

    def _clip(self, grads: list[torch.Tensor], bounded: bool) -> None:
        if threading.get_ident() != self._thread or self._stepping:
            return
        with unseen():
            synchronize(self.book.live(), added_onto=False)
            ids = {id(grad) for grad in grads}
            slots = tuple(slot for slot in self.book.live() if (state := slot.known()) is not None and state[0] in ids)
            self.tell("clipped", Clip(here(), slots, len(grads), bounded))

    def schedule(self, original: Callable[..., Any], scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        if not getattr(scheduler, "_is_initial", False):
            with unseen():
                self.tell("scheduled", scheduler, here())
        return original(scheduler, *args, **kwargs)

    def hook(self, original: Callable[..., None], handle: Any, hooks: Any, *args: Any, **kwargs: Any) -> None:
        original(handle, hooks, *args, **kwargs)
        if threading.get_ident() == self._thread and not called_by_torch(3):
            self.tell("hooked", hooks, here())

    @property
    def quiet(self) -> bool:
        """Whether functions that run now are PyTorch's own: in a pass, or in an optimizer's step."""
        return self._stepping or self.running is not None or backward_pass() != NO_PASS

    def finish(self) -> list[Found]:
        """End the watch, and return what the checks found."""
        self.end_full()
        with unseen():
            return self._finish()

    def _finish(self) -> list[Found]:
        self.book.index()
        found: list[Found] = []
        for check in self.checks:
            if type(check) in self.broken:
                continue
            try:
                found += list(check.found())
            except Exception as error:
                self.broken[type(check)] = f"the check itself failed: {type(error).__name__}: {error}"
        for kind, why in self.broken.items():
            self.missed.update(dict.fromkeys(kind.codes, why))
        return found
