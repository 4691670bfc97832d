"""Terms of a loss whose weight never leaves 0."""

import torch
from torch.nn import functional as F

from tests.audit.coders import learned
from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


def divergence(mean, logvar):
    """The divergence of a code from a standard normal, averaged over rows."""
    return -0.5 * (1 + logvar - mean.square() - logvar.exp()).sum(dim=1).mean()


def error(decoded, x):
    """The error of a row, averaged over rows."""
    return F.mse_loss(decoded, x, reduction="none").sum(dim=1).mean()


@fault("weight-of-zero")
def warm_up_by_a_function_that_keeps_whole_numbers():
    done = 0

    def weight_at(step, warmup):
        return min(1, step // warmup)  # <- here

    def loss_of(decoded, x, mean, logvar):
        nonlocal done
        done += 1
        return error(decoded, x) + weight_at(done, 100) * divergence(mean, logvar)

    learned(loss_of)


@fault("weight-of-zero")
def annealing_that_is_cast_to_an_integer():
    done = 0

    def loss_of(decoded, x, mean, logvar):
        nonlocal done
        done += 1
        annealed = int(done / 50)  # <- here
        return error(decoded, x) + annealed * divergence(mean, logvar)

    learned(loss_of)


@fault("weight-of-zero")
def ramp_kept_by_an_object():
    class Mixed:
        done, ramp = 0, 0

        def __call__(self, decoded, x, mean, logvar):
            self.done += 1
            self.ramp = min(self.done // 30, 1)  # <- here
            kl = self.ramp * divergence(mean, logvar)
            return error(decoded, x) + kl

    learned(Mixed())


@fault("weight-of-zero")
def penalty_whose_warm_up_never_begins():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(8):
        scores = model(x)
        penalty = sum(p.abs().sum() for p in model.parameters())
        loss = F.cross_entropy(scores, y) + min(step // 100, 1) * penalty  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
