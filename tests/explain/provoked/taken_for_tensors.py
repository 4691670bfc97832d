"""Tuples, lists, arrays, numbers and None where only a tensor does; views in a tuple; a checkpoint told nothing."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tests.explain.provoked import case


@case("not-a-tensor", "`out` is a tuple of 2", "the state after the last one", "out, state = lstm(torch.rand(2, 4, 3))")
def result_of_an_lstm_averaged():
    lstm = nn.LSTM(3, 5)
    out = lstm(torch.rand(2, 4, 3))
    return out.mean()  # raised here


@case("not-a-tensor", "`out` is a tuple of 2", "out, state = gru(torch.rand(4, 3))")
def result_of_a_gru_subtracted():
    gru = nn.GRU(3, 5)
    out = gru(torch.rand(4, 3))
    return (out - torch.zeros(4, 5)).pow(2).mean()  # raised here


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x):
        return self.first(x), self.second(x)


@case("not-a-tensor", "`pred` is a tuple of 2", "`model` returns several", "pred[0]", certain=False)
def two_heads_in_a_loss():
    model = TwoHeads()
    pred = model(torch.rand(4, 3))
    return F.cross_entropy(pred, torch.zeros(4, dtype=torch.long))  # raised here


class Forgets(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        self.layer(x)


@case("not-a-tensor", "`pred` is None", "`forward` has no return")
def forward_that_returns_nothing_squared():
    model = Forgets()
    pred = model(torch.rand(4, 3))
    return pred.pow(2).mean()  # raised here


@case("not-a-tensor", "`pred` is None", "`forward` has no return")
def forward_that_returns_nothing_in_a_loss():
    model = Forgets()
    pred = model(torch.rand(4, 3))
    return F.mse_loss(pred, torch.zeros(4, 2))  # raised here


@case("not-a-tensor", "`losses` is a list of 3", "torch.stack(losses)")
def sum_of_a_list():
    losses = [torch.rand(2, requires_grad=True).sum() for _ in range(3)]
    return losses.sum()  # raised here


@case("not-a-tensor", "torch.return_types.max", "best[0]", certain=False)
def best_scores_with_their_places():
    scores = torch.rand(3, 4)
    best = torch.max(scores, 1)
    return best.float()  # raised here


@case("not-a-tensor", "array of NumPy's", "leave out .numpy()")
def array_in_a_loss():
    scores = torch.rand(3, requires_grad=True)
    shown = scores.detach().numpy()
    return shown.pow(2).sum()  # raised here


@case("not-a-tensor", "plain Python number", "the number itself")
def number_asked_for_its_number():
    total = 0.0
    for _ in range(2):
        total += torch.rand(1).item()
    return total.item()  # raised here


@case("not-a-tensor", "`loss.item()` made it one", "keep the tensor")
def number_asked_for_its_mean():
    loss = torch.rand(1, requires_grad=True)
    shown = loss.item()
    return shown.mean()  # raised here


@case("view-of-several-in-place", "an element of `rows`", "[it.clone() for it in rows]")
def one_of_a_tuple_of_views_written():
    x = torch.ones(2, 3, requires_grad=True)
    rows = x.unbind(0)
    rows[0].add_(1)  # raised here


@case("checkpoint-inputs", "that is not told otherwise", "use_reentrant=False", certain=False)
def checkpoint_that_was_told_nothing():
    layer = nn.Linear(3, 3)
    out = checkpoint(layer, torch.rand(2, 3))  # checkpointed here
    out.sum().backward()  # raised here


@case("not-a-tensor", "`out` is a tuple of 2", "out, state = gru(torch.rand(4, 3))")
def result_of_a_gru_subtracted_from_targets():
    gru = nn.GRU(3, 5)
    out = gru(torch.rand(4, 3))
    return (torch.zeros(4, 5) - out).pow(2).mean()  # raised here
