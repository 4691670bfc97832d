"""What a module measures while it trains, and does not save."""

import copy
import io

import torch
from torch import nn

from tests.audit.parts import trained_behind
from tests.audit.registry import fault


def train_and_save(first):
    """Train a model that begins with a part of one's own, save its state, and load that into a second one."""
    model = trained_behind(first)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    served = copy.deepcopy(model)
    served.load_state_dict(torch.load(file, weights_only=True))


@fault("not-saved")
def running_mean_changed_in_place_and_no_buffer():
    class Center(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = torch.zeros(2)  # <- here

        def forward(self, x):
            if self.training:
                with torch.no_grad():
                    self.mean.mul_(0.9).add_(0.1 * x.mean(0))
            return x - self.mean

    train_and_save(Center())


@fault("not-saved")
def running_range_bound_anew_in_a_method():
    class Range(nn.Module):
        def __init__(self):
            super().__init__()
            self.low, self.momentum = torch.zeros(2), 0.1
            self.high = torch.ones(2)  # <- here

        def watch(self, x):
            self.high = torch.maximum(self.high, x.detach().amax(0))

        def forward(self, x):
            self.watch(x)
            return (x - self.low) / (self.high - self.low)

    train_and_save(Range())


@fault("not-saved")
def buffer_that_is_not_persistent():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("size", torch.ones(()), persistent=False)  # <- here

        def forward(self, x):
            if self.training:
                self.size = 0.9 * self.size + 0.1 * x.detach().std()
            return x / self.size

    train_and_save(Scale())


@fault("not-saved")
def mean_kept_as_a_number():
    class Center(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = 0.0  # <- here

        def forward(self, x):
            if self.training:
                self.mean += 0.1 * (x.mean().item() - self.mean)
            return x - self.mean

    train_and_save(Center())
