"""Right loops in the styles of well-known training code: functions, trainers, callbacks, configurations."""

import contextlib
import math
from collections import defaultdict, deque

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import Dropping, blobs, lines, mlp
from tests.audit.registry import right


class _Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.MultiheadAttention(width, 2, dropout=0.1, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        h = self.norm(x)
        mask = torch.full((x.size(1), x.size(1)), float("-inf")).triu(1)
        return x + self.feed(x + self.mix(h, h, h, attn_mask=mask, need_weights=False)[0])


class _LanguageModel(nn.Module):
    def __init__(self, words=11, width=8):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(_Block(width) for _ in range(2))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens, targets=None):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


@right
def language_model_with_micro_steps():
    data = torch.randint(11, (200,))
    model = _LanguageModel()

    def batch():
        starts = torch.randint(180, (4,))
        return torch.stack([data[i : i + 8] for i in starts]), torch.stack([data[i + 1 : i + 9] for i in starts])

    @torch.no_grad()
    def estimate():
        model.eval()
        losses = torch.zeros(2)
        for k in range(2):
            x, y = batch()
            _, loss = model(x, y)
            losses[k] = loss.item()
        model.train()
        return losses.mean()

    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=1e-3
    )
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    ctx = torch.amp.autocast("cpu", dtype=torch.bfloat16)
    steps = 2
    x, y = batch()
    for iteration in range(5):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (1 + math.cos(iteration / 5))
        if iteration % 2 == 0:
            estimate()
        for _ in range(steps):
            with ctx:
                _, loss = model(x, y)
                loss = loss / steps
            x, y = batch()
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        loss.item() * steps


class _Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.dropout = nn.Dropout2d(0.25)
        self.fc = nn.Linear(36, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        x = torch.flatten(self.dropout(x), 1)
        return F.log_softmax(self.fc(F.dropout(x, 0.1, self.training)), dim=1)


def _train(model, loader, optimizer, epoch):
    model.train()
    for index, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if index % 2 == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}")


def _test(model, loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return test_loss / len(loader.dataset), correct


@right
def digits_in_functions():
    data = TensorDataset(torch.randn(16, 1, 8, 8), torch.randint(5, (16,)))
    loader = DataLoader(data, batch_size=4, shuffle=True)
    model = _Digits()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(3):
        _train(model, loader, optimizer, epoch)
        _test(model, loader)
        scheduler.step()


class _Trainer:
    """One object that owns everything, as many projects have it."""

    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.1, total_steps=20)
        self.history = defaultdict(list)
        self.recent = deque(maxlen=5)

    def training_step(self, batch):
        x, y = batch
        out = self.model(x)
        loss = F.cross_entropy(out, y, label_smoothing=0.1)
        with torch.no_grad():
            accuracy = (out.argmax(1) == y).float().mean()
        return {"loss": loss, "accuracy": accuracy}

    def validate(self):
        was = self.model.training
        self.model.eval()
        with torch.inference_mode():
            values = [F.cross_entropy(self.model(x), y) for x, y in self.loader]
        self.model.train(was)
        return torch.stack(values).mean().item()

    def fit(self, epochs):
        for _ in range(epochs):
            self.model.train()
            for batch in self.loader:
                result = self.training_step(batch)
                self.optimizer.zero_grad()
                result["loss"].backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
                self.optimizer.step()
                self.schedule.step()
                self.history["accuracy"].append(result["accuracy"])
                self.recent.append(result["loss"].item())
            self.history["validation"].append(self.validate())


@right
def trainer_object():
    x, y = blobs()
    _Trainer(Dropping(), DataLoader(TensorDataset(x, y), 4)).fit(3)


class _Callback:
    def before_batch(self, learner): ...
    def after_batch(self, learner): ...


class _Recorder(_Callback):
    def __init__(self):
        self.losses = []

    def after_batch(self, learner):
        self.losses.append(learner.loss.detach().clone())


class _Learner:
    def __init__(self, model, batches, loss_func, callbacks):
        self.model, self.batches, self.loss_func, self.callbacks = model, batches, loss_func, callbacks
        self.opt = torch.optim.SGD(model.parameters(), 0.1)

    def __call__(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self)

    def one_batch(self):
        self("before_batch")
        self.pred = self.model(self.xb)
        self.loss = self.loss_func(self.pred, self.yb)
        if self.model.training:
            self.loss.backward()
            self.opt.step()
            self.opt.zero_grad()
        self("after_batch")

    def fit(self, epochs):
        for _ in range(epochs):
            for train in (True, False):
                self.model.train(train)
                with contextlib.nullcontext() if train else torch.no_grad():
                    for batch in self.batches:
                        self.xb, self.yb = batch
                        self.one_batch()


@right
def callbacks():
    x, y = blobs()
    batches = list(zip(x.split(4), y.split(4), strict=True))
    _Learner(Dropping(), batches, F.cross_entropy, [_Recorder()]).fit(2)


