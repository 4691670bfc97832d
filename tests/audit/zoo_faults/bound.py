"""Names that are bound for nobody, and generators with nothing left in them."""

import torch
from torch.func import functional_call
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault


@fault("no-effect")
def optimizer_of_ones_own_that_moves_names():
    class Signs(torch.optim.Optimizer):
        """Moves each weight by the rate, against the sign of its gradient."""

        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for weight in group["params"]:
                    if weight.grad is not None:
                        weight = weight - group["lr"] * weight.grad.sign()  # <- here

    x, y = blobs()
    model = mlp()
    optimizer = Signs(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def error_with(model, weights, x, y):
    return F.mse_loss(functional_call(model, weights, (x,)), y)


def one_step_on(model, weights, x, y):
    slopes = torch.autograd.grad(error_with(model, weights, x, y), list(weights.values()), create_graph=True)
    return {name: it - 0.1 * slope for (name, it), slope in zip(weights.items(), slopes, strict=True)}


@fault("no-effect", "needless-create-graph")
def adapted_weights_that_the_outer_loss_leaves_out():
    x, y = lines()
    model = mlp(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        weights = dict(model.named_parameters())
        fast = one_step_on(model, weights, x[:8], y[:8])  # noqa: F841 # <- here
        outer = error_with(model, weights, x[8:], y[8:])
        optimizer.zero_grad()
        outer.backward()
        optimizer.step()


@fault("no-effect")
def penalty_over_what_the_optimizer_used_up():
    x, y = blobs()
    model = mlp()
    weights = model.parameters()  # <- here
    optimizer = torch.optim.SGD(weights, lr=0.1)
    for _ in range(6):
        loss = F.cross_entropy(model(x), y) + 0.01 * sum(it.abs().sum() for it in weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("no-effect")
def descent_of_a_class_of_ones_own_that_binds_a_name():
    class Descent:
        def __init__(self, weights):
            self.weights = list(weights)

        def step(self):
            with torch.no_grad():
                for weight in self.weights:
                    if weight.grad is not None:
                        weight = weight - 0.1 * weight.grad  # <- here

        def zero_grad(self):
            for weight in self.weights:
                weight.grad = None

    x, y = blobs()
    model = mlp()
    descent = Descent(model.parameters())
    for _ in range(6):
        descent.zero_grad()
        F.cross_entropy(model(x), y).backward()
        descent.step()
