"""Terms of a loss that weigh nothing for a while, or are switched off."""

import torch
from torch.nn import functional as F

from tests.audit.coders import learned
from tests.audit.parts import blobs, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.zero_weights import divergence, error


@right
def warm_up_that_grows_from_zero():
    done = 0

    def weight_at(step, warmup):
        return min(1.0, step / warmup)

    def loss_of(decoded, x, mean, logvar):
        nonlocal done
        weight = weight_at(done, 100)
        done += 1
        return error(decoded, x) + weight * divergence(mean, logvar)

    learned(loss_of, steps=9)


@right
def warm_up_in_steps_that_begin():
    done = 0

    def loss_of(decoded, x, mean, logvar):
        nonlocal done
        warm = min(done // 3, 1)
        done += 1
        return error(decoded, x) + warm * divergence(mean, logvar)

    learned(loss_of, steps=9)


@right
def term_that_is_switched_off():
    beta = 0.0

    def loss_of(decoded, x, mean, logvar):
        return error(decoded, x) + beta * divergence(mean, logvar)

    learned(loss_of, steps=9)


@right
def second_half_of_a_training_that_has_another_term():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        phase = step // 5
        scores = model(x)
        loss = F.cross_entropy(scores, y) + phase * 1e-3 * scores.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def penalty_after_a_delay_that_says_zero():
    def weight_at(step):
        return 0 if step < 1000 else min(1, step // 1000)

    done = 0

    def loss_of(decoded, x, mean, logvar):
        nonlocal done
        done += 1
        return error(decoded, x) + weight_at(done) * divergence(mean, logvar)

    learned(loss_of, steps=9)
