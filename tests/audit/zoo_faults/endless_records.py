"""Targets that go on where an episode ended, made of records whose flags nobody reads."""

from collections import namedtuple

import torch
from torch.nn import functional as F

from tests.audit.registry import fault
from tests.audit.ways import learned

Move = namedtuple("Move", ["state", "action", "reward", "following", "done"])


@fault("wrong-return")
def field_of_a_record_that_nobody_reads():
    def loss_of(learner, still, moves):
        batch = Move(*(torch.tensor(it) for it in zip(*moves, strict=True)))
        best = still(batch.following).amax(1)
        wanted = batch.reward + 0.9 * best  # <- here
        return F.mse_loss(learner(batch.state).gather(1, batch.action[:, None])[:, 0], wanted)

    learned(loss_of)
