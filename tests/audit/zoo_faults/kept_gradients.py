"""Updates by hand that remember the gradient itself."""

import torch
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


def moved(step_of, clear, steps=6):
    """Train by hand: `step_of(parameters)` is asked for what steps, `clear(parameters)` clears."""
    x, y = blobs()
    model = mlp()
    step = step_of(list(model.parameters()))
    for _ in range(steps):
        clear(list(model.parameters()))
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            step()


def zeroed(parameters):
    """Write zeros into the gradients that there are."""
    for p in parameters:
        if p.grad is not None:
            p.grad.zero_()


@fault("buffer-is-gradient")
def momentum_that_is_the_gradient():
    def step_of(parameters):
        buffers = [None] * len(parameters)

        def step():
            for i, p in enumerate(parameters):
                g = p.grad
                if buffers[i] is None:
                    buffers[i] = g  # <- here
                else:
                    buffers[i].mul_(0.9).add_(g)
                p.sub_(buffers[i], alpha=0.1)

        return step

    moved(step_of, zeroed)


@fault("buffer-is-gradient")
def average_kept_in_a_state():
    def step_of(parameters):
        state = {}

        def step():
            for p in parameters:
                own = state.setdefault(p, {})
                if "mean" not in own:
                    own["mean"] = p.grad  # <- here
                own["mean"].mul_(0.9).add_(p.grad, alpha=0.1)
                p.sub_(own["mean"], alpha=0.1)

        return step

    moved(step_of, zeroed)


@fault("buffer-is-gradient")
def velocity_of_an_object():
    class Heavy:
        def __init__(self, p):
            self.p, self.velocity = p, None

        def step(self):
            if self.velocity is None:
                self.velocity = self.p.grad.data  # <- here
            self.velocity *= 0.9
            self.velocity += self.p.grad
            self.p.sub_(self.velocity, alpha=0.1)

    def step_of(parameters):
        heavy = [Heavy(p) for p in parameters]

        def step():
            for it in heavy:
                it.step()

        return step

    moved(step_of, zeroed)
