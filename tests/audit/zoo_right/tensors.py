"""Right loops whose tensors look misshapen, and are as they were meant."""

import torch
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


@right
def pairs_ranked_by_their_differences():
    x, y = lines()
    model = mlp(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    order = (y > y.T).float()
    for _ in range(6):
        score = model(x)
        row = score.squeeze(1)
        gap = score - row
        loss = F.binary_cross_entropy_with_logits(gap, order)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def winners_against_losers():
    model = mlp(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        better, worse = torch.randn(8, 4) + 1, torch.randn(8, 4)
        high = model(better)
        low = model(worse).view(-1)
        loss = F.softplus(low.unsqueeze(0) - high).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def similarity_of_two_columns():
    encoder = mlp(4, 1)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    x, _ = blobs(8)
    for _ in range(6):
        one, other = encoder(x + 0.1 * torch.randn_like(x)), encoder(x + 0.1 * torch.randn_like(x)).squeeze(1)
        distance = (one - other).abs()
        loss = F.cross_entropy(-distance, torch.arange(8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def values_in_one_column_each():
    policy, critic = mlp(4, 3), mlp(4, 1)
    optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=0.01)
    for _ in range(6):
        state = torch.randn(16, 4)
        scores, value = policy(state).log_softmax(1), critic(state)
        action = torch.multinomial(scores.exp(), 1)
        reward = (action == 0).float()
        gain = reward - value.detach()
        loss = -(scores.gather(1, action) * gain).mean() + F.mse_loss(value, reward)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def policy_gradient_by_weighted_classes():
    policy = mlp()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(6):
        scores = policy(torch.randn(16, 4))
        action = torch.multinomial(scores.detach().softmax(1), 1).squeeze(1)
        gain = (action == 0).float() - 0.4
        optimizer.zero_grad()
        F.cross_entropy(scores, F.one_hot(action, 3) * gain[:, None]).backward()
        optimizer.step()


@right
def teacher_in_logarithms():
    x, _ = blobs()
    teacher, student = mlp().requires_grad_(False), mlp()
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(6):
        wanted = teacher(x).log_softmax(1)
        optimizer.zero_grad()
        F.kl_div(student(x).log_softmax(1), wanted, reduction="batchmean", log_target=True).backward()
        optimizer.step()


@right
def bias_of_the_answers_as_a_second_term():
    x, y = lines()
    model = mlp(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        answer = model(x)
        loss = F.mse_loss(answer, y) + 0.1 * (answer - y).mean().pow(2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def means_of_two_groups_brought_together():
    x, y = lines()
    model = mlp(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        answer = model(x)
        apart = (answer[:8].mean() - answer[8:].mean()).pow(2)
        optimizer.zero_grad()
        (F.l1_loss(answer, y) + apart).backward()
        optimizer.step()


@right
def answer_fixed_to_a_mean_of_zero():
    model = mlp(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        t = torch.rand(12, 1, requires_grad=True)
        slope = torch.autograd.grad(model(t).sum(), t, create_graph=True)[0]
        loss = (slope - torch.cos(t)).square().mean() + model(torch.rand(20, 1)).mean().square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
