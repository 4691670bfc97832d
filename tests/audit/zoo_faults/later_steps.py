"""More faults in the order of a step, in other styles: by hand, in functions, in classes, with several optimizers."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("no-zero-grad")
def update_by_hand_without_clearing():
    x, y = lines(width=1)
    w = torch.zeros(1, 1, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    for _ in range(8):
        loss = (x @ w + b - y).pow(2).mean()
        loss.backward()  # <- here
        with torch.no_grad():
            w -= 0.01 * w.grad
            b -= 0.01 * b.grad


@fault("no-zero-grad")
def update_through_data_without_clearing():
    x, y = lines()
    model = nn.Linear(4, 1)
    for _ in range(8):
        loss = F.mse_loss(model(x), y)
        loss.backward()  # <- here
        for p in model.parameters():
            p.data -= 0.01 * p.grad.data


@fault("no-zero-grad")
def closure_without_clearing():
    x, y = lines()
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        loss = F.mse_loss(model(x), y)
        loss.backward()  # <- here
        return loss

    for _ in range(4):
        optimizer.step(closure)


@fault("no-zero-grad")
def the_other_optimizer_is_cleared():
    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    one = torch.optim.SGD(encoder.parameters(), lr=0.01)
    two = torch.optim.SGD(decoder.parameters(), lr=0.01)
    for _ in range(8):
        x = torch.randn(8, 4)
        one.zero_grad()
        one.zero_grad()
        F.mse_loss(decoder(encoder(x)), x).backward()  # <- here
        one.step()
        two.step()


class Fitter:
    """A trainer whose methods are in the wrong order, or miss something."""

    def __init__(self, clear=True):
        self.net = mlp()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=0.01)
        self.clear = clear

    def update(self, loss):
        loss.backward()
        self.opt.step()

    def fit(self, loader):
        for x, y in loader:
            self.update(F.cross_entropy(self.net(x), y))


@fault("no-zero-grad")
def trainer_that_never_clears():
    class Trainer(Fitter):
        def update(self, loss):
            loss.backward()  # <- here
            self.opt.step()

    x, y = blobs(32)
    Trainer().fit(DataLoader(TensorDataset(x, y), 4))


@fault("zero-before-step")
def trainer_that_clears_too_early():
    class Trainer(Fitter):
        def update(self, loss):
            loss.backward()
            for p in self.net.parameters():
                p.grad = None  # <- here
            self.opt.step()

    x, y = blobs(32)
    Trainer().fit(DataLoader(TensorDataset(x, y), 4))


@fault("zero-before-step")
def cleared_in_a_helper():
    def reset(model):
        model.zero_grad()  # <- here

    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        F.cross_entropy(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        reset(model)
        optimizer.step()


@fault("step-first")
def loss_step_clear_pass():
    x, y = blobs()
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y) * 2:
        loss = F.cross_entropy(model(inputs), targets)
        optimizer.step()  # <- here
        loss.backward()
        optimizer.zero_grad()


@fault("step-without-backward", "graph-in-validation")
def the_pass_is_in_a_branch_never_taken():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    training = False
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if training:
            loss.backward()
        optimizer.step()  # <- here


@fault("clip-after-step")
def values_clipped_too_late():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(6):
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        nn.utils.clip_grad_value_(model.parameters(), 0.1)  # <- here
        optimizer.zero_grad()


@fault("clip-nothing")
def clipped_after_clearing():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(6):
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here


@fault("step-scaled")
def stepping_past_the_scaler():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(6):
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        optimizer.step()  # <- here


@fault("clip-scaled")
def clipped_by_value_while_scaled():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(6):
        with torch.autocast("cpu"):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)  # <- here
        scaler.step(optimizer)
        scaler.update()


@fault("scheduler-first")
def cosine_before_the_first_epoch():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    for _ in range(4):
        cosine.step()  # <- here
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@fault("not-divided")
def micro_batches_in_an_inner_loop():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    accumulation_steps = 4
    for _ in range(4):
        for _ in range(accumulation_steps):
            x, y = blobs(4)
            loss = F.cross_entropy(model(x), y)
            loss.backward()  # <- here
        optimizer.step()
        optimizer.zero_grad()


@fault("leftover-window")
def the_rest_spills_into_the_next_epoch():
    x, y = blobs(20)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        for i, (inputs, targets) in enumerate(batches(x, y)):
            (F.cross_entropy(model(inputs), targets) / 2).backward()
            if (i + 1) % 2 == 0:  # <- here
                optimizer.step()
                optimizer.zero_grad()


@fault("same-loss-twice")
def part_and_whole():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        out = model(x)
        main, extra = F.cross_entropy(out, y), out.pow(2).mean()
        total = main + extra
        main.backward(retain_graph=True)
        total.backward()  # <- here
        optimizer.step()


@fault("no-zero-grad")
def only_the_generator_is_cleared():
    generator, critic = mlp(2, 4), mlp(4, 1)
    g = torch.optim.Adam(generator.parameters(), lr=0.01)
    d = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(8):
        fake = generator(torch.randn(8, 2))
        loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(torch.randn(8, 4))).mean()
        loss.backward()
        d.step()
        g.zero_grad()
        F.softplus(-critic(fake)).mean().backward()  # <- here
        g.step()
