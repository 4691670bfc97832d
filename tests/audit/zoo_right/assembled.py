"""Right models that look as if they were put together wrongly, or acted in the wrong mode."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, encoded, mlp, trained
from tests.audit.registry import right


class Sampled(nn.Module):
    """Drops whatever the mode, so that several calls show how sure it is."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.outer(F.dropout(torch.relu(self.inner(x)), 0.5))


@right
def dropout_asked_for_its_noise():
    model = trained(Sampled())
    x, _ = blobs(8)
    model.eval()
    with torch.no_grad():
        torch.stack([model(x).softmax(1) for _ in range(6)]).var(0)


@right
def dropouts_put_back_after_eval():
    model = trained(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)))
    x, _ = blobs(8)
    model.eval()
    model[2].train()
    with torch.no_grad():
        torch.stack([model(x).softmax(1) for _ in range(6)]).std(0)


@right
def dropout_that_is_told_the_mode_in_four_ways():
    class Told(nn.Module):
        def __init__(self, p=0.3):
            super().__init__()
            self.p, self.mix, self.outer, self.drop = p, nn.Linear(2, 6), nn.Linear(4, 3), nn.Dropout(p)
            self.more = [self.drop]

        def forward(self, x):
            p = self.p if self.training else 0.0
            query, key, value = self.mix(x.reshape(-1, 2, 2)).chunk(3, dim=-1)
            x = F.scaled_dot_product_attention(query, key, value, dropout_p=p).flatten(1)
            x = F.dropout(x, self.p, self.training)
            if self.training:
                x = F.dropout(x, 0.1)
            return self.outer(self.more[0](x))

    trained(Told(), evaluate=True)


@right
def weights_that_are_shared_by_all_layers():
    class Shared(nn.Module):
        def __init__(self, depth=3):
            super().__init__()
            layer = nn.Linear(4, 4)
            self.layers, self.outer = nn.ModuleList([layer] * depth), nn.Linear(4, 3)

        def forward(self, x):
            for layer in self.layers:
                x = x + layer(x).tanh()
            return self.outer(x)

    trained(Shared())


@right
def copies_and_lists_that_are_multiplied():
    def clones(layer, count):
        return nn.ModuleList([copy.deepcopy(layer) for _ in range(count)])

    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.outer = clones(nn.Linear(4, 4), 2), nn.Linear(4, 3)
            self.acts = nn.ModuleList([nn.ReLU()] * 2)
            self.sizes = [4] * 2

        def forward(self, x):
            for layer, act in zip(self.layers, self.acts, strict=True):
                x = act(layer(x))
            return self.outer(x)

    trained(Deep())


@right
def branches_whose_last_layers_begin_at_zero():
    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(4, 8), nn.Linear(8, 4)
            nn.init.zeros_(self.outer.weight)
            nn.init.zeros_(self.outer.bias)

        def forward(self, x):
            return x + self.outer(self.inner(x).tanh())

    last = nn.Linear(4, 3)
    nn.init.constant_(last.weight, 0.0)
    trained(nn.Sequential(Branch(), Branch(), last))


@right
def adapters_of_which_one_half_begins_at_zero():
    class Adapter(nn.Module):
        def __init__(self, base, rank=2):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.down, self.up = nn.Linear(4, rank, bias=False), nn.Linear(rank, 8, bias=False)
            nn.init.zeros_(self.up.weight)

        def forward(self, x):
            return self.base(x) + self.up(self.down(x))

    model = nn.Sequential(Adapter(nn.Linear(4, 8)), nn.ReLU(), nn.Linear(8, 3))
    trained(model)


@right
def one_number_for_one_layer_and_random_ones_for_the_next():
    model = mlp()
    nn.init.constant_(model[0].weight, 0.1)
    trained(model)


@right
def scores_of_two_equal_targets():
    model = nn.Linear(4, 2)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        x, _ = blobs(8)
        optimizer.zero_grad()
        F.mse_loss(model(x), x.sum(1, keepdim=True).expand(-1, 2)).backward()
        optimizer.step()


@right
def a_table_from_elsewhere_and_its_row_for_padding():
    embedding = nn.Embedding.from_pretrained(torch.randn(12, 4), freeze=False, padding_idx=0)
    outer = nn.Linear(4, 3)
    optimizer = torch.optim.Adam([*embedding.parameters(), *outer.parameters()])
    for _ in range(5):
        tokens, y = torch.randint(0, 12, (8, 5)), torch.randint(3, (8,))
        counted = (tokens != 0).float()[..., None]
        optimizer.zero_grad()
        F.cross_entropy(outer((embedding(tokens) * counted).sum(1)), y).backward()
        optimizer.step()


