"""Texts that are looked for in the names of parameters, and that no parameter has in its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import ClassVar

import torch

from course_utils.audit.book import Slot, Trainer, listed, listed_names
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Pass, Step
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import ran
from course_utils.audit.texts import Test, Text, tests

_ALIKE = 0.85
_SHORT = {"bn": "BatchNorm", "ln": "LayerNorm", "gn": "GroupNorm", "emb": "Embedding", "embed": "Embedding"}
_TRAILER = re.compile(r"[._]?(weight|bias|\d+)$")


class Naming(Check):
    """Filters of names, and what becomes of the parameters that they were meant for."""

    codes: ClassVar = ("name-fits-nothing",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._seen: set[Spot] = set()

    def pass_begins(self, event: Pass) -> None:
        if event.spot is not None and not self.clock.steps:
            self._seen.add(event.spot)

    def step_begins(self, event: Step) -> None:
        if event.spot is not None and event.trainer.steps < 2:
            self._seen.add(event.spot)

    def called(self, event: Call) -> None:
        if not self.clock.steps:
            self._seen.update(event.spots)

    def found(self) -> Iterator[Found]:
        names = self._names()
        missed: dict[str, Found] = {}  # by the text: of a condition and its contrary, the last is said
        for file, scope in ran(sorted(self._seen)) if names else ():
            for test in tests(file, scope):
                for text in test.texts:
                    found = None if any(map(text.fits, names)) else self._unfit(text, test, names)
                    if found is not None:
                        missed[text.text] = found
        yield from missed.values()

    def _names(self) -> list[str]:
        modules = [module for module in (it.ref() for it in self.book.models.values()) if module is not None]
        found = [name for module in modules for name, _ in module.named_parameters()]
        parts = [name for module in modules for name, _ in module.named_modules() if name]
        return list(dict.fromkeys([*found, *parts])) if found else []

    def _unfit(self, text: Text, test: Test, names: list[str]) -> Found | None:
        """Say what a text was meant for, if that can be told; None where nothing is amiss."""
        meant, kind = self._of_kind(text)
        if meant:
            return self._missed(
                text,
                f"{listed(meant)} decay like the rest",
                f"They belong to modules of the class {kind}. The names of parameters are made of attributes, and not "
                "of classes.",
                meant,
            )
        alike = [name for name in names if _is_alike(text.text, name)]
        if alike and not any(other.fits(name) for other in test.texts for name in alike):
            slots = [it for it in self.book.live() if it.is_parameter and any(it.name.endswith(name) for name in alike)]
            return self._missed(
                text, f"it does not take {listed_names(alike)}", "Names are compared letter for letter.", slots
            )
        empty = next((it for it in self.book.trainers.values() if 0 in it.groups), None)
        whole = not any(other.fits(name) for other in test.texts for name in names)
        if empty is not None and whole and not self._is_general(test):
            return self._missed(
                text,
                f"a group of {empty.name or 'the optimizer'} stays empty",
                f"It was to take what this name stands for, and has no parameter. There are: {listed_names(names, 6)}.",
                [],
                empty.key,
            )
        return None

    def _is_general(self, test: Test) -> bool:
        """Say whether a filter is one for any model: what no decay is for, in whatever model there is."""
        return any(re.search(r"bias|norm|\bbn|\bln", text.text, re.IGNORECASE) for text in test.texts)

    def _of_kind(self, text: Text) -> tuple[list[Slot], str]:
        """Return parameters in a group that decays, of modules whose class is called like a text, and that class."""
        word = _TRAILER.sub("", text.text)
        word = _SHORT.get(word.lower(), word).replace("_", "").lower()
        if len(word) < 4:
            return [], ""
        decaying = {slot.key for it in self.book.trainers.values() for slot in _decaying(it, self)}
        for model in self.book.models.values() if decaying else ():
            module = model.ref()
            found: list[Slot] = []
            kind = ""
            for part in module.modules() if module is not None else ():
                if word in type(part).__name__.lower():
                    slots = [self.book.find(p) for p in part.parameters(recurse=False)]
                    mine = [slot for slot in slots if slot is not None and slot.key in decaying]
                    kind = kind or (type(part).__name__ if mine else "")
                    found += mine
            if found:
                return found, kind
        return [], ""

    def _missed(self, text: Text, effect: str, why: str, slots: list[Slot], key: int = 0) -> Found:
        return self.say(
            "name-fits-nothing",
            text.spot,
            f'no name of a parameter fits "{text.text}": {effect}',
            f"A filter that fits nothing raises no error. {why}",
            "isinstance(module, (nn.LayerNorm, ...))  # in a loop over model.modules(): by class, not by name"
            if "class" in why
            else "print([name for name, _ in model.named_parameters()])  # and choose among them",
            certain=bool(slots),
            about={slot.key for slot in slots} or {key},
            names=[slot.name for slot in slots],
        )


def _decaying(trainer: Trainer, check: Naming) -> Iterator[Slot]:
    """Yield what an optimizer lets decay, if it has a group in which nothing decays."""
    optimizer = trainer.ref()
    groups = optimizer.param_groups if optimizer is not None else []
    if len({bool(group.get("weight_decay")) for group in groups}) < 2:
        return
    for group in groups:
        for p in group["params"] if group.get("weight_decay") else ():
            slot = check.book.find(p) if isinstance(p, torch.Tensor) else None
            if slot is not None:
                yield slot


def _is_alike(text: str, name: str) -> bool:
    """Say whether a text is nearly a part of a name: in other letters, or misspelt by one."""
    wanted = text.strip("._")
    if len(wanted) < 4:
        return False
    if wanted.lower() in name.lower():
        return True
    parts = [part for part in name.split(".") if len(part) >= 4]
    if "." in wanted:
        parts = [name[: len(wanted)], name]
    return any(SequenceMatcher(None, wanted.lower(), part.lower()).ratio() >= _ALIKE for part in parts)
