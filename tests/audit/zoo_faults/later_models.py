"""More faults between models and optimizers, in other styles."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("not-in-optimizer")
def bias_left_out():
    x, y = lines(width=1)
    w = torch.zeros(1, 1, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.01)  # <- here
    for _ in range(6):
        optimizer.zero_grad()
        (x @ w + b - y).pow(2).mean().backward()
        optimizer.step()


@fault("not-in-optimizer")
def head_replaced_in_a_function():
    def adapt(net, classes):
        net.outer = nn.Linear(8, classes)  # <- here
        return net

    x, y = blobs(classes=2)
    model = Dropping()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model = adapt(model, 2)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("not-in-optimizer")
def loss_with_parameters_forgotten():
    class Centres(nn.Module):
        def __init__(self):
            super().__init__()
            self.centres = nn.Parameter(torch.randn(3, 8))

        def forward(self, h, y):
            return (h - self.centres[y]).pow(2).sum(1).mean()

    x, y = blobs()
    body, head, centre = nn.Linear(4, 8), nn.Linear(8, 3), Centres()
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)  # <- here
    for _ in range(6):
        optimizer.zero_grad()
        h = body(x).relu()
        (F.cross_entropy(head(h), y) + 0.1 * centre(h, y)).backward()
        optimizer.step()


@fault("other-tensors")
def optimizer_of_a_copy():
    x, y = blobs()
    model = mlp()
    backup = copy.deepcopy(model)
    optimizer = torch.optim.Adam(backup.parameters(), lr=0.01)  # <- here
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("never-reached")
def embedding_through_data():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = nn.Embedding(5, 4), nn.Linear(4, 3)

        def forward(self, tokens):
            vectors = self.embed(tokens).data  # <- here
            return self.out(vectors.mean(1))

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randint(5, (8, 3))), torch.randint(3, (8,))).backward()
        optimizer.step()


@fault("never-reached")
def gate_by_threshold():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.value = nn.Linear(4, 8), nn.Linear(4, 8)
            self.out = nn.Linear(8, 1)

        def forward(self, x):
            open_ = (self.gate(x) > 0).float()  # <- here
            return self.out(self.value(x) * open_)

    x, y = lines()
    model = Gated()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@fault("never-reached")
def forward_with_a_decorator():
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 8)

        @torch.no_grad()  # <- here
        def forward(self, x):
            return self.layer(x).relu()

    x, y = blobs()
    model = nn.Sequential(Encoder(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("zero-gradient")
def scores_rounded():
    x, y = lines()
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        out = torch.round(model(x))  # <- here
        F.mse_loss(out, y).backward()
        optimizer.step()


@fault("misspelt-freeze")
def module_attribute_instead_of_method():
    x, y = blobs()
    model = mlp()
    model[0].requires_grad = False  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("frozen")
def critic_never_thawed():
    generator, critic = mlp(2, 4), mlp(4, 1)
    g = torch.optim.Adam(generator.parameters(), lr=0.01)
    d = torch.optim.Adam(critic.parameters(), lr=0.01)
    real = torch.randn(8, 4)
    for step in range(6):
        d.zero_grad()
        fake = generator(torch.randn(8, 2))
        if step == 0:
            (critic(fake.detach()).mean() - critic(real).mean()).backward()
        d.step()
        critic.requires_grad_(False)  # <- here
        g.zero_grad()
        (-critic(fake).mean()).backward()
        g.step()


@fault("frozen-moves")
def statistics_of_a_frozen_part():
    body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
    model = nn.Sequential(body, nn.Linear(8, 3))
    for p in body.parameters():
        p.requires_grad = False
    optimizer = torch.optim.Adam(model[1].parameters(), lr=0.01)
    model.train()  # <- here
    for _ in range(6):
        x, y = blobs()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("left-in-eval")
def evaluation_after_each_epoch():
    def evaluate(model, x, y):
        model.eval()  # <- here
        with torch.no_grad():
            return (model(x).argmax(1) == y).float().mean().item()

    x, y = blobs()
    net = Dropping()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(4):
        for inputs, targets in batches(x, y):
            loss = F.cross_entropy(net(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        evaluate(net, x, y)


@fault("left-in-eval")
def trained_in_evaluation_from_the_start():
    x, y = blobs()
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
    model.eval()  # <- here
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("eval-in-train")
def evaluation_in_a_decorated_function():
    @torch.no_grad()
    def validate(net, data):
        total, right = 0, 0
        for x, y in data:
            scores = net(x)  # <- here
            right += int((scores.argmax(1) == y).sum())
            total += len(y)
        return right / total

    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for inputs, targets in batches(x, y):
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        validate(model, batches(x, y))


@fault("eval-in-train", "graph-in-validation")
def neither_eval_nor_no_grad():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out = model(x)  # <- here
        accuracy = (out.argmax(1) == y).float().mean().item()
        print(f"{accuracy:.2f}")


@fault("graph-in-validation")
def validation_loss_with_a_graph():
    x, y = blobs(24)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    best = 1e9
    for _ in range(5):
        model.train()
        loss = criterion(model(x[:16]), y[:16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        val_loss = criterion(model(x[16:]), y[16:])  # <- here
        if val_loss < best:
            best = val_loss


@fault("dead-units")
def killed_by_large_steps():
    x = torch.rand(32, 4) + 1
    y = -3 * x.sum(1, keepdim=True)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    for _ in range(20):
        optimizer.zero_grad()
        out = model(x)  # <- here
        F.mse_loss(out, y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()


@fault("hooks-pile-up")
def tensor_hooks_pile_up():
    def watch(model, log):
        for p in model.parameters():
            p.register_hook(lambda grad: log.append(grad.norm().item()))  # <- here

    x, y = blobs()
    model, log = mlp(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        watch(model, log)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
