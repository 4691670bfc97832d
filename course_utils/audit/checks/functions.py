"""Custom Functions whose backward forgets the chain rule, or whose forward writes into an input unsaid."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.utils.hooks import RemovableHandle

from course_utils.audit.check import Check, Found
from course_utils.audit.classes import ignores_incoming
from course_utils.audit.events import Op, Pass, number_of
from course_utils.audit.incoming import Unmoved, unmoved
from course_utils.audit.lines import Spot, frames, here, names_in
from course_utils.graph.alive import tensors_in

_MOST = 100


@dataclass(frozen=True)
class _Written:
    """An input that a Function's forward wrote into, and the node that it had."""

    tensor: weakref.ref[torch.Tensor]
    number: int
    spot: Spot
    kind: str


class Functions(Check):
    """What comes in where a backward does not read it: with ones its result is right, with anything else wrong."""

    codes: ClassVar = ("ignores-incoming", "mark-dirty")
    functions: ClassVar = frozenset({"*"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._places: dict[Any, Spot | None] = {}
        self._handles: list[RemovableHandle] = []
        self._wrong: Counter[Any] = Counter()
        self._parts: dict[Any, tuple[Unmoved, ...]] = {}  # results that go on without what comes in
        self._wrong_parts: Counter[tuple[Any, Unmoved]] = Counter()
        self._written: dict[int, _Written] = {}  # by the input's id
        self._later: Counter[tuple[Spot, str]] = Counter()  # uses of such an input in an operation that is recorded

    def function(self, event: Op) -> None:
        tensor = event.args[0] if event.args else None
        if event.name.endswith("_") and not event.name.endswith("__") and isinstance(tensor, torch.Tensor):
            if not torch.is_grad_enabled() and _has_history(tensor):
                self._note(tensor)
        elif self._written and event.ended > event.began:
            for given in tensors_in(event.args):
                written = self._written.get(id(given))
                if written is not None and written.tensor() is given and given.grad_fn is not None:
                    self._later[written.spot, written.kind] += number_of(given.grad_fn) == written.number

    def _note(self, tensor: torch.Tensor) -> None:
        frame, spot = next(frames(), None), here()
        if frame is None or spot is None or frame.f_code.co_name != "forward":
            return
        owner = next(
            (it for it in names_in(frame).values() if isinstance(it, torch.autograd.function.FunctionCtx)), None
        )
        kind = getattr(type(owner), "_forward_cls", None)
        if kind is not None:
            if len(self._written) > _MOST:
                self._written.clear()
            self._written[id(tensor)] = _Written(
                weakref.ref(tensor),
                number_of(tensor.grad_fn),
                spot,
                kind.__name__,
            )

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None:
            return
        for node in event.graph.inner:
            kind = getattr(node, "_forward_cls", None)
            if kind is None or not isinstance(node, torch.autograd.function.BackwardCFunction):
                continue
            if kind not in self._places:
                self._places[kind] = ignores_incoming(kind)
                self._parts[kind] = unmoved(kind) if self._places[kind] is None else ()
            wanted = node.needs_input_grad
            parts = [part for part in self._parts[kind] if part.at < len(wanted) and wanted[part.at]]
            if self._places[kind] is not None or parts:
                self._handles.append(node.register_prehook(self._looking(kind, parts)))

    def _looking(self, kind: Any, parts: list[Unmoved]) -> Callable[[Any], None]:
        def look(incoming: Any) -> None:
            if any(grad is not None and bool((grad.detach() != 1).any()) for grad in incoming):
                self._wrong[kind] += self._places[kind] is not None
                self._wrong_parts.update((kind, part) for part in parts)

        return look

    def pass_ended(self, event: Pass) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def found(self) -> Iterator[Found]:
        for (kind, part), times in self._wrong_parts.items():
            yield self.say(
                "ignores-incoming",
                part.spot,
                f"{kind.__name__}.backward makes {part.text} without the gradient that comes in",
                "What comes after the Function is in that gradient, and it was not 1. Without it the loss has no say "
                "in this result: every gradient that is made from it is wrong.",
                "grad_output * ...  # the incoming gradient times the derivative",
                times=times,
            )
        for kind, times in (+self._wrong).items():
            yield self.say(
                "ignores-incoming",
                self._places[kind],
                f"{kind.__name__}.backward never reads the gradient that comes in",
                "What comes after the Function is in that gradient, and it was not 1. Without it the loss has no say "
                "in what goes on from here: every gradient behind the Function is wrong.",
                "return grad_output * ...  # the incoming gradient times the derivative",
                times=times,
            )
        for (spot, name), times in self._later.items():
            if times >= 2:
                yield self.say(
                    "mark-dirty",
                    spot,
                    f"{name}.forward writes into its input, and autograd is not told",
                    "The input has the new values and its old history. What is computed from it later gets the "
                    "gradient of the values that it had before.",
                    "ctx.mark_dirty(x)  # and return that x; or do not write: x * 2 in place of x.mul_(2)",
                    times=times,
                )


def _has_history(tensor: torch.Tensor) -> bool:
    try:
        return tensor.grad_fn is not None
    except RuntimeError:  # a view that was made under no_grad, of what was written into since
        return False
