"""Right loops with sequences, odd losses, masks, and parameters that a forward sets."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tests.audit.parts import mlp
from tests.audit.registry import right

PAD = 0


@right
def counts_of_a_logarithm_and_of_a_rate():
    model = mlp(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(16, 4)
        seen = torch.poisson(x.exp().sum(1, keepdim=True))
        optimizer.zero_grad()
        rates = F.poisson_nll_loss(F.softplus(model(x)), seen, log_input=False)
        (F.poisson_nll_loss(model(x), seen) + rates).backward()
        optimizer.step()


@right
def pairs_marked_by_their_sign():
    model = mlp(4, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        a, b = torch.randn(16, 4), torch.randn(16, 4)
        optimizer.zero_grad()
        F.cosine_embedding_loss(model(a), model(b), (a.sum(1) * b.sum(1)).sign()).backward()
        optimizer.step()


@right
def state_cut_between_chunks():
    cell, head = nn.GRUCell(3, 8), nn.Linear(8, 2)
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=0.01)
    state = torch.zeros(5, 8)
    for _ in range(6):
        state = state.detach()
        for word in torch.randn(4, 5, 3):
            state = cell(word, state)
        optimizer.zero_grad()
        F.cross_entropy(head(state), torch.randint(2, (5,))).backward()
        optimizer.step()


@right
def a_loss_at_each_step_of_one():
    cell, head = nn.GRUCell(3, 8), nn.Linear(8, 2)
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=0.01)
    for _ in range(6):
        state, total = torch.zeros(5, 8), 0.0
        for word in torch.randn(4, 5, 3):
            state = cell(word, state.detach())
            total = total + F.cross_entropy(head(state), (word[:, 0] > 0).long())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()


@right
def last_of_the_time_on_either_axis():
    one, other, head = nn.GRU(3, 8), nn.LSTM(3, 8, batch_first=True), nn.Linear(16, 2)
    optimizer = torch.optim.Adam(nn.ModuleList([one, other, head]).parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(7, 5, 3)
        last = torch.cat([one(x)[0][-1], other(x.transpose(0, 1))[0][:, -1, :]], dim=1)
        optimizer.zero_grad()
        F.cross_entropy(head(last), (x[0, :, 0] > 0).long()).backward()
        optimizer.step()


@right
def padding_hidden():
    words = nn.Embedding(10, 8, padding_idx=PAD)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    head = nn.Linear(8, 2)
    optimizer = torch.optim.Adam(nn.ModuleList([words, layer, head]).parameters(), lr=0.01)
    for _ in range(4):
        tokens = torch.randint(1, 10, (6, 5))
        tokens[:, 3:] = PAD
        keep = tokens != PAD
        out = layer(words(tokens), src_key_padding_mask=~keep)
        mean = (out * keep.unsqueeze(-1)).sum(1) / keep.sum(1, keepdim=True)
        optimizer.zero_grad()
        F.cross_entropy(head(mean), torch.randint(2, (6,))).backward()
        optimizer.step()


@right
def scale_set_by_the_first_batch():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.head, self.ready = nn.Parameter(torch.ones(4)), nn.Linear(4, 2), False

        def forward(self, x):
            if not self.ready:
                self.scale.data = 1 / (x.std(0) + 1e-3)
                self.ready = True
            return self.head(x * self.scale)

    model = Scaled()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(8):
        x = torch.randn(16, 4)
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
        optimizer.step()


@right
def weights_kept_at_length_one():
    class Unit(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(2, 4))

        def forward(self, x):
            with torch.no_grad():
                length = self.weight.norm(dim=1, keepdim=True)
                self.weight.copy_(self.weight / length)
            return x @ self.weight.T

    model = Unit()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        x = torch.randn(16, 4)
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
        optimizer.step()


@right
def checkpoints_without_noise_or_with_its_state():
    noisy, plain = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.5)), nn.Sequential(nn.Linear(4, 16), nn.Tanh())
    first, head = nn.Linear(4, 4), nn.Linear(16, 2)
    optimizer = torch.optim.Adam(nn.ModuleList([noisy, plain, first, head]).parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(16, 4)
        h = checkpoint(noisy, first(x), use_reentrant=False)
        h = h + checkpoint(plain, first(x), use_reentrant=False, preserve_rng_state=False)
        optimizer.zero_grad()
        F.cross_entropy(head(h), (x[:, 0] > 0).long()).backward()
        optimizer.step()


@right
def curvature_of_a_smooth_network():
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.rand(12, 1, requires_grad=True)
        u = model(x)
        first = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        second = torch.autograd.grad(first.sum(), x, create_graph=True)[0]
        optimizer.zero_grad()
        ((second + u).square().mean() + model(torch.zeros(1, 1)).square().sum()).backward()
        optimizer.step()
