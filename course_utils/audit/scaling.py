"""What is done to gradients between pass and step: scaling and clipping."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from course_utils.audit.book import Trainer
from course_utils.audit.desk import Desk
from course_utils.audit.events import Clip, Pass, number_of
from course_utils.audit.gradients import same_after, synchronize
from course_utils.audit.lines import here
from course_utils.graph.alive import tensors_in


class Scaling:
    """Hears of GradScaler and of clipping."""

    def __init__(self, recorder: Desk) -> None:
        self._recorder = recorder
        self.passes: set[int] = set()  # numbers of passes that began at a scaled loss
        self._scaled: deque[int] = deque(maxlen=64)  # numbers of the nodes that scaled a loss
        self._scalers: weakref.WeakSet[Any] = weakref.WeakSet()

    def note(self, event: Pass) -> None:
        """Note whether a pass begins at a scaled loss."""
        if event.root is not None and event.root[0] in self._scaled:
            event.scaled = True
            self.passes = {*sorted(self.passes)[-500:], event.number}

    def scale(self, original: Callable[..., Any], scaler: Any, *args: Any, **kwargs: Any) -> Any:
        out = original(scaler, *args, **kwargs)
        if scaler.is_enabled():
            self._scalers.add(scaler)
            with self._recorder.aside():
                self._scaled += [number_of(it.grad_fn) for it in tensors_in((out,)) if it.grad_fn is not None]
        return out

    def is_unscaled(self, trainer: Trainer) -> bool:
        """Say whether a scaler has taken its factor off an optimizer's gradients."""
        states = [scaler._per_optimizer_states.get(id(trainer.ref())) for scaler in self._scalers]
        return any(state is not None and state["stage"].name != "READY" for state in states)

    def clip_norm(self, original: Callable[..., Any], grads: Any, *args: Any, **kwargs: Any) -> Any:
        grads = [grads] if isinstance(grads, torch.Tensor) else list(grads)
        bound = sys._getframe(2).f_locals.get("max_norm")
        self._clip(grads, bound is None or float(bound) != float("inf"), bound)
        return original(grads, *args, **kwargs)

    def clip_scale(self, original: Callable[..., Any], parameters: Any, *args: Any, **kwargs: Any) -> Any:
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        slots = [slot for slot in map(self._recorder.book.find, parameters) if slot is not None]
        with self._recorder.aside():
            synchronize(slots, added_onto=False)
        result = original(parameters, *args, **kwargs)
        with self._recorder.aside():
            same_after(slots)
        return result

    def clip_value(self, original: Callable[..., Any], grads: Any, *args: Any, **kwargs: Any) -> Any:
        if sys._getframe(2).f_code.co_name == "clip_grad_value_":
            self._clip(list(grads[0]), True, sys._getframe(2).f_locals.get("clip_value"), by_norm=False)
        return original(grads, *args, **kwargs)

    def _clip(self, grads: list[torch.Tensor], bounded: bool, bound: Any, by_norm: bool = True) -> None:
        if self._recorder.elsewhere():
            return
        with self._recorder.aside():
            if self._recorder.stepping:
                self._recorder.tell("clipped_within", here() if bounded else None)
                return
            synchronize(self._recorder.book.live(), added_onto=False)
            ids = {id(grad) for grad in grads}
            live = list(self._recorder.book.live())
            slots = tuple(slot for slot in live if (state := slot.seen) is not None and state[0] in ids)
            limit = float("inf") if bound is None else float(bound)
            self._recorder.tell("clipped", Clip(here(), slots, len(grads), bounded, limit, by_norm))
