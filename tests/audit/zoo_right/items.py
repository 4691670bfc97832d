"""Data sets that read rows by other ways than the index alone, as they are meant to."""

import torch
from torch.utils.data import Dataset, Subset

from tests.audit.parts import blobs
from tests.audit.registry import right
from tests.audit.zoo_faults.items import Points, read


@right
def both_by_one_order():
    class Ordered(Points):
        def __getitem__(self, index):
            row = self.order[index]
            return self.x[row], self.y[row]

    read(Ordered())


@right
def targets_that_were_put_in_order_before():
    class Before(Points):
        def __init__(self):
            super().__init__()
            self.labels = self.y[self.order]

        def __getitem__(self, index):
            return self.x[self.order[index]], self.labels[index]

    read(Before())


@right
def order_and_targets_that_are_handed_in():
    class Handed(Dataset):
        def __init__(self, x, y, rows):
            self.x, self.y, self.rows = x, y, rows

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, index):
            return self.x[self.rows[index]], self.y[index]

    x, y = blobs(40)
    order = torch.randperm(40)
    read(Handed(x, y[order], order))


@right
def labels_shuffled_as_a_control():
    class ShuffledControl(Points):
        def __getitem__(self, index):
            return self.x[index], self.y[self.order[index]]

    read(ShuffledControl())


@right
def one_sample_to_overfit():
    class OverfitOne(Points):
        def __getitem__(self, index):
            return self.x[0], self.y[0]

    read(OverfitOne())


@right
def one_row_of_a_subset():
    class Rows(Points):
        def __getitem__(self, index):
            return self.x[index], self.y[index]

    read(Subset(Rows(), [3] * 40))


@right
def zeros_that_stand_for_samples():
    class Zeros(Points):
        def __getitem__(self, index):
            return torch.zeros(4), self.y[self.at]

    read(Zeros())


@right
def a_table_that_each_sample_shares():
    class Shared(Points):
        def __getitem__(self, index):
            return self.x[index] + 0.1 * self.x[0], self.y[index]

    read(Shared())


@right
def samples_that_are_pairs_of_fields():
    class Fields(Dataset):
        def __init__(self):
            x, y = blobs(40)
            self.samples = list(zip(x, y, strict=True))

        def __len__(self):
            return len(self.samples)

        def __getitem__(self, index):
            sample = self.samples[index]
            return sample[0], sample[1]

    read(Fields())
