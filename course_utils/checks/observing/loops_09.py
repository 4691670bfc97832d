"""What lesson 09's answers are tried on: small models to train, and how a loop is watched from outside."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from course_utils.checks.data import Array, Case, Observation, plain
from course_utils.checks.observing.models import numbers, seeded
from course_utils.checks.observing.traces import hooks_on, parts_of
from course_utils.checks.observing.watch import engine_passes
from course_utils.graph.alive import Graphs
from course_utils.graph.saved import saved

Batch = tuple[torch.Tensor, ...]
Optimizer = torch.optim.Optimizer

RATE = 0.1


class Batches:
    """Batches for one loop after the other, as a DataLoader has them: no list, no indexing."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.all = list(batches)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)


def double(seed: int, *shape: int) -> torch.Tensor:
    """Return float64 numbers, none near zero."""
    return numbers(seed, *shape, dtype=torch.float64)


def regression(case: Case) -> list[Batch]:
    """Return batches of uneven sizes: 4 numbers in, 3 out."""
    seed = case.given["seed"]
    return [(double(seed + n, size, 4), double(seed - n, size, 3)) for n, size in enumerate(case.given["sizes"], 1)]


def classes(case: Case) -> list[Batch]:
    """Return batches of uneven sizes: 4 numbers in, one of 3 classes out."""
    seed = case.given["seed"]
    return [
        (double(seed + n, size, 4), (torch.arange(size) * (n + 1) + n) % 3)
        for n, size in enumerate(case.given["sizes"])
    ]


def network(case: Case, scale: float = 0.5) -> nn.Sequential:
    """Return a small network for these batches, in float64.

    With `oddities` a bias is frozen, one parameter is no part of the result, one has two names, and there is a buffer.
    """
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    if case.given.get("oddities"):
        model.register_parameter("spare", nn.Parameter(torch.ones(3, dtype=torch.float64)))
        model.register_parameter("again", cast(nn.Parameter, model[2].weight))
        model.register_buffer("count", torch.full((2,), 5.0, dtype=torch.float64))
        model[0].bias.requires_grad_(False)
    seeded(model, case.given["seed"], scale)
    return model


class Headed(nn.Module):
    """A body, and a head that may be replaced."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 5), nn.Tanh())
        self.head = nn.Linear(5, 2)
        seeded(self.double(), seed)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.body(inputs))
        return result


def new_head(case: Case) -> nn.Linear:
    """Return the head to put in place."""
    head = nn.Linear(5, 3).double()
    seeded(head, case.given["seed"] + 50)
    return head


class Masked(nn.Module):
    """Two layers. What happens between them is the loop's business."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.last = nn.Linear(5, 3)
        seeded(self.double(), seed)


def masked(case: Case) -> list[Batch]:
    """Return batches with a mask for the 5 hidden numbers in the middle."""
    masks = torch.tensor([[1.0, 0.0, 2.0, 0.5, 1.5], [0.0, 1.5, 0.5, 2.0, 0.0]], dtype=torch.float64)
    return [
        (inputs, masks[torch.arange(len(inputs)) % 2] * (1 + n / 10), targets)
        for n, (inputs, targets) in enumerate(regression(case))
    ]


def backbone_and_head(case: Case) -> tuple[nn.Sequential, nn.Linear, Optimizer]:
    """Return a pretrained backbone, a new head, and one optimizer for both. Gradients of an earlier pass are left."""
    seed = case.given["seed"]
    backbone = nn.Sequential(nn.Dropout(0.3), nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh()).double()
    seeded(backbone, seed)
    head = new_head(case)
    for module in (backbone, head):
        for offset, parameter in enumerate(module.parameters()):
            parameter.grad = double(seed + 70 + offset, *parameter.shape)
    with torch.no_grad():
        for offset, name in enumerate(("running_mean", "running_var")):
            backbone[2].get_buffer(name).copy_(double(seed + 90 + offset, 5).abs())
    parameters = [*backbone.parameters(), *head.parameters()]
    return backbone, head, torch.optim.SGD(parameters, lr=RATE, momentum=0.9, weight_decay=0.1)


class Warm(nn.Module):
    """Behaves differently in training, as dropout and batch norm do, but without chance. It counts what it sees."""

    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.seen.add_(1)
            return inputs * 1.4
        return inputs


def warm_network(case: Case) -> nn.Sequential:
    """Return a network with a layer that has two modes."""
    model = nn.Sequential(nn.Linear(4, 5), Warm(), nn.Tanh(), nn.Linear(5, 3)).double()
    seeded(model, case.given["seed"])
    return model


def sgd(model: nn.Module, rate: float = RATE) -> Optimizer:
    """Return plain gradient descent for a model."""
    return torch.optim.SGD(model.parameters(), lr=rate)