def _weigh(weights_of, values=4):
    score, outer = nn.Linear(4, 4), nn.Linear(values, 3)
    optimizer = torch.optim.Adam([*score.parameters(), *outer.parameters()])
    for _ in range(5):
        x, y = torch.randn(8, 5, 4), torch.randint(3, (8,))
        mask = (torch.arange(5) < torch.randint(2, 6, (8, 1)))[:, None]
        optimizer.zero_grad()
        F.cross_entropy(outer((weights_of(x @ score(x).mT, mask) @ x).sum(1)), y).backward()
        optimizer.step()


@right
def masked_before_the_softmax_and_after_it():
    _weigh(lambda scores, mask: scores.masked_fill(~mask, -1e9).softmax(-1).masked_fill(~mask, 0.0))


@right
def masked_after_the_softmax_and_divided_by_the_sum():
    def weights_of(scores, mask):
        weights = scores.softmax(-1) * mask
        return weights / weights.sum(-1, keepdim=True)

    _weigh(weights_of)


@right
def whole_rows_are_masked_after_the_softmax():
    _weigh(lambda scores, mask: scores.softmax(-1) * mask.mT)


@right
def weights_that_are_dropped_by_hand():
    _weigh(lambda scores, mask: scores.softmax(-1) * (torch.rand_like(scores) > 0.2) / 0.8)


@right
def the_two_best_of_four_experts():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.experts = nn.Linear(4, 4), nn.ModuleList([nn.Linear(4, 3) for _ in range(4)])

        def forward(self, x):
            shares = self.gate(x).softmax(-1)
            best = torch.zeros_like(shares).scatter(1, shares.topk(2).indices, 1.0)
            shares = shares * best
            return torch.bmm(shares[:, None], torch.stack([expert(x) for expert in self.experts], 1))[:, 0]

    trained(Experts())


@right
def experts_with_noise_in_the_choice_and_limited_seats():
    class Seated(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.experts = nn.Linear(4, 4), nn.ModuleList([nn.Linear(4, 3) for _ in range(4)])

        def forward(self, x):
            scores = self.gate(x)
            shares = scores.softmax(-1)
            chosen = F.one_hot((scores + torch.randn_like(scores)).topk(2).indices, 4).sum(1)
            shares = shares * (chosen * (chosen.cumsum(0) <= 5))
            return torch.einsum("be,beo->bo", shares, torch.stack([expert(x) for expert in self.experts], 1))

    trained(Seated(), size=16)


@right
def a_code_with_the_log_of_its_variance():
    encoded(
        lambda mean, logvar: mean + (logvar / 2).exp() * torch.randn_like(mean),
        lambda mean, logvar: -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1).mean(),
    )


@right
def a_code_with_the_log_of_its_standard_deviation():
    encoded(
        lambda mean, log_std: mean + log_std.exp() * torch.randn_like(mean),
        lambda mean, log_std: (0.5 * (mean**2 + torch.exp(2 * log_std)) - log_std - 0.5).sum(1).mean(),
    )


@right
def a_code_whose_standard_deviation_is_squared_in_the_loss():
    def divergence(mean, log_std):
        std = log_std.exp()
        return (0.5 * (mean**2 + std**2) - log_std - 0.5).sum(1).mean()

    encoded(lambda mean, log_std: mean + log_std.exp() * torch.randn_like(mean), divergence)


@right
def a_code_by_its_distribution():
    def normal(mean, log_std):
        return torch.distributions.Normal(mean, log_std.exp())

    encoded(
        lambda mean, log_std: normal(mean, log_std).rsample(),
        lambda mean, log_std: (
            torch.distributions.kl_divergence(normal(mean, log_std), torch.distributions.Normal(0.0, 1.0)).sum(1).mean()
        ),
    )


@right
def a_policy_with_an_entropy_in_place_of_a_divergence():
    encoded(
        lambda mean, log_std: mean + log_std.exp() * torch.randn_like(mean),
        lambda mean, log_std: 0.01 * (mean**2).mean() - 0.01 * log_std.mean(),
    )


@right
def a_bottleneck_between_two_layers():
    trained(nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 3)))


@right
def a_body_and_a_head_on_top_of_it():
    body = trained(mlp()).requires_grad_(False)
    trained(nn.Sequential(body, nn.Linear(3, 3)))


@right
def a_branch_that_is_empty_in_one_of_two_blocks():
    class Block(nn.Module):
        def __init__(self, *layers):
            super().__init__()
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            out = x
            for layer in self.layers:
                out = layer(out).relu()
            return out + x

    trained(nn.Sequential(nn.Linear(4, 4), Block(nn.Linear(4, 4)), Block(), nn.Linear(4, 3)))


@right
def a_tensor_that_is_doubled_on_purpose():
    class Double(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            x = self.inner(x)
            x = x + x
            return self.outer((x + x.flip(1)).relu())

    trained(Double())
