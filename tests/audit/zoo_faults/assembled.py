"""Models that are put together wrongly, or act in the wrong mode."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, encoded, trained
from tests.audit.registry import fault


@fault("eval-in-train")
def dropout_around_another_call():
    class Careless(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(4, 8), nn.Linear(8, 3)

        def forward(self, x):
            x = F.dropout(torch.relu(self.inner(x)), p=0.4)  # <- here
            return self.outer(x)

    trained(Careless(), evaluate=True)


@fault("eval-in-train")
def attention_that_always_drops():
    class Attending(nn.Module):
        def __init__(self, drop=0.1):
            super().__init__()
            self.drop = drop
            self.mix, self.outer = nn.Linear(2, 6), nn.Linear(4, 3)

        def forward(self, x):
            query, key, value = self.mix(x.reshape(-1, 2, 2)).chunk(3, dim=-1)
            mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=self.drop)  # <- here
            return self.outer(mixed.flatten(1))

    trained(Attending(), evaluate=True)


@fault("eval-in-train")
def a_dropout_layer_that_is_made_for_each_call():
    class Making(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(4, 8), nn.Linear(8, 3)

        def forward(self, x):
            drop = nn.Dropout(0.3)
            x = self.inner(x).relu()
            return self.outer(drop(x))  # <- here

    trained(Making(), evaluate=True)


@fault("eval-in-train")
def dropouts_in_a_plain_dict():
    class Holding(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(4, 8), nn.Linear(8, 3)
            self.drops = {"inner": nn.Dropout(0.2)}  # <- here

        def forward(self, x):
            return self.outer(self.drops["inner"](self.inner(x).relu()))

    trained(Holding(), evaluate=True)


@fault("one-member")
def an_ensemble_of_one():
    class Ensemble(nn.Module):
        def __init__(self, count=3):
            super().__init__()
            self.members = nn.ModuleList(
                [nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))] * count  # <- here
            )

        def forward(self, x):
            return torch.stack([member(x) for member in self.members]).mean(0)

    trained(Ensemble())


@fault("one-member")
def blocks_that_a_function_makes_once():
    def block(width):
        layers = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        return layers

    class Deep(nn.Module):
        def __init__(self, depth=4):
            super().__init__()
            self.blocks, self.outer = nn.ModuleList([block(4)] * depth), nn.Linear(4, 3)  # <- here

        def forward(self, x):
            for one in self.blocks:
                x = x + one(x)
            return self.outer(x)

    trained(Deep())


@fault("one-member")
def clones_that_are_no_copies():
    def clones(layer, count):
        return nn.ModuleList([layer for _ in range(count)])  # <- here

    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.outer = clones(nn.Linear(4, 4), 3), nn.Linear(4, 3)

        def forward(self, x):
            for layer in self.layers:
                x = x + layer(x).tanh()
            return self.outer(x)

    trained(Deep())


@fault("one-member")
def one_head_for_all_tasks():
    class Tasks(nn.Module):
        def __init__(self, *names):
            super().__init__()
            self.body = nn.Linear(4, 8)
            self.heads = nn.ModuleDict(dict.fromkeys(names, nn.Linear(8, 3)))  # <- here

        def forward(self, x):
            x = self.body(x).relu()
            return sum(head(x) for head in self.heads.values())

    trained(Tasks("first", "second"))


@fault("units-alike")
def all_weights_are_one_number():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    for layer in (model[0], model[2]):
        nn.init.zeros_(layer.bias)
        nn.init.constant_(layer.weight, 0.1)  # <- here
    trained(model)


@fault("units-alike")
def filters_of_ones():
    class Filters(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Conv1d(1, 6, 3, padding=1), nn.Linear(24, 3)
            self.apply(self.reset)

        def reset(self, part):
            if isinstance(part, nn.Conv1d | nn.Linear):
                part.bias.data.zero_()
                part.weight.data.fill_(0.02)  # <- here

        def forward(self, x):
            return self.outer(self.inner(x[:, None]).relu().flatten(1))

    trained(Filters())


@fault("padding-row")
def a_table_that_is_filled_again():
    embedding, outer = nn.Embedding(12, 4, padding_idx=0), nn.Linear(4, 3)
    for p in embedding.parameters():
        nn.init.uniform_(p, -0.1, 0.1)  # <- here
    optimizer = torch.optim.Adam([*embedding.parameters(), *outer.parameters()])
    for _ in range(5):
        tokens, y = torch.randint(1, 12, (8, 5)), torch.randint(3, (8,))
        tokens[:4, 3:] = 0
        optimizer.zero_grad()
        F.cross_entropy(outer(embedding(tokens).mean(1)), y).backward()
        optimizer.step()


@fault("mask-after-softmax")
def attention_masked_after_the_softmax():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x, mask):
            weights = (self.query(x) @ self.key(x).mT / 2).softmax(dim=-1)
            weights = weights.masked_fill(~mask[:, None], 0.0)  # <- here
            return (weights @ x).sum(1)

    _attend(Attention())


@fault("mask-after-softmax")
def a_pooling_whose_weights_lose_some():
    class Pooling(nn.Module):
        def __init__(self):
            super().__init__()
            self.score = nn.Linear(4, 1)

        def forward(self, x, mask):
            weights = torch.softmax(self.score(x).squeeze(-1), dim=-1) * mask.float()  # <- here
            return (weights[..., None] * x).sum(dim=1)

    _attend(Pooling())


def _attend(attention):
    outer = nn.Linear(4, 3)
    optimizer = torch.optim.Adam([*attention.parameters(), *outer.parameters()])
    for _ in range(5):
        x, y = torch.randn(8, 5, 4), torch.randint(3, (8,))
        mask = torch.arange(5) < torch.randint(2, 6, (8, 1))
        optimizer.zero_grad()
        F.cross_entropy(outer(attention(x, mask)), y).backward()
        optimizer.step()


@fault("variance-as-std")
def noise_times_the_variance():
    def sample(mean, logvar):
        std = torch.exp(logvar)  # <- here
        return mean + std * torch.randn_like(std)

    def divergence(mean, logvar):
        return -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1).mean()

    encoded(sample, divergence)


@fault("variance-as-std")
def a_divergence_that_takes_the_standard_deviation_for_the_variance():
    def sample(mean, log_sigma):
        return mean + torch.randn(mean.shape) * log_sigma.exp()  # <- here

    def divergence(mean, log_sigma):
        return (0.5 * (mean**2 + log_sigma.exp() - log_sigma - 1)).sum() / len(mean)

    encoded(sample, divergence)


@fault("no-nonlinearity")
def layers_with_nothing_between():
    class Straight(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(4, 8), nn.Linear(8, 3)

        def forward(self, x):
            x = self.inner(x)  # <- here
            return self.outer(x)

    trained(Straight())


@fault("no-nonlinearity")
def layers_with_dropout_alone_between():
    model = nn.Sequential(
        nn.Linear(4, 16),  # <- here
        nn.Dropout(0.1),
        nn.Linear(16, 3),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        x, y = blobs(8)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("added-to-itself")
def a_residual_that_is_taken_too_late():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            x = self.layer(x).relu()
            skip = x
            return x + skip  # <- here

    trained(nn.Sequential(Block(), nn.Linear(4, 3)))


@fault("added-to-itself")
def a_residual_that_was_overwritten_in_place():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.act = nn.Linear(4, 4), nn.ReLU(inplace=True)

        def forward(self, x):
            x = self.layer(x)
            before = x
            x = self.act(x)
            return x + before  # <- here

    trained(nn.Sequential(Block(), nn.Linear(4, 3)))


@fault("no-effect", "no-nonlinearity")
def an_activation_that_is_called_for_nobody():
    class Forgetting(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.act, self.outer = nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)

        def forward(self, x):
            x = self.inner(x)
            self.act(x)  # <- here
            return self.outer(x)

    trained(Forgetting())
