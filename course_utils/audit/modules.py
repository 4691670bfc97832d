"""What modules do: calls, modes, copies, hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from course_utils.audit.book import Model
from course_utils.audit.desk import Desk
from course_utils.audit.events import Call, Load, is_transforming, number_of
from course_utils.audit.lines import called_by_torch, here, spots
from course_utils.audit.modes import dependents
from course_utils.graph.alive import tensors_in

# In evaluation these take another way, with other last digits, where functions are watched.
_FAST = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)


class Modules:
    """Hears of calls by code that is not itself a module's."""

    def __init__(self, recorder: Desk) -> None:
        self._recorder = recorder
        self._depth = 0
        self._stating = False  # a state_dict is being made, of a module and of its parts

    def call(self, original: Callable[..., Any], module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        inside = self._depth and (self._recorder.operations is None or not isinstance(module, _FAST))
        if inside or self._recorder.idle() or torch.compiler.is_compiling():
            if not self._depth and is_transforming() and not self._recorder.elsewhere():
                self._recorder.book.transformed[id(module)] += 1
            return original(module, *args, **kwargs)
        training, grad = module.training, torch.is_grad_enabled()
        operations = self._recorder.operations
        aside = operations is not None and not training and not grad and operations.step_aside()
        self._depth += 1
        try:
            out = original(module, *args, **kwargs)
        finally:
            self._depth -= 1
            if aside and operations is not None:
                operations.step_back()
        if not self._depth:
            with self._recorder.aside():
                self._called(self._recorder.book.model(module), module, args, kwargs, out, training, grad)
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
        self._recorder.clock.calls += 1
        model.calls += 1
        tensors = list(tensors_in((list(out.values()) if isinstance(out, Mapping) else out,)))
        made = next((tensor for tensor in tensors if tensor.grad_fn is not None), None)
        first = next(tensors_in((*args, *kwargs.values())), None)
        active, asleep = dependents(module)
        event = Call(
            model=model,
            module=module,
            spots=spots(),
            number=self._recorder.clock.calls,
            training=training,
            grad=grad,
            recorded=None if made is None else number_of(made.grad_fn),
            given=first,
            out=made,
            active=active,
            asleep=asleep,
            by_torch=called_by_torch(3),
            gave=tensors[0].shape if tensors else None,
        )
        self._recorder.tell("called", event)

    def train(self, original: Callable[..., Any], module: Any, *args: Any, **kwargs: Any) -> Any:
        if self._depth:
            return original(module, *args, **kwargs)
        self._depth = 1
        try:
            result = original(module, *args, **kwargs)
        finally:
            self._depth = 0
        with self._recorder.aside():
            self._recorder.tell("mode_set", module, module.training, here())
        return result

    def load(self, original: Callable[..., Any], module: Any, *args: Any, **kwargs: Any) -> Any:
        if self._recorder.elsewhere():
            return original(module, *args, **kwargs)
        state, spot = args[0] if args else kwargs.get("state_dict"), here()
        with self._recorder.aside():
            self._recorder.tell("loads", module, state, spot)
        result = original(module, *args, **kwargs)
        missing, unexpected = getattr(result, "missing_keys", ()), getattr(result, "unexpected_keys", ())
        event = Load(module, state if isinstance(state, Mapping) else {}, spot, tuple(missing), tuple(unexpected))
        with self._recorder.aside():
            self._recorder.tell("loaded", event)
        return result

    def state(self, original: Callable[..., Any], module: Any, *args: Any, **kwargs: Any) -> Any:
        if self._stating or self._recorder.elsewhere():
            return original(module, *args, **kwargs)
        self._stating = True
        try:
            state = original(module, *args, **kwargs)
        finally:
            self._stating = False
        with self._recorder.aside():
            self._recorder.tell("state_made", module, state, here())
        return state

    def hook(self, original: Callable[..., None], handle: Any, hooks: Any, *args: Any, **kwargs: Any) -> None:
        original(handle, hooks, *args, **kwargs)
        if not self._recorder.elsewhere() and not called_by_torch(3):
            self._recorder.tell("hooked", hooks, here())
