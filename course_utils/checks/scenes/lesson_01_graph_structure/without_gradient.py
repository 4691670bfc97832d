"""What an answer to `without_gradient` is tried on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.zoo import deep


def model_and_loss(case: Case) -> tuple[nn.Module, torch.Tensor]:
    """Return the model of a case and a loss that it gave."""
    model, forward = MODELS[case.given["model"]]()
    loss = forward(case.given["x"].tensor())
    for name in case.given.get("frozen after", ()):
        model.get_parameter(name).requires_grad_(False)
    for name in case.given.get("unfrozen after", ()):
        model.get_parameter(name).requires_grad_()
    for name in case.given.get("has grad", ()):
        parameter = model.get_parameter(name)
        parameter.grad = torch.ones_like(parameter)
    for name in case.given.get("zeroed", ()):  # as `zero_grad(set_to_none=False)` leaves it
        parameter = model.get_parameter(name)
        parameter.grad = torch.zeros_like(parameter)
    return model, loss


def earlier_loss(model: nn.Module) -> torch.Tensor:
    """Return another loss of a model, one that reaches all parameters but the first."""
    return torch.stack([parameter.square().sum() for parameter in [*model.parameters()][1:]]).sum()


Forward = Callable[[torch.Tensor], torch.Tensor]


def _plain_network() -> tuple[nn.Module, Forward]:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    return model, lambda x: model(x).square().mean()


def _frozen_middle() -> tuple[nn.Module, Forward]:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    model[2].requires_grad_(False)
    return model, lambda x: model(x).square().mean()


def _cut_and_unused() -> tuple[nn.Module, Forward]:
    names = {"stem": (3, 4), "body": (4, 4), "head": (4, 2), "spare": (4, 2)}
    model = nn.ModuleDict({name: nn.Linear(*sizes) for name, sizes in names.items()})
    model.register_parameter("scale", nn.Parameter(torch.ones(())))  # the model's own: no dot in its name

    def forward(x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(model["stem"](x)).detach()
        return torch.square(model["head"](torch.tanh(model["body"](hidden)))).mean()

    return model, forward


def _cut_on_one_path() -> tuple[nn.Module, Forward]:
    model = nn.ModuleDict({"stem": nn.Linear(3, 4), "gate": nn.Linear(4, 4), "head": nn.Linear(4, 2)})
    model["head"].bias.requires_grad_(False)

    def forward(x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(model["stem"](x))
        return torch.square(model["head"](hidden * torch.sigmoid(model["gate"](hidden)).detach())).mean()

    return model, forward


def _tied() -> tuple[nn.Module, Forward]:
    model = nn.ModuleDict({"encode": nn.Linear(3, 4), "decode": nn.Linear(4, 3), "probe": nn.Linear(3, 4)})
    shared = nn.Linear(4, 4)
    model["first"], model["again"] = shared, nn.Linear(4, 4)
    model["again"].weight = shared.weight
    model["spare"], model["spare_too"] = nn.Linear(2, 2), nn.Linear(2, 2)
    model["spare_too"].weight = model["spare"].weight

    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.square(model["decode"](torch.tanh(model["again"](torch.tanh(model["encode"](x)))))).mean()

    return model, forward


def _switched_off() -> tuple[nn.Module, Forward]:
    model = nn.ModuleDict({"main": nn.Linear(3, 2), "extra": nn.Linear(3, 2)})

    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.square(model["main"](x).square().mean() + 0.0 * model["extra"](x)).mean()

    return model, forward


def _no_grad() -> tuple[nn.Module, Forward]:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

    model[0].bias.requires_grad_(False)

    def forward(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return torch.square(model(x)).mean()

    return model, forward


def _unrolled() -> tuple[nn.Module, Forward]:
    model = nn.ModuleDict({"cell": nn.LSTMCell(3, 3), "head": nn.Linear(3, 1), "start": nn.Linear(3, 3)})

    def forward(x: torch.Tensor) -> torch.Tensor:
        hidden = memory = torch.zeros(len(x), 3)
        for _ in range(16):  # an even number: who tells by turns what is reached takes it back
            hidden, memory = model["cell"](x, (hidden, memory))
        return torch.square(model["head"](hidden)).mean()

    return model, forward


def _doubled() -> tuple[nn.Module, Forward]:
    """More than ten layers, of which as texts "10.bias" comes before "2.bias"."""
    model = nn.ModuleList(nn.Linear(3, 2) for _ in range(12))

    def forward(x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = model[0](x).mean()
        for _ in range(40):
            out = out + out
        return out

    return model, forward


def _chained() -> tuple[nn.Module, Forward]:
    model = nn.ModuleDict({"main": nn.Linear(3, 2), "spare": nn.Linear(3, 2)})

    def forward(x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = model["main"](x).mean()
        for _ in range(3_500):
            out = out.neg()
        return out

    return model, forward


def _equal_numbers() -> tuple[nn.Module, Forward]:
    model = nn.ModuleDict({"norm": nn.LayerNorm(3), "spare_norm": nn.LayerNorm(3), "head": nn.Linear(3, 2)})
    model["spare"] = nn.Linear(2, 3)
    return model, lambda x: model["head"](model["norm"](x)).square().mean()


def _one_memory() -> tuple[nn.Module, Forward]:
    """Two parameters in one memory, which are two: what reaches one does not reach the other."""
    model = nn.ModuleDict({"main": nn.Linear(3, 4), "part": nn.Linear(3, 2)})
    model["part"].register_parameter("weight", nn.Parameter(model["main"].get_parameter("weight").data[:2]))
    return model, lambda x: model["main"](x).square().mean()


def _without_numbers() -> tuple[nn.Module, Forward]:
    """Parameters that hold no number, as layers of width 0 have them: one is used, one is not."""
    model = nn.ModuleDict({"main": nn.Linear(3, 2), "spare": nn.Linear(3, 2)})
    model["main"].bias.requires_grad_(False)
    model.register_parameter("used", nn.Parameter(torch.zeros(0, 4)))
    model.register_parameter("unused", nn.Parameter(torch.zeros(0)))
    return model, lambda x: torch.cat([model["main"](x).flatten(), model.get_parameter("used").flatten()]).mean()


def _with_buffers() -> tuple[nn.Module, Forward]:
    model = nn.ModuleDict({"stem": nn.Linear(3, 4), "norm": nn.BatchNorm1d(4), "head": nn.Linear(4, 2)})
    model["spare"], model["inner"] = nn.Linear(2, 3), deep(nn.Linear(2, 2))
    model["norm"].eval()
    return model, lambda x: model["head"](model["norm"](model["stem"](x))).square().mean()


def _layer_twice() -> tuple[nn.Module, Forward]:
    layer = nn.Linear(3, 3).requires_grad_(False)
    model = nn.Sequential(layer, nn.Linear(3, 3), layer)
    return model, lambda x: model(x).square().mean()


MODELS: dict[str, Callable[[], tuple[nn.Module, Forward]]] = {
    "plain": _plain_network,
    "frozen middle": _frozen_middle,
    "cut and unused": _cut_and_unused,
    "cut on one path": _cut_on_one_path,
    "tied": _tied,
    "switched off": _switched_off,
    "no grad": _no_grad,
    "unrolled": _unrolled,
    "doubled": _doubled,
    "chained": _chained,
    "equal numbers": _equal_numbers,
    "one memory": _one_memory,
    "without numbers": _without_numbers,
    "with buffers": _with_buffers,
    "layer twice": _layer_twice,
}
