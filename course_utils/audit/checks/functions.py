"""Custom Functions whose backward forgets the chain rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch
from torch.utils.hooks import RemovableHandle

from course_utils.audit.check import Check, Found
from course_utils.audit.classes import ignores_incoming
from course_utils.audit.events import Pass
from course_utils.audit.lines import Spot


class Functions(Check):
    """What comes in where a backward does not read it: with ones its result is right, with anything else wrong."""

    codes: ClassVar = ("ignores-incoming",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._places: dict[Any, Spot | None] = {}
        self._handles: list[RemovableHandle] = []
        self._wrong: Counter[Any] = Counter()

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None:
            return
        for node in event.graph.inner:
            kind = getattr(node, "_forward_cls", None)
            if kind is None or not isinstance(node, torch.autograd.function.BackwardCFunction):
                continue
            if kind not in self._places:
                self._places[kind] = ignores_incoming(kind)
            if self._places[kind] is not None:
                self._handles.append(node.register_prehook(self._looking(kind)))

    def _looking(self, kind: Any) -> Callable[[Any], None]:
        def look(incoming: Any) -> None:
            if any(grad is not None and bool((grad.detach() != 1).any()) for grad in incoming):
                self._wrong[kind] += 1

        return look

    def pass_ended(self, event: Pass) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def found(self) -> Iterator[Found]:
        for kind, times in self._wrong.items():
            yield self.say(
                "ignores-incoming",
                self._places[kind],
                f"{kind.__name__}.backward never reads the gradient that comes in",
                "What comes after the Function is in that gradient, and it was not 1. Without it the loss has no say "
                "in what goes on from here: every gradient behind the Function is wrong.",
                "return grad_output * ...  # the incoming gradient times the derivative",
                times=times,
            )
