"""The same errors, as other people write them: classes, several optimizers, closures, comprehensions, lambdas.

Written without sight of the rules.
"""

import itertools
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

from tests.explain.provoked import case


class CharRNN(nn.Module):
    def __init__(self, hidden=6):
        super().__init__()
        self.rnn = nn.GRU(4, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 4)
        self.hidden = None

    def forward(self, x):
        y, self.hidden = self.rnn(x, self.hidden)  # carried over here
        return self.out(y)


@case("carried-state", "net.hidden", remembered=True)
def state_kept_on_the_model():
    net = CharRNN()
    opt = optim.Adam(net.parameters())
    for _epoch in range(2):
        opt.zero_grad()
        logits = net(torch.randn(2, 5, 4))
        loss = logits.pow(2).mean()
        loss.backward()  # second pass here
        opt.step()


@case("carried-state", "hidden", "tuple(", remembered=True)
def lstm_state_as_a_tuple():
    lstm = nn.LSTM(3, 4)
    hidden = (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))
    for chunk in torch.randn(3, 5, 2, 3):
        out, hidden = lstm(chunk, hidden)  # carried over here
        (out**2).mean().backward()  # second pass here


@case("carried-state", "total", "item()", remembered=True)
def running_total_of_losses():
    net = nn.Linear(2, 1)
    total = 0
    for x in torch.randn(4, 3, 2):
        total = total + torch.tanh(net(x)).sum()  # carried over here
        total.backward()  # second pass here


@case("carried-state", "state", remembered=True)
def state_assigned_after_the_pass():
    core = nn.Linear(4, 4)
    state = torch.zeros(1, 4)
    for _ in range(3):
        new = torch.tanh(core(state))
        new.sum().backward()  # second pass here
        state = new  # carried over here


class Trainer:
    def __init__(self):
        self.cell = nn.GRUCell(2, 3)
        self.h = torch.zeros(1, 3)
        self.optimizer = optim.SGD(self.cell.parameters(), lr=0.1)

    def training_step(self, batch):
        self.h = self.cell(batch, self.h)  # carried over here
        loss = self.h.square().mean()
        self.optimizer.zero_grad()
        loss.backward()  # second pass here
        self.optimizer.step()
        return loss

    def fit(self, batches):
        for batch in batches:
            self.training_step(batch)


@case("carried-state", "self.h", remembered=True)
def state_in_a_trainer():
    Trainer().fit(torch.randn(3, 1, 2))


@case("shared-trunk", "fake", remembered=True)
def gan_that_does_not_detach():
    gen, dis = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2), nn.Tanh()), nn.Linear(2, 1)
    opt_d, opt_g = optim.SGD(dis.parameters(), 0.1), optim.SGD(gen.parameters(), 0.1)
    for _ in range(2):
        fake = gen(torch.randn(3, 2))  # computed here, once
        opt_d.zero_grad()
        d_loss = F.softplus(dis(fake)).mean()
        d_loss.backward()  # first pass here
        opt_d.step()
        opt_g.zero_grad()
        g_loss = F.softplus(-dis(fake)).mean()
        g_loss.backward()  # second pass here
        opt_g.step()


@case("shared-trunk", "advantage", remembered=True)
def actor_and_critic():
    body, actor, critic = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
    features = torch.relu(body(torch.randn(5, 4))) ** 2
    values = critic(features).squeeze(-1)
    log_probs = actor(features).log_softmax(-1)[:, 0]
    advantage = torch.ones(5) - values  # computed here, once
    actor_loss = -(log_probs * advantage).mean()
    critic_loss = advantage.pow(2).mean()
    actor_loss.backward()  # first pass here
    critic_loss.backward()  # second pass here


@case("same-loss-twice", "loss", remembered=True)
def loss_computed_before_the_loop():
    w = nn.Parameter(torch.randn(3))
    opt = optim.SGD([w], lr=0.1)
    loss = (w.exp() - 1).square().sum()  # computed here, once
    for _ in range(5):
        opt.zero_grad()
        loss.backward()  # second pass here
        opt.step()


@case("computed-once", "weights", remembered=True)
def weights_normalised_before_the_loop():
    raw = torch.randn(3, requires_grad=True)
    weights = raw.softmax(0)  # computed here, once
    for x in torch.randn(4, 3):
        loss = (weights * x).sum()
        loss.backward()  # second pass here


@case("second-time", "torch.autograd.grad(loss, w, retain_graph=True)", remembered=True)
def grad_then_backward():
    w = torch.randn(3, requires_grad=True)
    loss = w.sigmoid().sum()
    g = torch.autograd.grad(loss, w)  # first pass here
    loss.backward()  # second pass here
    return g


def log_gradient_norm(objective, parameters):
    grads = torch.autograd.grad(objective, parameters)  # first pass here
    return sum(g.norm() for g in grads)


@case("second-time", "torch.autograd.grad(objective, parameters, retain_graph=True)", remembered=True)
def helper_that_uses_up_the_graph():
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    objective = net(torch.randn(4, 2)).pow(2).mean()
    print("norm", log_gradient_norm(objective, list(net.parameters())) > 0)
    objective.backward()  # second pass here


