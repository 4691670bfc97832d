"""What lesson 08's answers are tried on: models with one difficulty each, deep nets, and what a model must keep."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Case, plain
from course_utils.checks.observing.batches import Batch
from course_utils.checks.observing.models import numbers, seeded
from course_utils.checks.observing.traces import changes, hook_counts, hooks_of

# What must be as before after a look at a model.


def state(model: nn.Module) -> dict[str, Any]:
    """Return what a model is, each fact under words that fit behind "you changed"."""
    facts: dict[str, Any] = {}
    for name, parameter in model.named_parameters():
        facts[f"the gradient that {name} holds"] = plain(parameter.grad)
        facts[f"the numbers in {name}"] = plain(parameter)
        facts[f"requires_grad of {name}"] = parameter.requires_grad
        facts[f"which tensor {name} is"] = id(parameter)
        facts[f"the hooks on {name}"] = hook_counts(parameter)
    for name, buffer in model.named_buffers():
        facts[f"the numbers in {name}"] = plain(buffer)
    for name, module in model.named_modules():
        known = f"module {name}" if name else "the model"
        facts[f"the hooks on {known}"] = [list(hooks) for hooks in hooks_of(module)]
        facts[f"the training mode of {known}"] = module.training
        facts[f"the settings of {known}"] = module.extra_repr()
        facts[f"the class or the forward method of {known}"] = [type(module).__name__, "forward" in module.__dict__]
    shared = vars(nn.modules.module)
    hooks_for_all = [kind for kind in shared if kind.startswith("_global_") and kind.endswith("_hooks")]
    facts["the hooks for all modules"] = [len(shared[kind]) for kind in hooks_for_all]
    return facts


def changed(before: dict[str, Any], model: nn.Module, but: str | None = None) -> list[str]:
    """Name what is different now, at most five things, leaving out what has the word `but` in its name."""
    return [what for what in changes(before, state(model)) if but is None or but not in what][:5]


# Models for looking at layers.


class Tied(nn.Module):
    """One layer is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.shared, self.leave = nn.Linear(3, 5), nn.Linear(5, 5), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.shared(self.enter(x).tanh()).tanh()
        result: torch.Tensor = self.leave(self.shared(h).tanh())
        return result


class Branches(nn.Module):
    """The first layer is frozen, and one head's result is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(3, 4).requires_grad_(False)
        self.trunk, self.head, self.spare = nn.Linear(4, 5), nn.Linear(5, 2), nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.trunk(self.frozen(x)).tanh()
        self.spare(h)
        result: torch.Tensor = self.head(h)
        return result


class Failing(nn.Module):
    """A layer that raises."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise Planned("the model fails here")


class Planned(Exception):
    """An error that belongs to a case."""


def layered(case: Case, in_place: bool = True) -> tuple[nn.Module, torch.Tensor]:
    """Return the case's model and a batch. `in_place` says how its ReLUs work where it has some."""
    seed = case.given["seed"]
    models: dict[str, Callable[[], nn.Module]] = {
        "plain": lambda: nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4), nn.Sigmoid(), nn.Linear(4, 2)),
        "in place": lambda: nn.Sequential(
            nn.Sequential(nn.Linear(3, 6), nn.ReLU(inplace=in_place)),
            *(nn.Linear(6, 5), nn.ReLU(inplace=in_place), nn.Linear(5, 2)),
        ),
        "tied": Tied,
        "branches": Branches,
        "failing": lambda: nn.Sequential(nn.Linear(3, 5), nn.Tanh(), Failing(), nn.Linear(5, 2)),
    }
    model = seeded(models[case.given["scene"]](), seed).double()
    return model, numbers(seed + 1, case.given["rows"], 3, dtype=torch.float64)


def weighed(output: torch.Tensor) -> torch.Tensor:
    """Return a loss to which each number of the output adds something else."""
    weights = torch.arange(1, output.numel() + 1, dtype=output.dtype).reshape(output.shape) / output.numel()
    return (weights * output.square()).sum()


# A model to log.


