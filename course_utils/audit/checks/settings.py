"""Settings that nothing reads: plain attributes and keys where PyTorch's own have other names."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from course_utils.audit.book import Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.checks.levelled import Levels
from course_utils.audit.events import Call, Step
from course_utils.audit.lines import Spot, is_learners, is_torch
from course_utils.audit.mentions import is_read, key_lines
from course_utils.audit.source import assignments_to, nearest, text_at

_ALIKE = 0.85
_TIMES = 3

# Names that other libraries give to what an optimizer is told in each group.
_KEYS = {
    "learning_rate": "lr",
    "learningrate": "lr",
    "learn_rate": "lr",
    "lrate": "lr",
    "rate": "lr",
    "alpha": "lr",
    "step_size": "lr",
    "wd": "weight_decay",
    "decay": "weight_decay",
    "l2": "weight_decay",
    "weightdecay": "weight_decay",
    "mom": "momentum",
    "beta": "betas",
    "epsilon": "eps",
}
_DROPOUT = ("rate", "prob", "probability", "dropout", "dropout_rate", "drop_prob", "drop_rate", "dropout_prob", "ratio")
_MODES = ("train", "eval")
_PLAIN = (bool, int, float, str, tuple, list)


class Settings(Check):
    """What was set on optimizers and modules, and is no setting of theirs."""

    codes: ClassVar = ("setting-ignored",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._halved: dict[int, tuple[Call, int]] = {}  # calls of a model in evaluation whose parts are not, by key
        self._levels: dict[int, Levels] = {}  # of optimizers whose groups were given different rates, by key

    def step_begins(self, event: Step) -> None:
        optimizer = event.trainer.ref()
        levels = self._levels_of(event.trainer, optimizer) if optimizer is not None else None
        if levels is not None and optimizer is not None:
            levels.note(event, optimizer)

    def scheduled(self, scheduler: Any, spot: Spot | None) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if isinstance(optimizer, torch.optim.Optimizer):
            levels = self._levels_of(self.book.trainer(optimizer), optimizer)
            if levels is not None:
                levels.scheduled(self.book, scheduler)

    def _levels_of(self, trainer: Trainer, optimizer: torch.optim.Optimizer) -> Levels | None:
        rates = self.book.rates.get(optimizer, [])
        if len(set(map(str, rates))) < 2:
            return None
        return self._levels.setdefault(trainer.key, Levels(rates))

    def called(self, event: Call) -> None:
        if not event.training and event.active and not event.by_torch:
            times = self._halved.get(event.model.key, (event, 0))[1]
            self._halved[event.model.key] = event, times + 1

    def found(self) -> Iterator[Found]:
        for trainer in self.book.trainers.values():
            optimizer = trainer.ref()
            if optimizer is not None and is_torch(_file_of(type(optimizer))):
                yield from self._of_optimizer(trainer, optimizer)
        for model in self.book.models.values():
            module = model.ref()
            for name, part in module.named_modules() if module is not None else ():
                yield from self._of_module(".".join(filter(None, (model.name, name))), part)
        yield from self._flags()

    def _of_optimizer(self, trainer: Trainer, optimizer: torch.optim.Optimizer) -> Iterator[Found]:
        name = trainer.name or "optimizer"
        known = set(optimizer.defaults)
        for attribute, value in vars(optimizer).items():
            meant = _meant(attribute, known)
            if meant and isinstance(value, _PLAIN):
                spot = self._line(trainer.spot, attribute)
                if spot is not None:
                    yield self._ignored(
                        spot,
                        f"{name}.{attribute} is an attribute that nothing reads",
                        f"An optimizer takes its settings from its groups, at each step. There {meant} is still "
                        f"{_short([group.get(meant) for group in optimizer.param_groups])}.",
                        f'for group in {name}.param_groups:\n    group["{meant}"] = ...',
                    )
        for group in optimizer.param_groups:
            for key in group.keys() - known - {"params"}:
                meant = _meant(key, known)
                lines = key_lines(trainer.spot.file, key) if meant and trainer.spot else []
                if meant and lines and trainer.spot and not is_read(trainer.spot.file, key):
                    yield self._ignored(
                        lines[0],
                        f'the key "{key}" of a group of {name} is one that nothing reads',
                        f"A group takes any key. {type(optimizer).__name__} reads {meant}, and that is "
                        f"{_short([group.get(meant)])} in this group.",
                        f'"{meant}"  # in place of "{key}"',
                    )
        yield from self._defaults(trainer, optimizer, name)
        yield from self._levelled(trainer, name)

    def _defaults(self, trainer: Trainer, optimizer: torch.optim.Optimizer, name: str) -> Iterator[Found]:
        """Defaults that were changed when all groups had been made."""
        for key, value in optimizer.defaults.items() if trainer.spot else ():
            written = [it for it in key_lines(trainer.spot.file, key) if _writes_defaults(it)]  # type: ignore[union-attr]
            if written and all(group.get(key) != value for group in optimizer.param_groups):
                yield self._ignored(
                    written[0],
                    f'{name}.defaults["{key}"] is read when a group is made, and all groups were made before',
                    f"The steps take {key} from each group, where it is still "
                    f"{_short([group.get(key) for group in optimizer.param_groups])}.",
                    f'for group in {name}.param_groups:\n    group["{key}"] = ...',
                )

    def _levelled(self, trainer: Trainer, name: str) -> Iterator[Found]:
        """Rates of groups that a schedule of one rate writes over."""
        levels = self._levels.get(trainer.key)
        spot = levels.line(trainer.spot) if levels is not None and levels.times >= _TIMES else None
        if levels is not None and spot is not None:
            yield self.say(
                "setting-ignored",
                spot,
                f"all {len(levels.first)} groups of {name} get one rate here: they were given {_short(levels.first)}",
                "What was meant to learn more slowly, or faster, than the rest has the same rate as all from then on. "
                "A schedule changes each group's own rate by a factor.",
                'group["lr"] = group["initial_lr"] * factor  # initial_lr: written into each group once, before',
                level="likely",
                certain=False,
                times=levels.times,
            )

    def _of_module(self, name: str, part: nn.Module) -> Iterator[Found]:
        near = next((trainer.spot for trainer in self.book.trainers.values() if trainer.spot), None)
        own = vars(part)
        for mode in _MODES:
            if isinstance(own.get(mode), bool):
                spot = self._line(near, mode, read=False)
                yield self._ignored(
                    spot,
                    f"{name or 'a module'}.{mode} was replaced by {own[mode]}: no mode was set",
                    f"{mode}() is a method. An assignment puts a plain value in its place, and every part stays in "
                    "the mode that it has.",
                    f"{name or 'model'}.{'eval' if own[mode] == (mode == 'eval') else 'train'}()",
                )
        if not is_torch(_file_of(type(part))):
            return
        known = _settings_of(type(part))
        for attribute, value in own.items() if known else ():
            if attribute in known or attribute.startswith("_") or not isinstance(value, _PLAIN):
                continue
            meant = _alike(attribute, known)
            if isinstance(part, _DropoutNd) and attribute.lower() in _DROPOUT:
                meant = "p"
            spot = self._line(near, attribute) if meant else None
            if spot is not None:
                yield self._ignored(
                    spot,
                    f"{name or type(part).__name__}.{attribute} is an attribute that nothing reads",
                    f"{type(part).__name__} reads {meant}, and that is still {getattr(part, meant, None)!r}. Python "
                    "lets you set any attribute.",
                    f"{name.rpartition('.')[2] or 'module'}.{meant} = {value!r}",
                )

    def _flags(self) -> Iterator[Found]:
        """`model.training = False`: the flag of one module, where its parts have flags of their own."""
        for event, times in self._halved.values():
            name = event.model.name
            for spot in event.spots[:1]:
                set_at = [place for place, owner in assignments_to(spot.file, ("training",)) if owner == name]
                if set_at and times:
                    yield self._ignored(
                        nearest(set_at, spot),
                        f"{name}.training = False sets the flag of {name} alone: its parts stay in training",
                        f"{', '.join(event.active[:3])} behaves as in training: each part reads a flag of its own. "
                        "eval() sets them all.",
                        f"{name}.eval()",
                        times=times,
                    )

    def _line(self, near: Spot | None, attribute: str, read: bool = True) -> Spot | None:
        """Return the line that sets an attribute; None where the file reads it, too, or where none does."""
        if near is None or (read and is_read(near.file, attribute)):
            return None
        return nearest([spot for spot, _ in assignments_to(near.file, (attribute,))], near)

    def _ignored(self, spot: Spot | None, headline: str, why: str, fix: str, times: int = 1) -> Found:
        return self.say("setting-ignored", spot, headline, why, fix, times=times)


def _meant(name: str, known: set[str]) -> str:
    """Return the setting that a name which is none stands for, or nothing."""
    if name in known:
        return name
    plain = name.lower().lstrip("_")
    found = plain if plain in known else _KEYS.get(plain, "")
    return found if found in known else _alike(name, known)


def _alike(name: str, known: set[str]) -> str:
    ratios = {it: SequenceMatcher(None, name.lower(), it.lower()).ratio() for it in known if len(it) > 2}
    best = max(ratios, key=ratios.__getitem__, default="")
    return best if best and ratios[best] >= _ALIKE else ""


def _settings_of(kind: type) -> set[str]:
    """Return the plain settings of a class of modules of PyTorch's: what its constructor is told."""
    names: set[str] = {"training"}
    for base in kind.__mro__:
        code = getattr(vars(base).get("__init__"), "__code__", None)
        if code is not None:
            names |= {*code.co_varnames, *code.co_names, *getattr(base, "__constants__", ()), *_annotated(base)}
    return names


def _annotated(kind: type) -> tuple[str, ...]:
    return tuple(vars(kind).get("__annotations__", ()))


def _file_of(kind: type) -> str:
    code: Any = getattr(getattr(kind, "__init__", None), "__code__", None)
    return "" if code is None or is_learners(code.co_filename) else code.co_filename


def _writes_defaults(spot: Spot) -> bool:
    return ".defaults[" in text_at(spot)


def _short(values: list[Any]) -> str:
    shown = list(dict.fromkeys(map(repr, values)))
    return " and ".join(shown[:2]) + (" and so on" if len(shown) > 2 else "")