@case("carried-state", "queue", remembered=True)
def replay_of_old_losses():
    net = nn.Linear(2, 1)
    queue = deque(maxlen=3)
    for x in torch.randn(4, 5, 2):
        queue.append(net(x).sigmoid().mean())  # carried over here
        loss = sum(queue)
        loss.backward()  # second pass here


@case("same-loss-twice", "loss")
def twice_without_memory():
    p = torch.ones(2, requires_grad=True)
    loss = (p.sin() * p).sum()
    torch.autograd.backward(loss)  # first pass here
    loss.backward()  # second pass here


@case("shared-trunk", "encoded", certain=False)
def two_tasks_without_memory():
    enc = nn.Linear(3, 3)
    task_a, task_b = nn.Linear(3, 1), nn.Linear(3, 2)
    encoded = torch.sigmoid(enc(torch.randn(4, 3)))  # computed here, once
    loss_a = task_a(encoded).square().mean()
    loss_b = task_b(encoded).square().mean()
    loss_a.backward()  # first pass here
    loss_b.backward()  # second pass here


@case("carried-state", "h", certain=False)
def state_without_memory():
    cell = nn.LSTMCell(2, 3)
    h, c = torch.zeros(1, 3), torch.zeros(1, 3)
    losses = []
    for t in range(4):
        h, c = cell(torch.full((1, 2), float(t)), (h, c))  # carried over here
        step_loss = (h - 1).abs().mean()
        losses.append(step_loss.item())
        step_loss.backward()  # second pass here


# In place


@case("in-place", "attn", "softmax")
def masked_after_softmax():
    scores = torch.randn(2, 4, requires_grad=True)
    attn = scores.softmax(-1)  # saved here
    attn[:, 2:] = 0  # overwritten here
    (attn @ torch.randn(4, 3)).sum().backward()  # needed here


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        out = torch.sigmoid(self.fc(x))  # saved here
        out += x  # overwritten here
        return out


@case("in-place", "sigmoid", "out = out + x", certain=False)
def residual_with_plus_equals():
    model = Residual()
    model(torch.randn(2, 3)).sum().backward()  # needed here


@case("in-place", "buffer", certain=False)
def buffer_filled_in_a_loop():
    w = torch.ones(3, requires_grad=True)
    buffer = torch.zeros(4, 3)
    total = 0
    for i in range(4):
        buffer[i] = w * i  # overwritten here
        total = total + (buffer[i] ** 2).sum()  # saved here
    total.backward()  # needed here


@case("in-place-by-step", "opt_b.step()")
def two_optimizers_one_graph():
    a, b = nn.Linear(2, 2), nn.Linear(2, 1)
    opt_a, opt_b = optim.SGD(a.parameters(), 0.1), optim.SGD(b.parameters(), 0.1)
    out = b(a(torch.randn(3, 2)))
    loss_b, loss_a = out.mean(), out.pow(2).mean()
    loss_b.backward(retain_graph=True)
    opt_b.step()  # overwritten here
    loss_a.backward()  # needed here
    opt_a.step()


@case("in-place", "x")
def clamp_under_no_grad():
    x = torch.randn(3, requires_grad=True)
    y = (x**2).sum()  # saved here
    with torch.no_grad():
        x.clamp_(-1, 1)  # overwritten here
    y.backward()  # needed here


@case("in-place", "weight")
def manual_update_before_the_second_pass():
    weight = torch.randn(2, 2, requires_grad=True)
    y = (torch.randn(3, 2, requires_grad=True) @ weight).tanh()  # saved here
    y.sum().backward(retain_graph=True)
    with torch.no_grad():
        weight -= 0.1 * weight.grad  # overwritten here
    y.mean().backward()  # needed here


@case("leaf-in-place", "self.bias")
def bias_initialised_in_the_constructor():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.empty(3))
            self.bias.zero_()  # raised here

    return Layer()


@case("leaf-view-in-place", "emb.weight")
def padding_row_set_by_hand():
    emb = nn.Embedding(5, 2)
    emb.weight[0] = 0  # raised here
    return emb


@case("leaf-in-place", "p")
def hand_written_sgd():
    net = nn.Linear(2, 1)
    net(torch.randn(3, 2)).sum().backward()
    for p in net.parameters():
        p -= 0.1 * p.grad  # raised here


@case("view-of-several-in-place", "row", certain=True)
def rows_of_an_iteration():
    m = torch.randn(3, 2, requires_grad=True) * 1
    for row in m:
        row *= 2  # raised here


@case("hooked-module-in-place", "inplace")
def inplace_relu_after_a_hooked_layer():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))  # writes in place
    net[0].register_full_backward_hook(lambda m, gi, go: None)  # hook put on here
    net(torch.randn(3, 2)).sum()  # raised here


@case("not-in-graph", "extra", certain=False)
def gradient_of_an_unused_parameter():
    used, extra = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    loss = used.pow(2).sum()
    torch.autograd.grad(loss, (used, extra))  # raised here


@case("seed-missing", "per_sample")
def per_sample_losses():
    model = nn.Linear(2, 3)
    per_sample = nn.CrossEntropyLoss(reduction="none")(model(torch.randn(4, 2)), torch.tensor([0, 1, 2, 0]))
    per_sample.backward()  # raised here


@case("seed-missing", "out")
def sum_forgotten_in_a_chain():
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    for x, _ in zip(torch.randn(2, 3, 2), itertools.count(), strict=False):
        out = net(x)
        out.backward()  # raised here
