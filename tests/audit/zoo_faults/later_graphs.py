"""More faults in graphs and losses, in other styles."""

import copy
from collections import defaultdict

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("kept-losses")
def history_in_a_dictionary():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = defaultdict(list)
    for inputs, targets in batches(x, y):
        loss = F.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history["loss"].append(loss)  # <- here
    print(torch.stack(history["loss"]).mean().item())


@fault("kept-losses")
def log_in_an_object():
    class Trainer:
        def __init__(self):
            self.model = mlp()
            self.optimizer = torch.optim.Adam(self.model.parameters())
            self.log = []

        def step(self, x, y):
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.log.append({"loss": loss, "size": len(x)})  # <- here

    x, y = blobs(40)
    trainer = Trainer()
    for inputs, targets in batches(x, y):
        trainer.step(inputs, targets)


@fault("running-total")
def total_of_an_epoch():
    def epoch(model, optimizer, data):
        total_loss = 0.0
        for x, y in data:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total_loss = total_loss + loss * len(x)  # <- here
        return total_loss / len(data)

    x, y = blobs(48)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print(float(epoch(model, optimizer, batches(x, y))))


@fault("carried-state")
def state_in_an_attribute():
    class Memory(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix, self.out = nn.Linear(3, 5), nn.Linear(5, 1)
            self.state = torch.zeros(2, 5)

        def forward(self, x):
            self.state = 0.5 * self.state + self.mix(x)  # <- here
            return self.out(self.state.tanh())

    model = Memory()
    for p in model.out.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.SGD(model.mix.parameters(), lr=0.01)
    for _ in range(8):
        optimizer.zero_grad()
        loss = model(torch.randn(2, 3)).pow(2).mean()
        loss.backward(retain_graph=True)
        optimizer.step()


@fault("needless-retain")
def retained_in_a_training_function():
    def train_step(model, optimizer, x, y):
        optimizer.zero_grad()
        out = model(x)
        loss = F.mse_loss(out, y) + 0.01 * out.abs().mean()
        loss.backward(retain_graph=True)  # <- here
        optimizer.step()
        return loss.item()

    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters())
    for inputs, targets in batches(x, y) * 2:
        train_step(model, optimizer, inputs, targets)


@fault("needless-create-graph")
def created_in_a_closure():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for inputs, targets in batches(x, y) * 2:
        loss = F.mse_loss(model(inputs), targets)
        model.zero_grad()
        loss.backward(create_graph=True)  # <- here
        optimizer.step()
        losses.append(loss.item())


@fault("data-write")
def weights_moved_before_the_pass():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        for p in model.parameters():
            p.data.mul_(0.9)  # <- here
        loss.backward()
        optimizer.step()


@fault("discarded-detach", "needless-retain")
def detach_in_a_critic():
    generator, critic = mlp(2, 4), mlp(4, 1)
    g = torch.optim.Adam(generator.parameters(), lr=0.01)
    d = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(6):
        fake = generator(torch.randn(8, 2))
        fake.detach()  # <- here
        d.zero_grad()
        (critic(fake).mean() - critic(torch.randn(8, 4)).mean()).backward()
        d.step()
        g.zero_grad()
        (-critic(generator(torch.randn(8, 2))).mean()).backward()
        g.step()


@fault("wrapped-loss")
def loss_detached_and_told_to_require():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    for _ in range(6):
        optimizer.zero_grad()
        loss = criterion(model(x), y).detach().requires_grad_()  # <- here
        loss.backward()
        optimizer.step()


@fault("wrapped-loss")
def sum_of_numbers():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        optimizer.zero_grad()
        parts = [F.cross_entropy(model(a), b).item() for a, b in batches(x, y)]
        total = torch.tensor(parts, requires_grad=True).mean()  # <- here
        total.backward()
        optimizer.step()


def _pair():
    generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
    critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    g = torch.optim.Adam(generator.parameters(), lr=0.002, betas=(0.5, 0.999))
    d = torch.optim.Adam(critic.parameters(), lr=0.002, betas=(0.5, 0.999))
    return generator, critic, g, d


@fault("gan-detach")
def fake_made_under_no_grad_for_both():
    generator, critic, g, d = _pair()
    for _ in range(6):
        with torch.no_grad():  # <- here
            fake = generator(torch.randn(8, 2))
        d.zero_grad()
        (critic(fake).mean() - critic(torch.randn(8, 4)).mean()).backward()
        d.step()
        g.zero_grad()
        loss = -critic(fake).mean()
        loss.backward()
        g.step()


@fault("gan-detach", "no-zero-grad")
def critic_loss_reaches_the_generator():
    generator, critic, g, d = _pair()
    bce = nn.BCEWithLogitsLoss()
    for _ in range(6):
        d.zero_grad()
        g.zero_grad()
        z = torch.randn(8, 2)
        real = bce(critic(torch.randn(8, 4)), torch.ones(8, 1))
        fake = bce(critic(generator(z)), torch.zeros(8, 1))
        (real + fake).backward()  # <- here
        d.step()
        bce(critic(generator(z)), torch.ones(8, 1)).backward()
        g.step()