@right
def output_objects_and_accumulation():
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.pooler, self.head = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, inputs=None, labels=None):
            hidden = self.body(inputs).relu()
            logits = self.head(hidden)
            loss = F.cross_entropy(logits, labels) if labels is not None else None
            return {"loss": loss, "logits": logits, "pooled": self.pooler(hidden)}

    x, y = blobs(24)
    model, every, total = Wrapped(), 3, torch.tensor(0.0)
    model.zero_grad()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(x, y), 4)
    for _ in range(2):
        for step, (inputs, labels) in enumerate(loader):
            model.train()
            loss = model(inputs=inputs, labels=labels)["loss"] / every
            loss.backward()
            total += loss.detach()
            if (step + 1) % every == 0 or step + 1 == len(loader):
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                model.zero_grad()


@right
def words_with_repackaged_state():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.rnn, self.decoder = nn.Embedding(7, 5), nn.LSTM(5, 6, 2, dropout=0.2), nn.Linear(6, 7)

        def forward(self, tokens, hidden):
            out, hidden = self.rnn(self.encoder(tokens), hidden)
            return self.decoder(out).view(-1, 7), hidden

    def repackage(h):
        return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage(v) for v in h)

    model, rate = Words(), 0.5
    hidden = (torch.zeros(2, 3, 6), torch.zeros(2, 3, 6))
    for _ in range(6):
        data, targets = torch.randint(7, (4, 3)), torch.randint(7, (12,))
        model.zero_grad()
        hidden = repackage(hidden)
        output, hidden = model(data, hidden)
        loss = F.cross_entropy(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-rate)


@right
def sequence_to_sequence():
    encoder, decoder, out = nn.GRU(3, 6), nn.GRUCell(3, 6), nn.Linear(6, 3)
    one = torch.optim.SGD(encoder.parameters(), lr=0.05)
    two = torch.optim.SGD([*decoder.parameters(), *out.parameters()], lr=0.05)
    for step in range(5):
        source, target = torch.randn(4, 2, 3), torch.randn(4, 2, 3)
        one.zero_grad()
        two.zero_grad()
        _, h = encoder(source)
        h, given, loss = h[0], torch.zeros(2, 3), 0
        for wanted in target:
            h = decoder(given, h)
            said = out(h)
            loss += F.mse_loss(said, wanted)
            given = wanted if step % 2 else said.detach()
        loss.backward()
        one.step()
        two.step()


@right
def best_state_and_plateau():
    x, y = lines(24)
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    best, state, patience = float("inf"), None, 0
    for _ in range(6):
        model.train()
        optimizer.zero_grad()
        F.mse_loss(model(x[:16]), y[:16]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            value = F.mse_loss(model(x[16:]), y[16:]).item()
        plateau.step(value)
        if value < best:
            best, state, patience = value, {k: v.clone() for k, v in model.state_dict().items()}, 0
        else:
            patience += 1
            if patience > 3:
                break
    model.load_state_dict(state)


@right
def several_folds():
    x, y = blobs(24)
    scores = []
    for fold in range(3):
        held = torch.arange(24) % 3 == fold
        model = Dropping()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(4):
            model.train()
            optimizer.zero_grad()
            F.cross_entropy(model(x[~held]), y[~held]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            scores.append((model(x[held]).argmax(1) == y[held]).float().mean().item())


@right
def sum_over_single_samples():
    x, y = lines(4)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        for row, wanted in zip(x, y, strict=True):
            loss = (model(row) - wanted).pow(2).sum()
            loss.backward()
        optimizer.step()


@right
def low_rank_adapters():
    class Adapter(nn.Module):
        def __init__(self, base, rank=2):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.down = nn.Parameter(torch.randn(base.in_features, rank) * 0.1)
            self.up = nn.Parameter(torch.zeros(rank, base.out_features))

        def forward(self, x):
            return self.base(x) + x @ self.down @ self.up

    x, y = blobs()
    model = nn.Sequential(Adapter(nn.Linear(4, 8)), nn.Tanh(), Adapter(nn.Linear(8, 3)))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.05)
    for _ in range(6):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def activations_by_hooks():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = {}
    once = model[0].register_forward_hook(lambda module, given, out: kept.update(first=out.detach()))
    for _ in range(5):
        handle = model[1].register_forward_hook(lambda module, given, out: kept.update(second=out.detach()))
        out = model(x)
        out.register_hook(lambda grad: kept.update(grad=grad.norm().item()))
        optimizer.zero_grad()
        F.cross_entropy(out, y).backward()
        optimizer.step()
        handle.remove()
    once.remove()


@right
def uncertainty_weighting():
    trunk, one, two = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 1)
    weights = nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.Adam([*trunk.parameters(), *one.parameters(), *two.parameters(), weights], lr=0.02)
    for _ in range(6):
        x, y = blobs()
        h = F.relu(trunk(x))
        losses = torch.stack([F.cross_entropy(one(h), y), F.mse_loss(two(h).squeeze(-1), x.sum(1))])
        total = (losses * torch.exp(-weights) + weights).sum()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()


@right
def gradient_surgery():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        out = model(x)
        losses = [F.cross_entropy(out, y), out.pow(2).mean()]
        grads = [torch.autograd.grad(loss, list(model.parameters()), retain_graph=True) for loss in losses]
        optimizer.zero_grad()
        for p, g, h in zip(model.parameters(), *grads, strict=True):
            dot = (g * h).sum()
            p.grad = g + h - (dot / (h * h).sum().clamp_min(1e-12) * h if dot < 0 else 0)
        optimizer.step()
