"""Right loops that write over parameters, share them, or move them in unusual steps."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


def _fit(model, x, y, loss=F.mse_loss, rate=1e-3, steps=8):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()


class Bounded(nn.Linear):
    """A layer that keeps its rows within a ball, as networks for signals of the brain do."""

    def forward(self, x):
        self.weight.data = torch.renorm(self.weight.data, p=2, dim=0, maxnorm=0.5)
        return F.linear(x, self.weight, self.bias)


@right
def rows_kept_in_a_ball_by_the_forward():
    _fit(nn.Sequential(Bounded(16, 8), nn.ReLU(), nn.Linear(8, 1)), *lines(32, 16))


class Positive(nn.Linear):
    def forward(self, x):
        with torch.no_grad():
            self.weight.clamp_(min=0)
        return F.linear(x, self.weight, self.bias)


@right
def weights_kept_positive_by_the_forward():
    _fit(Positive(16, 1), *lines(32, 16))


@right
def signs_with_a_straight_through_gradient():
    class Signs(nn.Linear):
        def forward(self, x):
            signs = self.weight.sign() * self.weight.abs().mean()
            return F.linear(x, self.weight + (signs - self.weight).detach(), self.bias)

    _fit(nn.Sequential(Signs(16, 8), nn.ReLU(), nn.Linear(8, 1)), *lines(32, 16))


@right
def pruned_weights_masked_after_each_step():
    x, y = lines(32, 16)
    model = nn.Linear(16, 16)
    keep = (torch.rand(16, 16) > 0.7).float()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(8):
        optimizer.zero_grad()
        F.mse_loss(model(x).sum(1, keepdim=True), y).backward()
        optimizer.step()
        model.weight.data *= keep


@right
def critic_clipped_after_its_step():
    critic, maker = mlp(4, 1), mlp(2, 4)
    first = torch.optim.RMSprop(critic.parameters(), lr=5e-4)
    second = torch.optim.RMSprop(maker.parameters(), lr=5e-4)
    for _ in range(5):
        gap = critic(maker(torch.randn(8, 2)).detach()).mean() - critic(torch.randn(8, 4)).mean()
        first.zero_grad()
        gap.backward()
        first.step()
        for p in critic.parameters():
            p.data = p.data.clamp(-0.01, 0.01)
        second.zero_grad()
        (-critic(maker(torch.randn(8, 2))).mean()).backward()
        second.step()


@right
def new_rows_learn_without_decay():
    table = nn.Embedding(12, 4)
    table.weight.register_hook(lambda grad: grad * (torch.arange(12) >= 8).float()[:, None])
    head = nn.Linear(4, 2)
    optimizer = torch.optim.Adam([*table.parameters(), *head.parameters()], lr=0.01)
    for _ in range(6):
        rows = torch.randint(0, 12, (16,))
        optimizer.zero_grad()
        F.cross_entropy(head(table(rows)), (rows > 8).long()).backward()
        optimizer.step()


@right
def rows_not_drawn_shrink_by_decay():
    table, head = nn.Embedding(40, 4), nn.Linear(4, 2)
    table.weight.register_hook(lambda grad: grad * 0.5)
    optimizer = torch.optim.AdamW([*table.parameters(), *head.parameters()], lr=0.01)
    for _ in range(6):
        rows = torch.randint(0, 8, (16,))
        optimizer.zero_grad()
        F.cross_entropy(head(table(rows)), rows % 2).backward()
        nn.utils.clip_grad_norm_(table.parameters(), 0.01)
        table.weight.grad.mul_(2)
        optimizer.step()


@right
def frozen_rows_written_back():
    x, y = blobs()
    model = mlp()
    first = model[0].weight[:2].detach().clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    keep = torch.ones(8, 1)
    keep[:2] = 0
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        model[0].weight.grad.mul_(keep)
        optimizer.step()
        with torch.no_grad():
            model[0].weight[:2] = first


@right
def encoder_of_an_autoencoder_and_of_an_adversary():
    encoder, decoder, judge = mlp(4, 2), mlp(2, 4), mlp(2, 1)
    whole = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    fool = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    tell = torch.optim.Adam(judge.parameters(), lr=1e-3)
    for _ in range(6):
        x = torch.randn(16, 4)
        whole.zero_grad()
        F.mse_loss(decoder(encoder(x)), x).backward()
        whole.step()
        tell.zero_grad()
        (F.softplus(judge(encoder(x).detach())) + F.softplus(-judge(torch.randn(16, 2)))).mean().backward()
        tell.step()
        fool.zero_grad()
        F.softplus(-judge(encoder(x))).mean().backward()
        fool.step()


@right
def head_first_then_everything_in_turns():
    x, y = blobs()
    model = mlp()
    head = torch.optim.SGD(model[2].parameters(), lr=0.05)
    everything = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(12):
        optimizer = everything if step % 2 else head
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def picture_made_at_a_large_rate():
    judge = mlp().requires_grad_(False)
    picture = nn.Parameter(0.01 * torch.randn(2, 4))
    optimizer = torch.optim.Adam([picture], lr=0.5)
    for _ in range(14):
        optimizer.zero_grad()
        F.cross_entropy(judge(picture), torch.tensor([0, 1])).backward()
        optimizer.step()


@right
def warm_up_from_almost_nothing():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1e-8, total_iters=8)
    for _ in range(14):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        schedule.step()
