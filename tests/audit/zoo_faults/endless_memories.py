"""Targets that go on where an episode ended: the flag of its end is kept for nobody."""

import random
from collections import deque

import torch
from torch.nn import functional as F

from tests.audit.parts import mlp
from tests.audit.registry import fault
from tests.audit.ways import Way


@fault("wrong-return")
def memory_of_four_things():
    learner, still, memory, way, gamma = mlp(5, 2), mlp(5, 2), deque(maxlen=200), Way(), 0.9
    optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
    for _ in range(12):
        s, over = way.reset(), False
        while not over:
            a = random.randrange(2)
            s2, r, over = way.step(a)
            memory.append((s, a, r, s2))
            s = s2
            if len(memory) >= 16:
                bs, ba, br, bs2 = zip(*random.sample(memory, 16), strict=True)
                with torch.no_grad():
                    best = still(torch.tensor(bs2)).max(dim=1).values
                    goal = torch.tensor(br) + gamma * best  # <- here
                own = learner(torch.tensor(bs)).gather(1, torch.tensor(ba)[:, None]).squeeze(1)
                loss = F.mse_loss(own, goal)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


@fault("wrong-return")
def memory_that_a_method_samples():
    class Agent:
        def __init__(self):
            self.net, self.memory = mlp(5, 2), []
            self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)

        def learn(self, gamma=0.9):
            states, actions, rewards, following = zip(*random.sample(self.memory, 16), strict=True)
            with torch.no_grad():
                target = torch.tensor(rewards) + gamma * self.net(torch.tensor(following)).amax(1)  # <- here
            own = self.net(torch.tensor(states))[torch.arange(16), torch.tensor(actions)]
            self.optimizer.zero_grad()
            F.smooth_l1_loss(own, target).backward()
            self.optimizer.step()

    def played(agent, way):
        for _ in range(12):
            state = way.reset()
            while True:
                action = random.randrange(2)
                following, reward, terminated = way.step(action)
                agent.memory.append((state, action, reward, following))
                state = following
                if len(agent.memory) >= 16:
                    agent.learn()
                if terminated:
                    break

    played(Agent(), Way())


@fault("wrong-return")
def value_of_each_step_as_it_comes():
    critic, way = mlp(5, 1), Way()
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.05)
    for _ in range(6):
        now, fell = way.reset(), False
        while not fell:
            after, reward, fell = way.step(random.randrange(2))
            with torch.no_grad():
                wanted = reward + 0.9 * critic(torch.tensor(after))  # <- here
            loss = (critic(torch.tensor(now)) - wanted).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            now = after
