"""What tame scenes lack: models with parts of every kind, tensors of every kind, batches that come once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import torch
from torch import nn

from course_utils.checks.scenes.numbers import numbers, seeded

Item = TypeVar("Item")
FEATURES, CLASSES = 3, 4


class _Slip(RuntimeError, ValueError, TypeError, KeyError, IndexError, ArithmeticError):
    """What code does wrong."""


class OwnError(_Slip, AssertionError, EOFError, BufferError, MemoryError, OSError):
    """An error of many kinds at once: code that catches any of them, and hides it, hides this one."""

    def __str__(self) -> str:
        return Exception.__str__(self)


class Stopped(BaseException):
    """What ends code from outside, as KeyboardInterrupt does: `except Exception` does not see it."""


class Once(Iterable[Item]):
    """Items that can be gone through once and have no length, as from a file or a network."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._left = iter(items)

    def __iter__(self) -> Iterator[Item]:
        return self._left


class Block(nn.Module):
    """A linear map with batch norm, and a mask that is a buffer but not part of the state."""

    mask: torch.Tensor

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.mix = nn.Linear(inside, outside)
        self.norm = nn.BatchNorm1d(outside)
        self.register_buffer("mask", torch.linspace(0.5, 1.5, outside), persistent=False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.norm(self.mix(inputs)).tanh() * self.mask
        return out


class Everything(nn.Module):
    """A classifier of rows with a part of each kind that code may forget.

    A nested block in training mode and one that evaluates, each with batch norm and a buffer outside the state;
    a frozen bias; a matrix used twice and known by two names; a spare layer that takes no part; a hook of its own;
    and, where `draws`, dropout.
    """

    def __init__(self, draws: bool = False) -> None:
        super().__init__()
        self.trains = Block(FEATURES, 5)
        self.evaluates = Block(5, 5)
        self.drop = nn.Dropout(0.4 if draws else 0.0)
        self.twice = nn.Linear(5, 5, bias=False)
        self.again = self.twice
        self.last = nn.Linear(5, CLASSES)
        self.spare = nn.Linear(2, 3)
        self.trains.mix.bias.requires_grad_(False)
        self.evaluates.eval()
        self.register_forward_hook(_own_hook)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.drop(self.evaluates(self.trains(inputs)))
        scores: torch.Tensor = self.last(self.again(self.twice(hidden).tanh()))
        return scores


def _own_hook(module: nn.Module, given: object, result: object) -> None:
    """Do nothing. It stands for hooks of the model's author, which nobody may remove."""


def everything(seed: int, draws: bool = False) -> Everything:
    """Return the model with a part of each kind, in float64, with numbers from a seed."""
    model = Everything(draws).double()
    seeded(model, seed)
    return model


def lived_in(model: nn.Module, resting: nn.Module) -> None:
    """Give a model what its author may have left in it: a hook, and a part, `resting`, that evaluates.

    Modes and hooks that stay as they were can be told from lost ones only where there are some.
    """
    resting.eval()
    model.register_forward_hook(_own_hook)


def deep(layer: nn.Module) -> nn.Sequential:
    """Return a layer inside a part of a part: code that visits a model's own layers alone does not meet it."""
    return nn.Sequential(nn.Sequential(layer))


def one_layer(seed: int) -> nn.Linear:
    """Return a model that is a single layer, in float64, with numbers from a seed."""
    layer = nn.Linear(FEATURES, CLASSES).double()
    seeded(layer, seed)
    return layer


def leave_gradients(model: nn.Module, seed: int) -> None:
    """Leave the gradients of an earlier pass in all parameters that have one."""
    for offset, parameter in enumerate(it for it in model.parameters() if it.requires_grad):
        parameter.grad = numbers(seed + 700 + offset, *parameter.shape, dtype=parameter.dtype)


def in_groups(parameters: Iterable[torch.Tensor]) -> list[dict[str, list[torch.Tensor]]]:
    """Return parameters as an optimizer's groups, the first by itself: who reads one group alone sees a part."""
    first, *rest = parameters
    return [{"params": [first]}, {"params": rest}]


def steepen(layer: nn.Module, steep: float) -> None:
    """Divide a first layer's weight, for inputs that are so many times as large.

    The results stay as they are, and the weight's gradient is as many times longer: long enough for any clipping
    that nobody asked for to show.
    """
    with torch.no_grad():
        layer.get_parameter("weight").div_(steep)


# What `kind_of` makes. For each, a slip that only it shows: `x[0]`, `len(x)`, `x.view(-1)`, `1 / x`, `x > 0`, ...
KINDS = ("number", "one entry", "transposed", "every second", "negative", "with zeros", "ties", "half", "fine", "huge")


def kind_of(kind: str, seed: int) -> torch.Tensor:
    """Return a tensor of one of `KINDS`, from a seed. Float32, but for "half", and "fine": doubles that it cannot hold.

    Raises KeyError for another kind.
    """
    flat = numbers(seed, 3, 4)
    made = {
        "number": flat[0, 0].clone(),
        "one entry": flat[:1, :1].clone(),
        "transposed": flat.t(),
        "every second": numbers(seed, 3, 8)[:, ::2],
        "negative": -flat.abs(),
        "with zeros": flat * (torch.arange(12).reshape(3, 4) % 5 != seed % 5),
        "ties": flat.sign(),
        "half": flat.half(),
        "fine": 1 + 1e-10 * numbers(seed, 3, 4, dtype=torch.float64),
        "huge": 1e20 * flat,
    }
    return made[kind]
