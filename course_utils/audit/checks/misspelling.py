"""Freezing that is misspelt: a plain attribute that PyTorch never reads."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import is_read
from course_utils.audit.source import assignments_to, nearest

_MEANT = "requires_grad"
_METHOD = "requires_grad_"

# What other libraries call it. A file that reads such a name has a use for it.
_ELSEWHERE = frozenset(
    {"trainable", "frozen", "freeze", "needs_grad", "need_grad", "require_gradient", "requires_gradient"}
)


class Misspelling(Check):
    """Attributes of parameters and modules that were meant for requires_grad."""

    codes: ClassVar = ("misspelt-freeze",)

    def found(self) -> Iterator[Found]:
        """A plain attribute that nothing reads, on a parameter or a module, where requires_grad was meant."""
        slips: dict[str, list[str]] = {}
        places = [trainer.spot for trainer in self.book.trainers.values() if trainer.spot]
        for slot in self.book.live():
            for attribute in getattr(slot.tensor, "__dict__", ()):
                if _is_slip(attribute, places):
                    slips.setdefault(attribute, []).append(slot.name)
        for model in self.book.models.values():
            module = model.ref()
            for name, part in module.named_modules() if module is not None else ():
                for attribute, value in vars(part).items():
                    if isinstance(value, bool) and (attribute == _MEANT or _is_slip(attribute, places)):
                        slips.setdefault(attribute, []).append(".".join(filter(None, (model.name, name))))
        for attribute, names in slips.items():
            found = [
                near
                for spot in places
                if (near := nearest([place for place, _ in assignments_to(spot.file, (attribute,))], spot)) is not None
            ]
            of_module = attribute == _MEANT
            what, fix = f"has no such switch; it is called {_MEANT}", f"p.{_MEANT} = False"
            if of_module:
                what, fix = "is a module", "module.requires_grad_(False)"
            elif attribute == _METHOD:
                what, fix = "has a method of this name, which was replaced and not called", "p.requires_grad_(False)"
            yield self.say(
                "misspelt-freeze",
                found[0] if found else None,
                f"setting .{attribute} froze nothing: {', '.join(names[:3])} {what}",
                f"Python lets you set any attribute{' on a module' if of_module else ''}. It became a plain one that "
                "PyTorch never reads; the parameters go on learning.",
                fix,
                about={slot.key for slot in self.book.live() if slot.name in names},
                names=names,
            )


def _is_slip(attribute: str, places: list[Spot]) -> bool:
    if attribute in _ELSEWHERE:
        return not any(is_read(spot.file, attribute) for spot in places)
    return attribute != _MEANT and SequenceMatcher(None, attribute.lower(), _MEANT).ratio() >= 0.85
