"""Games whose one side's optimizer holds the other side, too."""

import itertools

import torch
from torch.nn import functional as F

from tests.audit.parts import adversaries
from tests.audit.registry import fault


@fault("held-twice")
def generator_whose_optimizer_holds_the_discriminator():
    maker, judge = adversaries()
    for_judge = torch.optim.Adam(judge.parameters(), lr=2e-3)
    for_maker = torch.optim.Adam(itertools.chain(maker.parameters(), judge.parameters()), lr=2e-3)  # <- here
    loss = F.binary_cross_entropy_with_logits
    for _ in range(8):
        fake = maker(torch.randn(16, 3))
        for_judge.zero_grad()
        real = loss(judge(torch.randn(16, 4) + 1), torch.ones(16, 1))
        (real + loss(judge(fake.detach()), torch.zeros(16, 1))).backward()
        for_judge.step()
        for_maker.zero_grad()
        loss(judge(fake), torch.ones(16, 1)).backward()
        for_maker.step()


@fault("held-twice")
def critic_moved_by_the_optimizer_of_all():
    class Game:
        def __init__(self):
            self.maker, self.critic = adversaries()
            self.score = torch.optim.RMSprop(self.critic.parameters(), lr=5e-4)
            both = list(self.maker.parameters()) + list(self.critic.parameters())
            self.make = torch.optim.RMSprop(both, lr=5e-4)  # <- here

        def judge(self):
            for _ in range(2):
                fake = self.maker(torch.randn(16, 3)).detach()
                self.score.zero_grad()
                (self.critic(fake).mean() - self.critic(torch.randn(16, 4) + 1).mean()).backward()
                self.score.step()

        def produce(self):
            self.make.zero_grad()
            (-self.critic(self.maker(torch.randn(16, 3))).mean()).backward()
            self.make.step()

    game = Game()
    for _ in range(6):
        game.judge()
        game.produce()


@fault("held-twice")
def hinge_with_groups_for_both_sides():
    maker, judge = adversaries()
    groups = [{"params": maker.parameters()}, {"params": judge.parameters(), "lr": 1e-4}]
    for_maker = torch.optim.Adam(groups)  # <- here
    steps = {"judge": torch.optim.Adam(judge.parameters(), lr=2e-3), "maker": for_maker}
    for _ in range(6):
        made = maker(torch.randn(16, 3))
        steps["judge"].zero_grad()
        F.relu(1 - judge(torch.randn(16, 4) + 1)).mean().backward()
        F.relu(1 + judge(made.detach())).mean().backward()
        steps["judge"].step()
        steps["maker"].zero_grad()
        (-judge(made)).mean().backward()
        steps["maker"].step()