class Scorer(nn.Module):
    """Three linear layers, one of them inside another module, and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.norm = nn.Linear(3, 6), nn.LayerNorm(6)
        self.middle = nn.Sequential(nn.Tanh(), nn.Linear(6, 5), nn.Sigmoid())
        self.leave = nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.leave(self.middle(self.norm(self.enter(x))))
        return result


def logged(case: Case) -> tuple[nn.Module, list[Batch]]:
    """Return a model and batches of uneven sizes."""
    seed = case.given["seed"]
    sizes = case.given["sizes"]
    batches = [(numbers(seed + n, size, 3).double(), numbers(seed - n, size, 2).double()) for n, size in sizes]
    return seeded(Scorer(), seed).double(), batches


# Images to explain.


def scorer_of_images(case: Case) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """Return a model in training mode with one layer in evaluation mode, images with two channels, and labels."""
    seed, count = case.given["seed"], case.given["count"]
    model = nn.Sequential(
        *(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Tanh(), nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4).eval(), nn.Tanh()),
        *(nn.Flatten(), nn.Dropout(0.5 if case.given["drops"] else 0.0), nn.Linear(24, 4)),
    )
    seeded(model, seed)
    for offset, buffer in enumerate(model.buffers()):
        if buffer.dim():
            buffer.copy_(numbers(seed + 50 + offset, *buffer.shape).abs())
    if case.given["frozen"]:
        model.requires_grad_(False)
    labels = torch.tensor([2, 0, 3, 1, 2][:count])
    return model.double(), numbers(seed + 1, count, 2, 5, 6, dtype=torch.float64), labels


# Deep nets. In each patient one block, or all, keeps the gradient back.


class Cut(nn.Module):
    """Passes numbers on and no gradient."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach()


BLOCKS, WIDTH = 9, 24


def _healthy(seed: int, activation: type[nn.Module]) -> nn.Sequential:
    generator = torch.Generator().manual_seed(seed)
    gain = 2**0.5 if activation is nn.ReLU else 1.1
    blocks = []
    for _ in range(BLOCKS):
        linear = nn.Linear(WIDTH, WIDTH)
        with torch.no_grad():
            linear.weight.copy_(torch.randn(WIDTH, WIDTH, generator=generator) * gain / WIDTH**0.5)
            linear.bias.fill_(0.2 if activation is nn.ReLU else 0.0)
        blocks.append(nn.Sequential(linear, activation()))
    return nn.Sequential(*blocks)


def patients() -> dict[str, nn.Sequential]:
    """Return five deep nets of nine blocks, the same on every call."""
    nets = {name: _healthy(ord(name), nn.ReLU if name in "BD" else nn.Tanh) for name in "ABCD"}
    nets["E"] = _healthy(5, nn.Sigmoid)
    with torch.no_grad():
        nets["A"][3][0].bias.copy_(torch.tensor([6.0, -6.0] * (WIDTH // 2)))  # type: ignore[index]
        nets["B"][5][0].bias.fill_(-60)  # type: ignore[index]
        nets["C"][6][0].weight.mul_(0.001)  # type: ignore[index]
    nets["D"][2].insert(0, Cut())  # type: ignore[operator]
    return nets


def batch_for_patients() -> torch.Tensor:
    """Return the batch on which the patients are examined."""
    return torch.randn(32, WIDTH, generator=torch.Generator().manual_seed(3))


def score_of_patients(output: torch.Tensor) -> torch.Tensor:
    """Return the number whose gradient goes through a patient."""
    return (output * torch.linspace(-1, 1, WIDTH)).sum()


# A deep stack to start anew.


def stacked(case: Case) -> tuple[nn.Sequential, torch.Tensor]:
    """Return linear layers with activations between them as PyTorch starts them, and a batch."""
    seed, kind = case.given["seed"], {"relu": nn.ReLU, "tanh": nn.Tanh}[case.given["activation"]]
    torch.manual_seed(seed)
    widths = case.given["widths"]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), kind()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 2)), numbers(seed + 1, 20, widths[0])
