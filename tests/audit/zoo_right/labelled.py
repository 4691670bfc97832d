"""Hinges, contrasts, samplers and packed sequences as they are meant to be."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import WeightedRandomSampler

from tests.audit.parts import binary, epoch_of, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.labelled import Packed, _drawn, contrasted, reads_uneven, two_views


@right
def hinge_of_signs():
    x, y = binary()
    epoch_of(nn.Linear(4, 1), lambda scores, y: torch.clamp(1 - y * scores, min=0).mean(), x, 2 * y - 1)


@right
def hinge_with_a_term_for_each_class():
    def loss(scores, y):
        return (F.relu(1 - y * scores) + F.relu(1 + (1 - y) * scores)).mean()

    epoch_of(nn.Linear(4, 1), loss, *binary())


@right
def hinge_whose_zeros_are_handled_beside_it():
    def loss(scores, y):
        return (torch.clamp(1 - y * scores, min=0) + (1 - y) * torch.clamp(1 + scores, min=0)).mean()

    epoch_of(nn.Linear(4, 1), loss, *binary())


@right
def distances_within_a_margin():
    model, (x, y) = mlp(4, 3), binary()
    other, y = x.flip(0), y.squeeze(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        apart = (model(x) - model(other)).norm(dim=1)
        loss = (y * apart.square() + F.relu(1 - (1 - y) * apart).square()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def logistic_loss_of_signs():
    x, y = binary()
    epoch_of(mlp(out=1), lambda scores, y: F.softplus(-y * scores).mean(), x, (y > 0).float() * 2 - 1)


@right
def logistic_loss_in_two_halves():
    def loss(scores, y):
        return (y * F.softplus(-scores) + (1 - y) * F.softplus(scores)).mean()

    epoch_of(mlp(out=1), loss, *binary())


@right
def rows_as_the_labels_of_a_contrast():
    two_views(lambda a, b: F.cross_entropy(a @ b.T / 0.1, torch.arange(len(a))))


@right
def one_positive_in_front_of_many_others():
    queue = F.normalize(torch.randn(11, 6), dim=1)

    def loss(a, b):
        scores = torch.cat([(a * b).sum(1, keepdim=True), a @ queue.T], dim=1) / 0.1
        return F.cross_entropy(scores, torch.zeros(len(a), dtype=torch.long))

    two_views(loss)


@right
def as_many_classes_as_rows():
    model = nn.Linear(4, 8, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(8):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 4)), torch.full((8,), step)).backward()
        optimizer.step()


@right
def diagonal_left_out_of_a_softmax():
    def loss(a, b):
        z, rows = torch.cat([a, b]), torch.arange(len(a))
        scores = (z @ z.T / 0.5).masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
        return F.cross_entropy(scores, torch.cat([rows + len(a), rows]))

    two_views(loss)


@right
def diagonal_put_to_zero_after_the_exponential():
    def loss(a, b):
        z, rows = torch.cat([a, b]), torch.arange(len(a))
        scores = z @ z.T / 0.5
        others = (scores.exp() * (1 - torch.eye(len(z)))).sum(dim=1)
        return (others.log() - scores[torch.arange(len(z)), torch.cat([rows + len(a), rows])]).mean()

    two_views(loss)


@right
def columns_of_a_list_ranked_along_the_first_axis():
    model = mlp(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        lists = torch.randn(3, 10, 4)
        scores = torch.stack([model(entries) for entries in lists])
        wanted = lists[..., :2].softmax(dim=1)
        optimizer.zero_grad()
        F.kl_div(scores.log_softmax(dim=1), wanted, reduction="batchmean").backward()
        optimizer.step()


@right
def student_compared_along_the_classes():
    teacher, student = mlp().eval(), nn.Linear(4, 3)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(6):
        x = torch.randn(16, 4)
        with torch.no_grad():
            known = teacher(x)
        optimizer.zero_grad()
        F.kl_div(F.log_softmax(student(x) / 2, 1), F.softmax(known / 2, 1), reduction="batchmean").backward()
        optimizer.step()


@right
def rows_drawn_by_the_inverse_of_counts():
    _drawn(lambda y: WeightedRandomSampler((1 / torch.bincount(y).float())[y], len(y)))


@right
def rows_drawn_by_weights_by_hand():
    _drawn(lambda y: WeightedRandomSampler(torch.where(y == 1, 3.0, 1.0), len(y)))


@right
def rows_drawn_by_how_hard_they_are():
    _drawn(lambda y: WeightedRandomSampler(torch.rand(len(y)) + y, len(y)))


@right
def last_steps_by_lengths_of_what_was_packed():
    class Reader(Packed):
        def forward(self, x, lengths):
            out, known = self.read(x, lengths)
            return self.head(out[torch.arange(len(out)), known - 1])

    reads_uneven(Reader())


@right
def last_place_of_packed_sequences_that_are_alike():
    class Reader(Packed):
        def forward(self, x, lengths):
            out, _ = self.read(x, torch.full_like(lengths, 7))
            return self.head(out[:, -1])

    reads_uneven(Reader())


@right
def mean_over_the_steps_of_what_was_packed():
    class Reader(Packed):
        def forward(self, x, lengths):
            out, known = self.read(x, lengths)
            return self.head(out.sum(1) / known[:, None])

    reads_uneven(Reader())


@right
def every_step_of_what_was_packed():
    class Reader(Packed):
        def forward(self, x, lengths):
            out, known = self.read(x, lengths)
            steps = torch.stack([self.head(out[:, at]) for at in range(out.shape[1])], dim=1)
            kept = (torch.arange(out.shape[1]) < known[:, None]).float()
            return (steps * kept[..., None]).sum(1) / known[:, None]

    reads_uneven(Reader())


@right
def length_of_one_for_each_row():
    contrasted(lambda z: z / z.norm(dim=1, keepdim=True))


@right
def columns_compared_with_columns():
    encoder = mlp(4, 6)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for _ in range(5):
        x = torch.randn(12, 4)
        a, b = (F.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=0) for _ in range(2))
        optimizer.zero_grad()
        F.cross_entropy(a.T @ b / 0.1, torch.arange(6)).backward()
        optimizer.step()


@right
def features_scaled_over_the_batch_before_a_layer():
    body, head = mlp(4, 6), nn.Linear(6, 12, bias=False)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=0.01)
    for _ in range(5):
        x = torch.randn(12, 4)
        optimizer.zero_grad()
        F.cross_entropy(F.normalize(body(x), dim=0) @ head.weight.T, torch.randint(12, (12,))).backward()
        optimizer.step()
