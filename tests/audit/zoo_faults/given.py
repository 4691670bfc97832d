"""Losses that are given what they cannot use: targets, weights, temperatures and sides the wrong way round."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp, play
from tests.audit.registry import fault


class Attention(nn.Module):
    """One head over short sequences, with what is made of its scores left open."""

    def __init__(self, weigh, width=16):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.weigh = weigh

    def forward(self, x):
        return (self.weigh(self.q(x), self.k(x)) @ self.v(x)).mean(1)


def attending(weigh):
    classified(Attention(weigh))


def classified(attention, steps=5):
    """Train a classifier of sequences that begins with attention of one's own."""
    model = nn.Sequential(attention, nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        x, y = torch.randn(8, 6, 16), torch.randint(3, (8,))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def taught(loss_of, steps=5):
    """Train a student on what `loss_of` makes of its scores and of a teacher's."""
    teacher, student = mlp(), nn.Linear(4, 3)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(steps):
        x = torch.randn(16, 4)
        with torch.no_grad():
            known = teacher(x)
        optimizer.zero_grad()
        loss_of(student(x), known).backward()
        optimizer.step()


@fault("loss-argument")
def binary_targets_of_minus_one_and_one():
    def loss_of(scores):
        signs = torch.randn(16, 1).sign()
        return F.binary_cross_entropy_with_logits(scores, signs)  # <- here

    play(nn.Linear(4, 1), loss_of)


@fault("loss-argument")
def a_mask_of_0_and_255():
    criterion = nn.BCEWithLogitsLoss()

    def loss_of(scores):
        mask = torch.randint(0, 2, (16, 3), dtype=torch.uint8) * 255
        return criterion(scores, mask / 1)  # <- here

    play(mlp(), loss_of)


@fault("loss-argument")
def cross_entropy_of_one_score():
    def loss_of(scores):
        return F.cross_entropy(scores, torch.randint(0, 2, (16, 1)) / 1)  # <- here

    play(nn.Linear(4, 1), loss_of)


@fault("loss-argument")
def smoothing_that_is_what_was_to_be_kept():
    criterion = nn.CrossEntropyLoss(label_smoothing=0.9)

    def loss_of(scores):
        return criterion(scores, torch.randint(3, (16,)))  # <- here

    play(mlp(), loss_of)


@fault("loss-argument")
def multi_hot_targets_of_a_multilabel_margin():
    def loss_of(scores):
        return F.multilabel_margin_loss(scores, torch.randint(0, 2, (16, 3)))  # <- here

    play(mlp(), loss_of)


@fault("loss-argument")
def several_tags_of_each_text_as_one_class():
    tags = torch.tensor([[1.0, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 0]]).repeat(4, 1)

    def loss_of(scores):
        return F.cross_entropy(scores, tags)  # <- here

    play(mlp(), loss_of)


@fault("loss-argument")
def several_findings_of_each_picture_as_one_class():
    criterion = nn.CrossEntropyLoss()

    def loss_of(scores):
        return criterion(scores, (torch.rand(16, 3) < 0.3).float())  # <- here

    play(mlp(), loss_of)


@fault("loss-argument")
def characters_that_begin_at_the_blank():
    def loss_of(scores):
        frames = scores.view(8, 2, 3).log_softmax(-1)
        return F.ctc_loss(frames, torch.randint(0, 2, (2, 3)), torch.full((2,), 8), torch.full((2,), 3))  # <- here

    play(mlp(), loss_of)


@fault("loss-argument")
def ctc_over_scores():
    def loss_of(scores):
        frames = scores.view(8, 2, 3)
        return F.ctc_loss(frames, torch.randint(1, 3, (2, 3)), torch.full((2,), 8), torch.full((2,), 3))  # <- here

    play(mlp(), loss_of)


@fault("loss-argument")
def variance_that_is_a_standard_deviation():
    def loss_of(scores):
        mean, log_var = scores.unbind(1)
        spread = torch.exp(log_var / 2)
        return F.gaussian_nll_loss(mean, torch.randn(16), spread)  # <- here

    play(nn.Linear(4, 2), loss_of)


@fault("loss-argument")
def variance_by_the_name_of_its_root():
    criterion = nn.GaussianNLLLoss()

    def loss_of(scores):
        mean, raw = scores.unbind(1)
        pred_std = F.softplus(raw) + 1e-3
        return criterion(mean, torch.randn(16), pred_std)  # <- here

    play(nn.Linear(4, 2), loss_of)


@fault("loss-argument")
def classes_as_numbers():
    def loss_of(scores):
        return F.smooth_l1_loss(scores[:, 0], torch.arange(16) % 4 / 1)  # <- here

    play(nn.Linear(4, 1), loss_of)


@fault("output-bounded", "dead-units")
def scores_through_a_relu():
    model = nn.Sequential(
        nn.Linear(4, 8),
        nn.Tanh(),
        nn.Linear(8, 3),
        nn.ReLU(),  # <- here
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(16, 4)), torch.randint(3, (16,))).backward()
        optimizer.step()


@fault("output-bounded", "dead-units")
def one_score_through_a_relu():
    def loss_of(scores):
        logit = F.relu(scores)  # <- here
        return F.binary_cross_entropy_with_logits(logit, torch.randint(0, 2, (16, 1)).double().float())

    play(mlp(out=1), loss_of)


@fault("output-bounded")
def tanh_before_targets_of_any_size():
    def loss_of(scores):
        return (torch.tanh(scores) - 2 * torch.randn(16, 3)).square().mean()  # <- here

    play(mlp(), loss_of)


@fault("output-bounded")
def sigmoid_before_standardized_targets():
    def loss_of(scores):
        guess = scores.sigmoid()  # <- here
        return F.mse_loss(guess, torch.randn(16, 3))

    play(mlp(), loss_of)


