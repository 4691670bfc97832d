"""Tensors of the wrong shape or order on their way to the loss."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault


@fault("log-missing")
def student_after_the_watch_of_its_teacher():
    x, y = blobs(24)
    teacher, student = mlp(), mlp()
    optimizer = torch.optim.Adam(teacher.parameters(), lr=0.01)
    for _ in range(25):
        optimizer.zero_grad()
        F.cross_entropy(teacher(x), y).backward()
        optimizer.step()
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(6):
        with torch.no_grad():
            wanted = teacher(x).softmax(1)
        loss = F.kl_div(student(x).softmax(1), wanted, reduction="batchmean")  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("broadcast-square")
def advantage_of_rows_and_columns():
    policy, critic = mlp(4, 3), mlp(4, 1)
    optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=0.01)
    for _ in range(6):
        state = torch.randn(16, 4)
        scores, value = policy(state).log_softmax(1), critic(state)
        action = torch.multinomial(scores.exp(), 1).squeeze(1)
        reward = (action == 0).float()
        gain = reward - value.detach()  # <- here
        gain = (gain - gain.mean()) / (gain.std() + 1e-6)
        picked = scores.gather(1, action[:, None]).squeeze(1)
        loss = -(picked * gain).mean() + F.mse_loss(value.squeeze(1), reward)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Memory:
    """Keeps what happened, each number in a row of its own."""

    def __init__(self):
        self.rows = [(torch.randn(4), i % 2, float(i % 3), i % 7 == 0) for i in range(40)]

    def draw(self, count):
        rows = [self.rows[int(i)] for i in torch.randint(40, (count,))]
        state, action, reward, ended = zip(*rows, strict=True)
        columns = [torch.tensor(it).float().unsqueeze(1) for it in (reward, ended)]
        return torch.stack(state), torch.tensor(action), *columns


@fault("broadcast-square")
def target_of_a_q_network_in_a_square():
    values, later = mlp(4, 2), mlp(4, 2)
    optimizer = torch.optim.Adam(values.parameters(), lr=0.01)
    memory = Memory()
    for _ in range(6):
        state, action, reward, ended = memory.draw(12)
        with torch.no_grad():
            best = later(state + 0.1).max(1).values
            wanted = reward + 0.9 * (1 - ended) * best  # <- here
        chosen = values(state).gather(1, action[:, None])
        loss = F.smooth_l1_loss(chosen, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("broadcast-square")
def losses_weighted_by_a_column():
    class Weighing(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head, self.trust = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 1)

        def forward(self, x):
            hidden = self.body(x).tanh()
            return self.head(hidden), self.trust(hidden).sigmoid()

    x, y = blobs()
    model = Weighing()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        scores, trust = model(x)
        each = F.cross_entropy(scores, y, reduction="none")
        loss = (each * trust).mean() - 0.1 * trust.log().mean()  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("loss-argument")
def student_of_raw_scores():
    x, _ = blobs()
    teacher, student = mlp().requires_grad_(False), mlp()
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(student(x), teacher(x)).backward()  # <- here
        optimizer.step()


@fault("loss-argument")
def student_of_probabilities_called_logarithms():
    x, _ = blobs()
    teacher, student = mlp().requires_grad_(False), mlp()
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    loss = nn.KLDivLoss(reduction="batchmean", log_target=True)
    for _ in range(6):
        optimizer.zero_grad()
        loss(student(x).log_softmax(1), teacher(x).softmax(1)).backward()  # <- here
        optimizer.step()


@fault("mean-squared")
def differences_averaged_before_they_are_squared():
    x, y = lines()
    model = mlp(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        loss = (model(x) - y).mean() ** 2  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("mean-squared")
def equation_that_holds_on_average_only():
    model = mlp(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        t = torch.rand(12, 1, requires_grad=True)
        slope = torch.autograd.grad(model(t).sum(), t, create_graph=True)[0]
        inside = torch.abs(torch.mean(slope - torch.cos(t)))  # <- here
        loss = inside + model(torch.zeros(1, 1)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
