"""Right modules that keep something beside their parameters."""

import io

import torch
from torch import nn

from tests.audit.parts import trained_behind
from tests.audit.registry import right


def train_and_save(first, also=lambda model: {}):
    model = trained_behind(first)
    torch.save({"model": model.state_dict(), **also(model)}, io.BytesIO())


@right
def running_mean_in_a_buffer():
    class Center(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))

        def forward(self, x):
            if self.training:
                self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
            return x - self.mean

    train_and_save(Center())


@right
def running_mean_that_is_saved_beside_the_state():
    class Center(nn.Module):
        def __init__(self):
            super().__init__()
            self.center = torch.zeros(2)

        def forward(self, x):
            self.center.lerp_(x.detach().mean(0), 0.1)
            return x - self.center

    train_and_save(Center(), lambda model: {"center": model[0].center})


@right
def running_mean_of_which_the_class_takes_care():
    class Center(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = torch.zeros(2)

        def get_extra_state(self):
            return self.mean

        def set_extra_state(self, state):
            self.mean = state

        def forward(self, x):
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
            return x - self.mean

    train_and_save(Center())


@right
def counts_and_last_results_that_are_only_looked_at():
    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.total, self.last = 0, 0.0, torch.zeros(2)
            self.carried, self.cell = torch.zeros(1, 2), nn.RNNCell(2, 2)

        def forward(self, x):
            self.calls += 1
            self.total += float(x.detach().sum())
            self.last = x.detach().mean(0)
            carried = self.cell(x[:1], self.carried)
            self.carried = carried.detach()
            return x + carried

        def report(self):
            return self.total / self.calls, self.last

    train_and_save(Watched())
