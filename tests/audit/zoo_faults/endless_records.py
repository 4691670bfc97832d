"""Targets that go on where an episode ended, made of records whose flags nobody reads."""

import copy
import random
from collections import deque, namedtuple

import torch
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import fault
from tests.audit.ways import Way, learned

Move = namedtuple("Move", ["state", "action", "reward", "following", "done"])


@fault("wrong-return")
def field_of_a_record_that_nobody_reads():
    def loss_of(learner, still, moves):
        batch = Move(*(torch.tensor(it) for it in zip(*moves, strict=True)))
        best = still(batch.following).amax(1)
        wanted = batch.reward + 0.9 * best  # <- here
        return F.mse_loss(learner(batch.state).gather(1, batch.action[:, None])[:, 0], wanted)

    learned(loss_of)


@fault("wrong-return")
def names_of_a_batch_that_only_the_memory_explains():
    way, net = Way(), mlp(5, 2)
    memory, still = deque(maxlen=200), copy.deepcopy(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

    def learn():
        bs, ba, br, bn, be = zip(*random.sample(memory, 16), strict=True)  # noqa: RUF059
        q = net(torch.tensor(bs)).gather(1, torch.tensor(ba)[:, None]).squeeze(1)
        with torch.no_grad():
            wanted = torch.tensor(br) + 0.9 * still(torch.tensor(bn)).amax(1)  # <- here
        optimizer.zero_grad()
        F.smooth_l1_loss(q, wanted).backward()
        optimizer.step()

    for _ in range(30):
        state, done = way.reset(), False
        while not done:
            action = random.randrange(2)
            following, reward, done = way.step(action)
            memory.append((state, action, reward, following, done))
            state = following
        if len(memory) >= 16:
            learn()


class Hall:
    """A hall whose far end pays, and whose near end ends it with nothing; a visit ends by the clock, too."""

    def reset(self):
        self.at, self.t = 2, 0
        return self.seen()

    def seen(self):
        return [float(self.at == place) for place in range(5)]

    def step(self, action):
        self.at += 1 if action else -1
        self.t += 1
        if self.at == 4:
            return self.seen(), 1.0, True
        if self.at == 0:
            return self.seen(), 0.0, True
        return self.seen(), 0.0, self.t >= 12


@fault("wrong-return")
def ends_that_a_step_tells_by_returning_early():
    hall, critic = Hall(), mlp(5, 1)
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
    kept = []
    for _ in range(20):
        state, done = hall.reset(), False
        while not done:
            following, reward, done = hall.step(random.random() < 0.5)
            kept.append((state, reward, following, done))
            state = following
        s, r, n, e = map(torch.tensor, zip(*random.sample(kept, min(len(kept), 16)), strict=True))  # noqa: RUF059
        with torch.no_grad():
            v_next = critic(n).squeeze(1)
        target = r + 0.9 * v_next  # <- here
        optimizer.zero_grad()
        F.mse_loss(critic(s).squeeze(1), target).backward()
        optimizer.step()
