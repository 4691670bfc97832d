"""The recorder: it stands at PyTorch's entry points, keeps the book, and tells the checks what happens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from course_utils.audit.book import Book
from course_utils.audit.check import Check, Found
from course_utils.audit.cuts import Cuts
from course_utils.audit.events import Clock, Pass, is_transforming, node_behind, number_of, sequence_now
from course_utils.audit.gradients import delivered, synchronize
from course_utils.audit.lines import asked_directly, here
from course_utils.audit.modules import Modules
from course_utils.audit.operations import Operations
from course_utils.audit.optimizers import Optimizers
from course_utils.audit.rules import RULES
from course_utils.audit.scaling import Scaling
from course_utils.graph.owners import NO_PASS, backward_pass
from course_utils.graph.trace import GraphTooLarge

# So often the full tier begins again, for an optimizer that is made after it ended.
_AGAIN = 3

_TASK = torch._C._current_graph_task_id

_EVENTS = (
    "pass_begins",
    "pass_ended",
    "step_begins",
    "step_ended",
    "evaluated",
    "called",
    "clipped",
    "clipped_within",
    "scheduled",
    "measured",
    "hooked",
    "mode_set",
    "state_made",
    "loads",
    "loaded",
    "seeded",
)


class Recorder:
    """Keeps the book of one watch. `operations` is there while the full tier runs."""

    def __init__(self, kinds: Iterable[type[Check]], full_steps: int) -> None:
        self.book = Book()
        self.clock = Clock()
        self.cuts = Cuts(self.book)
        self.missed: dict[str, str] = {}
        self.broken: dict[type[Check], str] = {}
        self.failed = ""
        self.operations: Operations | None = Operations() if full_steps > 0 else None
        if self.operations is None:
            self.missed = {code: "the close watch was off" for code, rule in RULES.items() if rule.tier == "full"}
        self.lines = Operations.spots_of(self.operations)
        self.full_steps = full_steps
        self._again = _AGAIN if full_steps > 0 else 0
        self._modes = torch._C._len_torch_function_stack()
        self._thread = threading.get_ident()
        self.running: Pass | None = None
        self.stepping = False  # an optimizer is at work
        self.optimizers, self.modules, self.scaling = Optimizers(self), Modules(self), Scaling(self)
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

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Look at tensors past every mode and subclass. A failure of ours is noted, and never the training's."""
        with torch._C.DisableTorchFunction():
            try:
                yield
            except Exception as error:
                self.failed = f"the watch itself failed: {type(error).__name__}: {error}"

    def elsewhere(self) -> bool:
        """Say whether another thread is running than the one that is watched."""
        return threading.get_ident() != self._thread

    def idle(self) -> bool:
        """Say whether what happens now is not for the book: other threads, PyTorch's own work, torch.func's."""
        return self.elsewhere() or backward_pass() != NO_PASS or is_transforming()

    def seed(self, kind: str, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Set a seed, and tell of it when it is set."""
        result = original(*args, **kwargs)
        if not self.elsewhere():
            with self.aside():
                self.tell("seeded", kind, next(map(repr, (*args, *kwargs.values())), ""))
        return result

    # Backward passes

    def run_engine(self, original: Callable[..., Any], outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self.idle() or self.running is not None:
            return original(outputs, *args, **kwargs)
        event = self._event(outputs, args, bool(kwargs.get("accumulate_grad")))
        with self.aside():
            self._begin(event)
        self.running = event
        try:
            result = original(outputs, *args, **kwargs)
        finally:
            self.running = None
            event.forget()
            event.ended = sequence_now()
        with self.aside():
            if event.accumulate:
                event.received = delivered(self.book, event)
                self.optimizers.watch_by_hand(event.received)
            self.tell("pass_ended", event)
        return result

    def _event(self, outputs: Any, args: tuple[Any, ...], accumulate: bool) -> Pass:
        seeds, retain, create, inputs = args[:4]
        self.clock.passes += 1
        return Pass(
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

    def _begin(self, event: Pass) -> None:
        node = node_behind(event.outputs[0]) if event.outputs else None
        if node is not None:
            event.root = number_of(node), getattr(event.outputs[0], "output_nr", 0)
            self.scaling.note(event)
        if self.clock.passes == 1 or self.clock.passes % 50 == 0:
            self.book.index()
        self.optimizers.by_hand()
        synchronize(self.book.live(), added_onto=event.accumulate)
        self.tell("pass_begins", event)

    def end_full(self) -> None:
        """Leave the full tier."""
        if self.operations is not None and self.operations.end():
            self.operations = None

    def begin_again(self) -> None:
        """Enter the full tier again, as for a second training: where no other mode stands that would leave first."""
        free = torch._C._len_torch_function_stack() == self._modes
        if self.operations is None and self._again and free and not self.idle():
            self._again -= 1
            self.operations = Operations(self.lines)
            self.operations.begin(self)

    @property
    def quiet(self) -> bool:
        """Whether functions that run now are PyTorch's own: in a pass, or in an optimizer's step."""
        return self.stepping or self.running is not None or _TASK() != NO_PASS or is_transforming()

    def finish(self, interrupted: bool) -> list[Found]:
        """End the watch, and return what the checks found."""
        self.clock.interrupted = interrupted
        self.end_full()
        found: list[Found] = []
        with self.aside():
            self.book.index()
            self._collect(found)
        if self.failed:
            self.missed.update(dict.fromkeys((code for kind in self.checks for code in kind.codes), self.failed))
        return found

    def _collect(self, found: list[Found]) -> None:
        for check in self.checks:
            if type(check) in self.broken:
                continue
            try:
                found += list(check.found())
            except Exception as error:
                self.broken[type(check)] = f"the check itself failed: {type(error).__name__}: {error}"
        for kind, why in self.broken.items():
            self.missed.update(dict.fromkeys(kind.codes, why))
