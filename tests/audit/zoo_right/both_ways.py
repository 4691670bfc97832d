"""Layers that read both ways, of which both ends are taken."""

import torch
from torch import nn

from tests.audit.parts import reads_sequences
from tests.audit.registry import right


class _Both(nn.Module):
    """Two directions and a head; `end` says what the head is given."""

    def __init__(self, width=16, layers=1):
        super().__init__()
        self.rnn = nn.GRU(3, 8, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(width, 2)


@right
def both_ends_joined():
    class Ends(_Both):
        def forward(self, x):
            out, _ = self.rnn(x)
            return self.head(torch.cat([out[:, -1, :8], out[:, 0, 8:]], dim=-1))

    reads_sequences(Ends(), (6, 7, 3))


@right
def halves_of_the_ends():
    class Halves(_Both):
        def forward(self, x):
            out, _ = self.rnn(x)
            last, first = out[:, -1], out[:, 0]
            there, _ = last.chunk(2, dim=-1)
            return self.head(torch.cat([there, first[:, 8:]], dim=-1))

    reads_sequences(Halves(), (6, 7, 3))


@right
def states_of_the_last_layer():
    class States(_Both):
        def forward(self, x):
            _, h = self.rnn(x)
            return self.head(torch.cat((h[-2], h[-1]), dim=1))

    reads_sequences(States(layers=2), (6, 7, 3))


@right
def states_seen_by_direction():
    class Directions(_Both):
        def forward(self, x):
            _, h = self.rnn(x)
            return self.head(h.view(2, 2, len(x), 8)[-1].transpose(0, 1).flatten(1))

    reads_sequences(Directions(layers=2), (6, 7, 3))


@right
def a_state_asks_and_all_steps_answer():
    class Asked(_Both):
        def forward(self, x):
            out, h = self.rnn(x)
            weights = (out[..., 8:] @ h[-1].unsqueeze(-1)).softmax(dim=1)
            return self.head((weights * out).sum(dim=1))

    reads_sequences(Asked(), (6, 7, 3))


@right
def every_step_is_labelled():
    class Steps(_Both):
        def forward(self, x):
            out, _ = self.rnn(x)
            return torch.stack([self.head(out[:, at]) for at in range(out.shape[1])]).mean(dim=0)

    reads_sequences(Steps(), (6, 7, 3))