def watched(
    run: Callable[[], Any], modules: Iterable[nn.Module], batches: Iterable[Batch], optimizer: Optimizer | None = None
) -> Observation:
    """Run a loop. Return what came back, what became of the modules, and what was seen at every forward and step."""
    modules = list(modules)
    settings = settings_of(optimizer)
    flags = flags_of(modules)
    graphs = Graphs()
    runs: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []

    def forward(module: nn.Module, given: Any, result: Any) -> None:
        if isinstance(result, torch.Tensor):
            graphs.add(result)
            training = all(part.training for part in module.modules())
            runs.append({"training": training, "recorded": result.requires_grad, "shape": list(result.shape)})

    latest: list[torch.Tensor] = []  # from the last recorded operation of a module until the next step

    def remember(module: nn.Module, given: Any, result: Any) -> None:
        if isinstance(result, torch.Tensor) and result.requires_grad:
            latest[:] = [result]

    def step(*given: Any) -> None:
        rates = [group["lr"] for group in given[0].param_groups]
        held = any(entry.state == "held" for entry in saved(*latest))
        latest.clear()
        steps.append({"rate": plain(rates[0]), "held": held})

    handles = [module.register_forward_hook(forward) for module in modules]
    handles += [part.register_forward_hook(remember) for module in modules for part in module.modules()]
    # Where the loop makes its own optimizer, all optimizers are watched.
    on_step = register_optimizer_step_pre_hook if optimizer is None else optimizer.register_step_pre_hook
    handles.append(on_step(step))
    data = [tensor for batch in batches for tensor in batch]
    before = [Array.of(tensor) for tensor in data]
    trainable = [it for module in modules for it in module.parameters() if it.requires_grad]
    try:
        with engine_passes(*trainable) as passes:
            returned = run()
            session = session_changes()
    finally:
        for handle in handles:
            handle.remove()
        latest.clear()
    return {
        "returned": plain(returned),
        "graphs": graphs.alive(),
        "passes": len(passes),
        "runs": runs,
        "steps": steps,
        "same data": [Array.of(tensor) for tensor in data] == before,
        "parameters": [_named(module.named_parameters()) for module in modules],
        "buffers": [_named(module.named_buffers()) for module in modules],
        "training": [part.training for module in modules for part in module.modules()],
        "hooks": hooks_on(*parts_of(*modules), ours=(forward, remember)),  # a copy carries ours
        "session": session,
        "flags": [mine == it for mine, it in zip(flags_of(modules), flags, strict=True)],
        "settings": settings_of(optimizer) == settings,
        "rate": plain(optimizer.param_groups[0]["lr"]) if optimizer is not None else None,
    }


def session_changes() -> list[str]:
    """Name the settings of PyTorch that are not as a check begins with them."""
    odd = {
        "the gradient mode is off": not torch.is_grad_enabled(),
        "anomaly mode is on": torch.is_anomaly_enabled(),
        "the default dtype is another": torch.get_default_dtype() is not torch.float32,
    }
    return [text for text, is_odd in odd.items() if is_odd]


def flags_of(modules: Iterable[nn.Module]) -> list[dict[str, bool]]:
    """Return which parameters require a gradient, by name, for each module."""
    return [{name: it.requires_grad for name, it in module.named_parameters()} for module in modules]


def settings_of(optimizer: Optimizer | None) -> list[Any]:
    """Return what an optimizer holds and how it steps. The rate is left out: a scheduler may change it."""
    return [
        {key: [id(it) for it in value] if key == "params" else value for key, value in group.items() if key != "lr"}
        for group in (optimizer.param_groups if optimizer is not None else ())
    ]


def _named(tensors: Iterable[tuple[str, torch.Tensor]]) -> dict[str, Any]:
    return {name: plain(tensor) for name, tensor in tensors}


# For finding what is wrong with a step.


class Patient(nn.Module):
    """Three layers. The scenes break different ones."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.middle = nn.Linear(5, 5)
        self.last = nn.Linear(5, 3)
        seeded(self.double(), seed)


def patient(case: Case) -> tuple[Patient, Optimizer, Callable[[], None]]:
    """Return the case's model, its optimizer, and a function that runs one training step."""
    seed, scene = case.given["seed"], case.given["scene"]
    model = Patient(seed)
    inputs, targets = double(seed + 1, 6, 4), double(seed + 2, 6, 3)
    held = copy.deepcopy(model) if scene == "a copy is held" else model
    parameters = [parameter for name, parameter in held.named_parameters() if not scene.startswith("left out: " + name)]
    optimizer: Optimizer = torch.optim.SGD(parameters, lr=RATE, momentum=0.9)
    if scene == "two groups":
        groups: list[dict[str, Any]] = [{"params": parameters[:2]}, {"params": parameters[2:], "lr": RATE / 2}]
        optimizer = torch.optim.SGD(groups, lr=RATE)
    skips = scene in ("skipped", "stale", "cleared at the end")
    if scene == "replaced":
        model.last = nn.Linear(5, 3).double()
        seeded(model.last, seed + 9)
    if scene == "tied":
        model.middle.weight = model.first.weight = nn.Parameter(double(seed + 8, 5, 5))
        inputs = double(seed + 1, 6, 5)
        optimizer = sgd(model)
    if scene in ("frozen", "frozen and moving", "frozen, not held"):
        model.first.requires_grad_(False)
    if scene == "frozen, not held":
        optimizer = torch.optim.SGD(parameters[2:], lr=RATE)
    if scene in ("stale", "frozen and moving"):
        layer = model.middle if scene == "stale" else model.first
        layer.weight.grad = double(seed + 3, *layer.weight.shape)

    def step() -> None:
        if scene not in ("stale", "frozen and moving", "cleared at the end"):
            optimizer.zero_grad()
        hidden = model.first(inputs).tanh()
        if not skips:
            hidden = model.middle(hidden).tanh()
        if scene == "raises":
            hidden = hidden[:, :2]
        if scene == "rounded":
            hidden = hidden.round()
        result = model.last(hidden)
        loss = (result - targets).pow(2).mean()
        if scene in ("root", "root, hidden"):
            loss = loss + (model.middle.bias - model.middle.bias.detach()).sqrt().sum()
        loss.backward()
        if scene == "root, hidden":
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad.nan_to_num_(0.0, 0.0, 0.0)
        optimizer.step()
        if scene == "cleared at the end":
            optimizer.zero_grad()

    return model, optimizer, step
