"""Right losses that look as if they were given the wrong thing."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp, play
from tests.audit.registry import right
from tests.audit.zoo_faults.given import Attention, attending, classified, taught


@right
def rows_of_nothing_among_classes_that_are_one_hot():
    def loss_of(scores):
        seen = torch.rand(16, 1) < 0.5
        return F.cross_entropy(scores, F.one_hot(torch.randint(3, (16,)), 3) * seen.float())

    play(mlp(), loss_of)


@right
def several_positives_for_each_row():
    def loss_of(scores):
        labels = torch.arange(16) % 3
        return F.cross_entropy(scores[:, labels], (labels[:, None] == labels).float())

    play(mlp(), loss_of)


@right
def unknown_labels_that_are_left_out_after_the_loss():
    def loss_of(scores):
        y = torch.randint(-1, 2, (16, 3)).float()
        return F.binary_cross_entropy_with_logits(scores, y, reduction="none")[y >= 0].mean()

    play(mlp(), loss_of)


@right
def unknown_labels_with_a_weight_of_0():
    def loss_of(scores):
        y = torch.randint(-1, 2, (16, 3)).float()
        return F.binary_cross_entropy_with_logits(scores, y, weight=(y >= 0).float())

    play(mlp(), loss_of)


@right
def real_images_with_labels_up_to_1_2():
    def loss_of(scores):
        return F.binary_cross_entropy_with_logits(scores, 0.7 + 0.5 * torch.rand(16, 1))

    play(mlp(out=1), loss_of)


@right
def smoothed_labels_that_were_mixed():
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def loss_of(scores):
        y = F.one_hot(torch.randint(3, (16,)), 3).float()
        return criterion(scores, 0.7 * y + 0.3 * y.roll(1, 0))

    play(mlp(), loss_of)


@right
def variance_as_a_variance():
    def loss_of(scores):
        mean, log_std = scores.unbind(1)
        return F.gaussian_nll_loss(mean, torch.randn(16), (2 * log_std).exp())

    play(nn.Linear(4, 2), loss_of)


@right
def standard_deviation_squared():
    def loss_of(scores):
        mean, raw = scores.unbind(1)
        std = F.softplus(raw)
        return nn.GaussianNLLLoss()(mean, torch.randn(16), std**2)

    play(nn.Linear(4, 2), loss_of)


@right
def log_variance_in_a_formula_of_ones_own():
    def loss_of(scores):
        mean, log_var = scores.unbind(1)
        return (log_var + (torch.randn(16) - mean).square() * (-log_var).exp()).mean() / 2

    play(nn.Linear(4, 2), loss_of)


@right
def characters_padded_with_the_blank():
    def loss_of(scores):
        frames, texts = scores.view(8, 2, 3).log_softmax(-1), torch.tensor([[1, 2, 0], [2, 0, 0]])
        return F.ctc_loss(frames, texts, torch.full((2,), 8), torch.tensor([2, 1]))

    play(mlp(), loss_of)


@right
def counts_by_a_regression():
    def loss_of(scores):
        return F.mse_loss(scores[:, 0], torch.poisson(torch.full((16,), 1.5)))

    play(nn.Linear(4, 1), loss_of)


@right
def relu_before_an_average_over_the_image():
    model = nn.Sequential(nn.Conv2d(1, 4, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 1, 4, 4)), torch.randint(4, (8,))).backward()
        optimizer.step()


@right
def scores_capped_by_a_tanh():
    play(mlp(), lambda scores: F.cross_entropy(30 * torch.tanh(scores / 30), torch.randint(3, (16,))))


@right
def deep_image_prior():
    noisy = torch.linspace(0, 1, 48).view(16, 3) + 0.1 * torch.randn(16, 3)
    play(mlp(), lambda scores: F.mse_loss(scores.sigmoid(), noisy))


@right
def rectified_rates_beside_noisy_ones():
    def loss_of(scores):
        return (F.relu(scores + 1) - (torch.rand(16, 3) + 0.1 * torch.randn(16, 3))).square().mean()

    play(mlp(), loss_of)


@right
def least_squares_of_a_bounded_critic():
    play(mlp(out=1), lambda scores: F.mse_loss(scores.tanh(), torch.randn(16, 1).sign()))


@right
def contrast_with_a_learned_scale():
    policy = mlp()
    policy.scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def loss_of(scores):
        one, other = F.normalize(scores, dim=1), F.normalize(scores + 0.1, dim=1)
        return F.cross_entropy(policy.scale.exp() * one @ other.T, torch.arange(16))

    play(policy, loss_of)


@right
def contrast_divided_by_its_temperature():
    def loss_of(scores):
        rows = F.normalize(scores, dim=1)
        likeness = (rows @ rows.T / 0.5).masked_fill(torch.eye(16).bool(), -math.inf)
        return F.cross_entropy(likeness, torch.arange(16).roll(8))

    play(mlp(), loss_of)


@right
def targets_sharpened_for_a_student_as_it_is():
    def loss_of(scores, known):
        return F.kl_div(scores.log_softmax(1), (known / 0.4).softmax(1), reduction="batchmean")

    taught(loss_of)


@right
def a_teacher_sharper_than_its_student():
    def loss_of(scores, known):
        return -((known / 0.04).softmax(1) * (scores / 0.1).log_softmax(1)).sum(1).mean()

    taught(loss_of)


@right
def a_teacher_that_was_calibrated():
    def loss_of(scores, known):
        return F.cross_entropy(scores, (known / 1.37).softmax(1))

    taught(loss_of)


@right
def distillation_with_its_square():
    def loss_of(scores, known):
        soft = F.kl_div((scores / 4).log_softmax(1), (known / 4).softmax(1), reduction="batchmean") * 4**2
        return 0.5 * soft + 0.5 * F.cross_entropy(scores, torch.randint(3, (16,)))

    taught(loss_of)


@right
def attention_as_t5_has_it():
    attending(lambda q, k: (q @ k.transpose(1, 2)).softmax(-1))


@right
def attention_of_normalized_queries_and_keys():
    attending(lambda q, k: (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(1, 2) * 4).softmax(-1))


@right
def attention_with_the_scale_at_the_query():
    attending(lambda q, k: ((q * 16**-0.5) @ k.transpose(1, 2)).softmax(-1))


@right
def attention_with_half_of_the_scale_on_each_side():
    attending(lambda q, k: ((q / 2) @ (k / 2).transpose(1, 2)).softmax(-1))


@right
def attention_whose_function_is_told_not_to_scale():
    class Once(Attention):
        def forward(self, x):
            return F.scaled_dot_product_attention(self.q(x) / 4, self.k(x), self.v(x), scale=1.0).mean(1)

    classified(Once(None))


@right
def triplet_with_its_hardest_negative():
    def loss_of(anchor):
        far = torch.cdist(anchor, anchor) + 1e9 * torch.eye(16)
        negative = anchor[far.argmin(1)]
        return F.triplet_margin_loss(anchor, anchor.roll(1, 0), negative)

    play(mlp(), loss_of)


@right
def hinge_over_likeness():
    def loss_of(anchor):
        pos_sim = F.cosine_similarity(anchor, anchor.roll(8, 0).detach() + 0.1)
        neg_sim = F.cosine_similarity(anchor, anchor.roll(1, 0).detach())
        return F.relu(neg_sim - pos_sim + 0.2).mean()

    play(mlp(), loss_of)


@right
def hinge_over_distances_that_are_one_minus_a_cosine():
    def loss_of(anchor):
        pos_dist = 1 - F.cosine_similarity(anchor, anchor.roll(8, 0).detach())
        neg_dist = 1 - F.cosine_similarity(anchor, anchor.roll(1, 0).detach())
        return F.relu(pos_dist - neg_dist + 0.2).mean()

    play(mlp(), loss_of)


@right
def forward_forward_goodness():
    def loss_of(hidden):
        good_pos = hidden[:8].relu().pow(2).mean(1)
        good_neg = hidden[8:].relu().pow(2).mean(1)
        return F.softplus(good_neg - good_pos).mean()

    play(mlp(), loss_of)


@right
def energies_of_data_and_of_samples():
    def loss_of(scores):
        pos_energy, neg_energy = scores[:8].square().sum(1), scores[8:].square().sum(1)
        return pos_energy.mean() - neg_energy.mean() + 0.1 * neg_energy.square().mean()

    play(mlp(), loss_of)


@right
def ranking_of_distances():
    def loss_of(anchor):
        dist_pos = (anchor - anchor.roll(8, 0)).norm(dim=1)
        dist_neg = (anchor - anchor.roll(1, 0)).norm(dim=1)
        return F.margin_ranking_loss(dist_neg, dist_pos, torch.ones(16), margin=0.5)

    play(mlp(), loss_of)


@right
def weights_against_the_counts():
    _, y = blobs(200)
    y = torch.where(torch.rand(200) < 0.8, torch.zeros_like(y), y)
    criterion = nn.CrossEntropyLoss(weight=len(y) / torch.bincount(y))
    play(mlp(), lambda scores: criterion(scores, y[torch.randint(len(y), (16,))]), steps=12)


@right
def weights_of_classes_that_were_drawn_evenly():
    counts = torch.tensor([160.0, 30.0, 10.0])  # of the world, where the model will be used
    criterion = nn.CrossEntropyLoss(weight=counts / counts.sum())
    play(mlp(), lambda scores: criterion(scores, torch.randint(3, (16,))), steps=12)


@right
def negatives_over_positives():
    y = (torch.rand(200, 1) < 0.15).double().float()

    def loss_of(scores):
        target = y[torch.randint(len(y), (16,))]
        return F.binary_cross_entropy_with_logits(scores, target, pos_weight=(1 - y).sum() / y.sum())

    play(mlp(out=1), loss_of, steps=12)


@right
def entropy_at_another_temperature():
    def loss_of(scores):
        entropy = -((scores / 2).softmax(1) * scores.log_softmax(1)).sum(1).mean()
        return F.cross_entropy(scores, torch.randint(3, (16,))) - 0.1 * entropy

    play(mlp(), loss_of)


@right
def queries_that_take_the_scale_back():
    class Unscaled(Attention):
        def forward(self, x):
            return F.scaled_dot_product_attention(self.q(x) * 16**0.5, self.k(x), self.v(x)).mean(1)

    classified(Unscaled(None))
