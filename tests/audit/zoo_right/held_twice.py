"""Parts that two optimizers hold, and games whose sides are held apart."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import adversaries, mlp
from tests.audit.registry import right


@right
def decoder_alone_and_then_with_its_encoder():
    encoder, decoder = mlp(4, 2), mlp(2, 4)
    alone = torch.optim.Adam(decoder.parameters(), lr=2e-3)
    together = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    for _ in range(8):
        x = torch.randn(16, 4)
        code = encoder(x)
        alone.zero_grad()
        F.mse_loss(decoder(code.detach()), x).backward()
        alone.step()
        together.zero_grad()
        F.mse_loss(decoder(encoder(x)), x).backward()
        together.step()


@right
def each_side_of_a_game_by_its_own_optimizer():
    maker, judge = adversaries()
    for_judge = torch.optim.Adam(judge.parameters(), lr=2e-3)
    for_maker = torch.optim.Adam(maker.parameters(), lr=2e-3)
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


@right
def a_code_that_both_sides_keep_readable():
    class Judge(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.score, self.code = nn.Linear(4, 16), nn.Linear(16, 1), nn.Linear(16, 2)

        def forward(self, x):
            h = F.leaky_relu(self.body(x), 0.2)
            return self.score(h), self.code(h)

    maker, judge = adversaries()[0], Judge()
    for_judge = torch.optim.Adam(judge.parameters(), lr=2e-3)
    for_maker = torch.optim.Adam(maker.parameters(), lr=2e-3)
    for_code = torch.optim.Adam([*maker.parameters(), *judge.parameters()], lr=2e-3)
    loss = F.binary_cross_entropy_with_logits
    for _ in range(8):
        noise, kind = torch.randn(16, 3), torch.arange(16) % 2
        noise[:, 0] = kind.float()
        fake = maker(noise)
        for_judge.zero_grad()
        real = loss(judge(torch.randn(16, 4) + 1)[0], torch.ones(16, 1))
        (real + loss(judge(fake.detach())[0], torch.zeros(16, 1))).backward()
        for_judge.step()
        for_maker.zero_grad()
        loss(judge(fake)[0], torch.ones(16, 1)).backward()
        for_maker.step()
        for_code.zero_grad()
        F.cross_entropy(judge(maker(noise))[1], kind).backward()
        for_code.step()
