"""States that are loaded: one that is the model's own memory, and one of which the model takes nothing."""

from __future__ import annotations

import weakref
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.book import listed_names
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Load
from course_utils.audit.finding import Level
from course_utils.audit.lines import Spot

_MOST = 256  # so many states are remembered, the last ones made


@dataclass(frozen=True)
class _Made:
    """A state of a module, at the moment when it was made."""

    tensor: weakref.ref[torch.Tensor]  # one of its tensors, which copies of the dictionary hold as well
    module: weakref.ref[torch.nn.Module]
    spot: Spot | None
    moment: tuple[int, int]
    versions: int


class Loading(Check):
    """What `load_state_dict` is given, against the model that shall take it."""

    codes: ClassVar = ("state-is-alias", "nothing-loaded")

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._states: OrderedDict[int, _Made] = OrderedDict()  # by the id of their tensor
        self._written: weakref.WeakKeyDictionary[torch.nn.Module, int] = weakref.WeakKeyDictionary()
        self._aliases: Counter[tuple[Spot | None, Spot | None]] = Counter()
        self._kept: Counter[tuple[Spot | None, Spot | None]] = Counter()  # the same, loaded into another model
        self._skipped: dict[int, tuple[weakref.ref[torch.nn.Module], Found]] = {}  # by the module's id, its last load
        self._lost: list[Found] = []

    def state_made(self, module: Any, state: Any, spot: Spot | None) -> None:
        tensor = next(_tensors(state), None)
        if tensor is None or tensor.is_inference() or isinstance(tensor, torch.nn.Parameter):
            return
        self._states[id(tensor)] = _Made(
            weakref.ref(tensor), weakref.ref(module), spot, self._moment(module), _versions(module)
        )
        if len(self._states) > _MOST:
            self._states.popitem(last=False)

    def loads(self, module: torch.nn.Module, state: Any, spot: Spot | None) -> None:
        made = self._made(state)
        if made is None or made.module() is not module or not _is_own(module, state):
            self._written[module] = self._written.get(module, 0) + 1
        # What the learner wrote into the state's own tensors is in the model as well: only steps and loads are lost.
        elif made.moment != self._moment(module) and made.versions != _versions(module):
            self._aliases[made.spot, spot] += 1
        if made is not None and type(state) is dict:  # who puts the tensors into a dictionary of his own keeps them
            other = made.module()
            stepped = made.moment[0] != self.clock.steps
            if stepped and other is not None and other is not module and _is_own(other, state):
                self._kept[made.spot, spot] += 1

    def _moment(self, module: torch.nn.Module) -> tuple[int, int]:
        return self.clock.steps, self._written.get(module, 0)

    def _made(self, state: Any) -> _Made | None:
        for tensor in _tensors(state):
            made = self._states.get(id(tensor))
            if made is not None and made.tensor() is tensor:
                return made
        return None

    def loaded(self, event: Load) -> None:
        known = self._skipped.pop(id(event.module), None)
        if known is not None and known[0]() is not event.module:
            self._lost.append(known[1])
        names = [name for name, _ in event.module.named_parameters()]
        missing = set(event.missing)
        lost = [name for name in names if name in missing]
        if not lost or not event.unexpected:
            return
        prefix = _prefix(lost, event.unexpected)
        level: Level
        if len(lost) == len(names) and len(event.unexpected) >= len(event.state):
            level = "error"
        elif prefix is not None and 2 * len(lost) > len(names):
            level = "likely"
        else:
            return
        self._skipped[id(event.module)] = weakref.ref(event.module), self._nothing(event, lost, prefix, level)

    def _nothing(self, event: Load, lost: list[str], prefix: str | None, level: Level) -> Found:
        what = "nothing was loaded" if level == "error" else "most parameters were not loaded"
        fix = "look at what load_state_dict returns: its missing_keys and unexpected_keys"
        if prefix is not None and prefix.startswith("+"):
            fix = f'load_state_dict({{"{prefix[1:]}" + key: value for key, value in state.items()}})'
        elif prefix is not None:
            fix = f'load_state_dict({{key.removeprefix("{prefix}"): value for key, value in state.items()}})'
        return self.say(
            "nothing-loaded",
            event.spot,
            f"{what}: the state has {listed_names(event.unexpected)}, the model {listed_names(lost)}",
            "With strict=False a key that the other side does not know is skipped without a word. What was skipped "
            "keeps the values that it was made with.",
            fix,
            level=level,
            certain=prefix is not None,
            names=lost,
        )

    def found(self) -> Iterator[Found]:
        for (made, loaded), times in self._aliases.items():
            yield self.say(
                "state-is-alias",
                made or loaded,
                "state_dict() copies nothing: what was kept here moved along with the model"
                + (f", and line {loaded.line} loads the model into itself" if loaded else ""),
                "The tensors of a state_dict are the model's own memory. Steps and loads change "
                "both. The model stays as it is when the state is loaded.",
                "copy.deepcopy(model.state_dict())",
                times=times,
            )
        for (made, loaded), times in self._kept.items():
            yield self._kept_by_reference(made, loaded, times)
        yield from self._lost
        yield from (found for _, found in self._skipped.values())

    def _kept_by_reference(self, made: Spot | None, loaded: Spot | None, times: int) -> Found:
        return self.say(
            "state-is-alias",
            made or loaded,
            "state_dict() copies nothing: what was kept here moved along with the model",
            "The tensors of a state_dict are the model's own memory, also in a dictionary of your own. Steps of the "
            f"optimizer changed them: what {f'line {loaded.line}' if loaded else 'another model'} loads is what the "
            "model holds now.",
            "{name: value.clone() for name, value in model.state_dict().items()}",
            times=times,
        )


def _tensors(state: Any) -> Iterator[torch.Tensor]:
    if isinstance(state, Mapping):
        yield from (value for value in state.values() if isinstance(value, torch.Tensor))


def _versions(module: torch.nn.Module) -> int:
    return sum(p._version for p in module.parameters() if not p.is_inference())


def _is_own(module: torch.nn.Module, state: Mapping[str, Any]) -> bool:
    """Say whether a state gives every parameter of a module the memory that it has."""
    given = {name: state.get(name) for name, _ in module.named_parameters()}
    return bool(given) and all(
        isinstance(value, torch.Tensor) and value.data_ptr() == parameter.data_ptr()
        for value, parameter in zip(given.values(), module.parameters(), strict=True)
    )


def _prefix(lost: Sequence[str], unexpected: Sequence[str]) -> str | None:
    """Return what the names of a state have before those of the model, as "module."; "+module." the other way round."""
    for name in lost:
        for key in unexpected:
            if key.endswith(f".{name}"):
                return key.removesuffix(name)
            if name.endswith(f".{key}"):
                return f"+{name.removesuffix(key)}"
    return None
