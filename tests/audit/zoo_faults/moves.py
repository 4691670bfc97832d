"""Parameters whose steps are lost, are not theirs, or are of the wrong size."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("overwritten")
def weights_on_a_grid_in_each_forward():
    class Grid(nn.Module):
        def __init__(self):
            super().__init__()
            self.kernel = nn.Parameter(0.3 * torch.randn(8, 16))
            self.head = nn.Linear(8, 3)

        def forward(self, x):
            with torch.no_grad():
                self.kernel.copy_((self.kernel * 8).round() / 8)  # <- here
            return self.head(F.relu(x @ self.kernel.t()))

    x, y = blobs(32, 16)
    model = Grid()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        for rows, labels in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()


@fault("overwritten")
def hook_that_makes_three_values():
    def ternary(layer, _):
        weight = layer.weight.data
        size = weight.abs().mean()
        layer.weight.data = torch.where(weight.abs() > size / 2, weight.sign() * size, 0.0)  # <- here

    x, y = lines(32, 16)
    model = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    model[0].register_forward_pre_hook(ternary)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(8):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@fault("rows-move")
def old_rows_kept_by_a_mask_on_the_gradient():
    table = nn.Parameter(torch.randn(10, 4))
    head = nn.Linear(4, 2)
    mask = torch.ones(10, 1)
    mask[:6] = 0
    optimizer = torch.optim.AdamW([table, *head.parameters()], lr=0.01)  # <- here
    y = torch.randint(2, (10,))
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(head(table), y).backward()
        table.grad.mul_(mask)
        optimizer.step()


@fault("rows-move")
def hook_set_after_some_steps_with_momentum():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    keep = torch.tensor([[0.0], [1.0], [1.0]])
    for step in range(9):
        if step == 3:
            model[2].weight.register_hook(lambda grad: grad * keep)  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def _adversaries():
    return nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 4)), mlp(4, 1)


@fault("held-twice")
def discriminator_that_holds_the_generator():
    maker, judge = _adversaries()
    for_judge = torch.optim.Adam([*judge.parameters(), *maker.parameters()], lr=2e-3)  # <- here
    for_maker = torch.optim.Adam(maker.parameters(), lr=2e-3)
    ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
    loss = F.binary_cross_entropy_with_logits
    for _ in range(8):
        fake = maker(torch.randn(16, 3))
        for_judge.zero_grad()
        (loss(judge(torch.randn(16, 4) + 1), ones) + loss(judge(fake), zeros)).backward()
        for_judge.step()
        for_maker.zero_grad()
        loss(judge(maker(torch.randn(16, 3))), ones).backward()
        for_maker.step()


@fault("held-twice")
def both_sides_of_a_game_by_one_module():
    class Game(nn.Module):
        def __init__(self):
            super().__init__()
            self.maker, self.judge = _adversaries()

    game = Game()
    score = torch.optim.RMSprop(game.parameters(), lr=5e-4)  # <- here
    make = torch.optim.RMSprop(game.maker.parameters(), lr=5e-4)
    for _ in range(6):
        for _ in range(2):
            gap = game.judge(game.maker(torch.randn(16, 3))).mean() - game.judge(torch.randn(16, 4) + 1).mean()
            score.zero_grad()
            gap.backward()
            score.step()
        make.zero_grad()
        (-game.judge(game.maker(torch.randn(16, 3))).mean()).backward()
        make.step()


@fault("rate-far-off")
def rate_that_was_meant_in_thousandths():
    x, y = lines(64)
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    rate = 1.0
    optimizer = torch.optim.AdamW(model.parameters(), rate)  # <- here
    for _ in range(12):
        for rows, wanted in batches(x, y, 16):
            optimizer.zero_grad()
            F.mse_loss(model(rows), wanted).backward()
            optimizer.step()


@fault("rate-far-off")
def rate_scaled_twice():
    x, y = blobs(32)
    model = mlp()
    rate = 1e-3 * 1e-3 * 1e-3
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)  # <- here
    for _ in range(12):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