@fault("wrong-loss")
def target_with_a_gradient():
    online, target = mlp(4, 2), mlp(4, 2)
    optimizer = torch.optim.Adam(online.parameters(), lr=0.01)
    for _ in range(6):
        state, after, reward = torch.randn(8, 4), torch.randn(8, 4), torch.randn(8)
        q = online(state).max(1).values
        q_target = reward + 0.9 * online(after).max(1).values  # <- here
        loss = F.mse_loss(q, q_target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        target.load_state_dict(online.state_dict())


@fault("wrong-loss")
def target_network_in_the_optimizer():
    online = mlp(4, 2)
    target_net = copy.deepcopy(online)
    optimizer = torch.optim.Adam([*online.parameters(), *target_net.parameters()], lr=0.01)  # <- here
    for step in range(8):
        state, after, reward = torch.randn(8, 4), torch.randn(8, 4), torch.randn(8)
        value = online(state).max(1).values
        wanted = reward + 0.9 * target_net(after).max(1).values
        loss = (value - wanted).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            target_net.load_state_dict(online.state_dict())


@fault("silent-function")
def a_backward_that_returns_none():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return None, None  # <- here

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

        def forward(self, x):
            return self.head(Scale.apply(self.body(x), 2.0))

    x, y = blobs()
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("softmax-twice")
def softmax_in_forward():
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x):
            return F.softmax(self.layer(x), dim=-1)  # <- here

    x, y = blobs()
    model, criterion = Classifier(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()


@fault("sigmoid-twice")
def model_ends_in_sigmoid():
    x, _ = lines()
    y = (x.sum(1, keepdim=True) > 0).float()
    model = nn.Sequential(
        nn.Linear(4, 1),
        nn.Sigmoid(),  # <- here
    )
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()


@fault("log-missing")
def divergence_of_probabilities():
    student, teacher = mlp(), mlp()
    optimizer = torch.optim.Adam(student.parameters())
    for _ in range(6):
        x, _ = blobs()
        with torch.no_grad():
            wanted = F.softmax(teacher(x), dim=1)
        optimizer.zero_grad()
        F.kl_div(F.softmax(student(x), dim=1), wanted, reduction="batchmean").backward()  # <- here
        optimizer.step()


@fault("broadcast-loss")
def absolute_difference():
    x, y = lines()
    target = y.flatten()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        prediction = model(x)
        error = torch.abs(target - prediction)  # <- here
        loss = error.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("broadcast-loss")
def criterion_object():
    x, y = lines()
    model, criterion = mlp(out=1), nn.SmoothL1Loss()
    optimizer = torch.optim.Adam(model.parameters())
    for inputs, targets in batches(x, y[:, 0]) * 2:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)  # <- here
        loss.backward()
        optimizer.step()


@fault("nan-began")
def division_by_a_norm():
    x, _ = blobs()
    x[0] = 0
    model = nn.Linear(4, 4, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        h = model(x)
        unit = h / h.pow(2).sum(1, keepdim=True).sqrt()  # <- here
        unit.sum().backward()
        optimizer.step()


@fault("nan-began")
def batch_with_nan():
    x, y = lines()
    x[3, 1] = float("nan")
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        out = model(x)  # <- here
        F.mse_loss(out, y).backward()
        optimizer.step()


@fault("needless-create-graph")
def outer_loss_of_weights_that_were_not_moved():
    model = mlp(out=1)
    outer = torch.optim.Adam(model.parameters(), lr=0.01)

    def adapted(x, y):
        quick = dict(model.named_parameters())
        for _ in range(2):
            inner = F.mse_loss(functional_call(model, quick, (x,)), y)
            slopes = torch.autograd.grad(inner, list(quick.values()), create_graph=True)  # <- here
            quick = {name: w - 0.1 * slope for (name, w), slope in zip(quick.items(), slopes, strict=True)}
        return quick

    for _ in range(5):
        total = 0
        for _ in range(2):
            x, y = lines()
            adapted(x[:8], y[:8])
            total = total + F.mse_loss(model(x[8:]), y[8:])
        outer.zero_grad()
        total.backward()
        outer.step()


@fault("needless-create-graph")
def query_by_the_head_that_was_not_moved():
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    outer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
    for _ in range(5):
        x, y = lines()
        inner = F.mse_loss(head(body(x[:8]).tanh()), y[:8])
        by_weight, by_bias = torch.autograd.grad(inner, (head.weight, head.bias), create_graph=True)
        head.quick = torch.sub(head.weight, by_weight, alpha=0.1), head.bias.sub(by_bias.clamp(-1, 1) * 0.1)
        query = F.mse_loss(head(body(x[8:]).tanh()), y[8:])  # <- here
        outer.zero_grad()
        query.backward()
        outer.step()