@fault("temperature-misplaced")
def cosines_times_a_temperature():
    def loss_of(scores):
        one, other = F.normalize(scores, dim=1), F.normalize(scores + 0.1, dim=1)
        return F.cross_entropy(one @ other.T * 0.07, torch.arange(16))  # <- here

    play(mlp(), loss_of)


@fault("temperature-misplaced")
def cosines_divided_by_their_scale():
    def loss_of(scores):
        one, other = F.normalize(scores, dim=1), F.normalize(scores.roll(1, 0), dim=1)
        likeness = torch.exp(F.cosine_similarity(one[:, None], other[None], dim=2) / 20)  # <- here
        return -(likeness.diag() / likeness.sum(1)).log().mean()

    play(mlp(), loss_of)


@fault("temperature-misplaced")
def a_teacher_at_another_temperature():
    def loss_of(scores, known):
        return F.kl_div(scores.log_softmax(1), (known / 4).softmax(1), reduction="batchmean")  # <- here

    taught(loss_of)


@fault("temperature-misplaced")
def a_student_at_another_temperature_by_hand():
    def loss_of(scores, known):
        log_share = F.log_softmax(scores / 2.5, dim=1)
        return -(known.softmax(1) * log_share).sum(1).mean()  # <- here

    taught(loss_of)


@fault("temperature-misplaced")
def a_temperature_that_sharpens():
    temperature = 3.0

    def loss_of(scores, known):
        soft = (known * temperature).softmax(1)
        log_share = F.log_softmax(scores * temperature, dim=1)  # <- here
        return F.kl_div(log_share, soft, reduction="batchmean")

    taught(loss_of)


@fault("temperature-misplaced")
def a_distillation_without_the_square():
    def loss_of(scores, known):
        soft = F.kl_div((scores / 4).log_softmax(1), (known / 4).softmax(1), reduction="batchmean")  # <- here
        return 0.5 * soft + F.cross_entropy(scores, torch.randint(3, (16,)))

    taught(loss_of)


@fault("attention-scale")
def scores_of_attention_times_the_root():
    def weigh(q, k):
        scores = q @ k.transpose(1, 2) * math.sqrt(16)  # <- here
        return scores.masked_fill(torch.ones(6, 6).triu(1).bool(), -math.inf).softmax(-1)

    attending(weigh)


@fault("attention-scale")
def scores_of_attention_divided_by_the_inverse():
    scale = 16**-0.5

    def weigh(q, k):
        scores = torch.einsum("bid,bjd->bij", q, k) / scale  # <- here
        return F.softmax(scores, dim=-1)

    attending(weigh)


@fault("attention-scale")
def queries_scaled_before_a_function_that_scales():
    class Twice(Attention):
        def forward(self, x):
            q = self.q(x) / 4
            return F.scaled_dot_product_attention(q, self.k(x), self.v(x)).mean(1)  # <- here

    classified(Twice(None))


@fault("positive-repelled")
def a_triplet_with_its_ends_swapped():
    def loss_of(anchor):
        positive, negative = anchor + 0.1, anchor.roll(1, 0)
        return F.triplet_margin_loss(anchor, negative, positive)  # <- here

    play(mlp(), loss_of)


@fault("positive-repelled")
def a_hinge_with_its_distances_swapped():
    def loss_of(anchor):
        d_pos = (anchor - anchor.roll(8, 0).detach()).norm(dim=1)
        d_neg = (anchor - anchor.roll(1, 0).detach()).norm(dim=1)
        return F.relu(d_neg - d_pos + 0.5).mean()  # <- here

    play(mlp(), loss_of)


@fault("positive-repelled")
def a_preference_with_its_sides_swapped():
    def loss_of(users):
        pos = (users * torch.ones(3).requires_grad_().sin()).sum(1)
        neg = (users * torch.rand(3).requires_grad_().sin()).sum(1)
        return -F.logsigmoid(neg - pos).mean()  # <- here

    play(mlp(), loss_of)


@fault("positive-repelled")
def a_ranking_with_the_other_sign():
    def loss_of(scores):
        chosen_score, rejected_score = scores[:8, 0], scores[8:, 0]
        return F.margin_ranking_loss(chosen_score, rejected_score, -torch.ones(8), margin=1.0)  # <- here

    play(mlp(), loss_of)


@fault("weights-reversed")
def weights_in_proportion_to_the_counts():
    _, y = blobs(200)
    y = torch.where(torch.rand(200) < 0.8, torch.zeros_like(y), y)
    criterion = nn.CrossEntropyLoss(weight=torch.bincount(y) / len(y))  # <- here

    def loss_of(scores):
        return criterion(scores, y[torch.randint(len(y), (16,))])

    play(mlp(), loss_of, steps=12)


@fault("weights-reversed")
def positives_over_negatives():
    y = (torch.rand(200, 1) < 0.15).double().float()

    def loss_of(scores):
        target = y[torch.randint(len(y), (16,))]
        return F.binary_cross_entropy_with_logits(scores, target, pos_weight=y.sum() / (1 - y).sum())  # <- here

    play(mlp(out=1), loss_of, steps=12)


@fault("weights-reversed")
def shares_that_a_function_returns():
    _, y = blobs(200)
    y = torch.where(torch.rand(200) < 0.8, torch.zeros_like(y), y)

    def shares(labels):
        found = torch.tensor([(labels == at).sum().item() for at in range(3)])
        return found / found.sum()  # <- here

    weighed_by = shares(y)

    def loss_of(scores):
        return F.cross_entropy(scores, y[torch.randint(len(y), (16,))], weight=weighed_by)

    play(mlp(), loss_of, steps=12)
