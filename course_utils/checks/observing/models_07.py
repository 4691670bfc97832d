"""Models, batches and a watch over training loops for lesson 07. Every number comes from a seed, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.checks.data import Array, Case, Observation, Value, plain
from course_utils.checks.observing.batches import Batch
from course_utils.checks.observing.models import numbers, seeded
from course_utils.checks.observing.traces import hooks_on
from course_utils.graph.alive import Memory

FEATURES, CLASSES = 3, 4


class Classifier(nn.Module):
    """Two layers. The first one's bias is frozen, and the spare layer takes no part: its gradients stay None."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, 5)
        self.bend = nn.Tanh()
        self.last = nn.Linear(5, CLASSES)
        self.spare = nn.Linear(2, 3)
        self.first.bias.requires_grad_(False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.last(self.bend(self.first(inputs)))
        return scores


class Tied(nn.Module):
    """A matrix that is used twice, a frozen bias, and a spare layer that takes no part."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.empty(FEATURES, 5))
        self.head = nn.Linear(FEATURES, CLASSES)
        self.same = self.head  # a second name for the same layer
        self.spare = nn.Linear(2, 3)
        self.head.bias.requires_grad_(False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head((inputs @ self.mix).tanh() @ self.mix.t())
        return scores


class Images(nn.Module):
    """A convolution, a mean over positions, and a linear layer. Its class counts the runs, those of copies, too."""

    runs = 0

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv2d(2, 3, (2, 3))
        self.last = nn.Linear(3, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        Images.runs += 1
        scores: torch.Tensor = self.last(self.features(images).tanh().mean(dim=(-2, -1)))
        return scores


def classifier(seed: int) -> Classifier:
    """Return the classifier with numbers from a seed, in float64."""
    model = Classifier().double()
    seeded(model, seed, 0.8)
    return model


def batches_of(case: Case) -> list[Batch]:
    """Return one batch of inputs and targets for each of the case's sizes."""
    seed, sizes = case.given["seed"], case.given["sizes"]
    inputs = [2 * numbers(seed + 50 + n, size, FEATURES).double() for n, size in enumerate(sizes)]
    generator = torch.Generator().manual_seed(seed)
    return [(given, torch.randint(CLASSES, (len(given),), generator=generator)) for given in inputs]


def stale(model: nn.Module, case: Case) -> None:
    """Leave gradients of some earlier pass in the model, where the case asks for them: "all", or of what is used."""
    asked = case.given.get("stale")
    if asked:
        for offset, (name, parameter) in enumerate(model.named_parameters()):
            if asked == "all" or (parameter.requires_grad and "spare" not in name):
                parameter.grad = numbers(case.given["seed"] + 200 + offset, *parameter.shape).double()


def optimizer_of(model: nn.Module, case: Case) -> torch.optim.Optimizer:
    """Return SGD with the case's momentum and weight decay, over all parameters."""
    given = case.given
    return torch.optim.SGD(model.parameters(), lr=given["lr"], momentum=given["momentum"], weight_decay=given["decay"])


def scheduler_of(optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
    """Return a scheduler that takes the learning rate down by a factor at each of its steps."""
    return torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.6)


def image_batch(case: Case) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """Return the image model with a batch of images and targets."""
    seed, count = case.given["seed"], case.given["count"]
    model = Images().double()
    seeded(model, seed)
    generator = torch.Generator().manual_seed(seed)
    return model, numbers(seed + 9, count, 2, 4, 5).double(), torch.randint(CLASSES, (count,), generator=generator)


def tied(case: Case) -> Tied:
    """Return the model with a tied matrix."""
    model = Tied().double()
    seeded(model, case.given["seed"], 0.8)
    return model


def loss_of(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Return the mean loss over a batch."""
    return cross_entropy(model(batch[0]), batch[1])


class Reader:
    """Batches that can be read once, one after the other, and have no length: as from a file or a network."""

    def __init__(self, batches: list[Batch]) -> None:
        self.read = 0
        self._left = iter(batches)

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        batch = next(self._left)
        self.read += 1
        return batch


class Watch:
    """What happens to a model: each forward, each backward pass, each step, and saved numbers held in between."""

    def __init__(self, model: nn.Module, inside: nn.Module) -> None:
        self.model = model
        self.forwards: list[int] = []
        self.passes: set[int] = set()
        self.steps: list[dict[str, Any]] = []
        self.held = 0  # bytes of the hidden layer that were still held when the next forward or a step began
        self.ahead = 0  # batches that were read and not yet used
        self.reader: Reader | None = None
        self._hidden = Memory()
        self._given: list[tuple[torch.Tensor, Value]] = []
        # Lambdas, because copying a model copies bound methods with all that they are bound to.
        model.register_forward_pre_hook(lambda module, given: self._starts(given))
        model.register_forward_hook(lambda module, given, result: self._made(result))
        inside.register_forward_hook(lambda module, given, result: self._inside(result))
        self._before = self._flags()

    def step_of(self, optimizer: torch.optim.Optimizer) -> None:
        """Watch the steps of an optimizer, too."""
        optimizer.register_step_pre_hook(lambda *given: self._steps(optimizer))

    def batches(self, batches: list[Batch]) -> list[Batch]:
        """Watch whether batches stay as they are, and return them."""
        self._given = [(tensor, plain(tensor)) for batch in batches for tensor in batch]
        return batches

    def seen(self, returned: object) -> Observation:
        """Return all that was seen, with what the answer returned."""
        return {
            "returned": plain(returned),
            "forwards": self.forwards,
            "passes": len(self.passes),
            "steps": self.steps,
            "held": self.held,
            "ahead": self.ahead,
            "flags": self._flags() == self._before,
            "inputs": all(plain(tensor) == was and not tensor.requires_grad for tensor, was in self._given),
            "gradients": gradients(self.model),
            "parameters": {name: Array.of(parameter) for name, parameter in self.model.named_parameters()},
        }

    def _inside(self, result: Any) -> None:
        if _ordinary(result):
            self._hidden.add(result)

    def _starts(self, given: Any) -> None:
        self.held = max(self.held, self._hidden.alive())
        if self.reader is not None:
            self.ahead = max(self.ahead, self.reader.read - len(self.forwards))
        first = given[0] if given else None
        self.forwards.append(len(first) if isinstance(first, torch.Tensor) and first.dim() else -1)

    def _made(self, result: Any) -> None:
        if _ordinary(result) and result.grad_fn is not None:
            passes = self.passes
            result.grad_fn.register_prehook(lambda grads: passes.add(torch._C._current_graph_task_id()))

    def _steps(self, optimizer: torch.optim.Optimizer) -> None:
        self.held = max(self.held, self._hidden.alive())
        rate = float(optimizer.param_groups[0]["lr"])
        self.steps.append({"gradients": gradients(self.model), "rate": rate, "after": len(self.forwards)})

    def _flags(self) -> list[Any]:
        parameters = [(name, id(item), item.requires_grad) for name, item in self.model.named_parameters()]
        modules = [(module.training, hooks_on(module)) for module in self.model.modules()]
        modes = [torch.is_grad_enabled(), torch.get_rng_state().tolist()]
        return [parameters, modules, hooks_on(*self.model.parameters()), modes]


def _ordinary(value: object) -> bool:
    return type(value) is torch.Tensor and not torch._C._functorch.is_functorch_wrapped_tensor(value)


def gradients(model: nn.Module) -> dict[str, Any]:
    """Return what each parameter's .grad holds."""
    return {name: plain(parameter.grad) for name, parameter in model.named_parameters()}
