"""What an answer to `train_chunks` is tried on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.batches import Batch
from course_utils.checks.scenes.numbers import numbers, seeded
from course_utils.checks.scenes.zoo import in_groups, leave_gradients, lived_in

State = tuple[torch.Tensor, torch.Tensor]
T = TypeVar("T")


def groups(chunks: Sequence[T], together: int) -> list[Sequence[T]]:
    """Return the chunks in groups of so many, the last one perhaps smaller."""
    return [chunks[first : first + together] for first in range(0, len(chunks), together)]


def recurrent(case: Case) -> tuple[nn.LSTM, nn.Linear, torch.optim.Optimizer, list[Batch], State]:
    """Return an LSTM, a readout, an optimizer for both, chunks of one sequence, and a state to start from.

    All parameters hold gradients from before.
    """
    seed, lengths = case.given["seed"], case.given["lengths"]
    lstm, readout = nn.LSTM(3, 5, batch_first=True), nn.Linear(5, 2)
    seeded(lstm, seed)
    seeded(readout, seed + 1)
    leave_gradients(lstm, seed)
    leave_gradients(readout, seed + 1)
    lived_in(lstm, readout)
    optimizer = torch.optim.SGD(in_groups([*lstm.parameters(), *readout.parameters()]), lr=0.3)
    chunks = [(numbers(seed + n, 2, t, 3), numbers(seed - n, 2, t, 2)) for n, t in enumerate(lengths, 1)]
    chunks[-1][1].mul_(case.given["far"])  # of the last chunk, so that no other starts from far off
    return lstm, readout, optimizer, chunks, (numbers(seed + 50, 1, 2, 5), numbers(seed + 51, 1, 2, 5))
