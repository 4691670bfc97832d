"""Right loops that call PyTorch as the faulty ones of the same name do, and mean it."""

import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def clipped_for_each_sample_and_then_added():
    x, y = blobs(16)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        total = [torch.zeros_like(p) for p in model.parameters()]
        for one, target in zip(inputs.split(1), targets.split(1), strict=True):
            model.zero_grad()
            F.cross_entropy(model(one), target).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for kept, p in zip(total, model.parameters(), strict=True):
                kept += p.grad
        for kept, p in zip(total, model.parameters(), strict=True):
            p.grad = (kept + 0.01 * torch.randn_like(kept)) / 4
        optimizer.step()


@right
def two_norms_one_only_read():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    norms = []
    for at, (inputs, targets) in enumerate(batches(x, y)):
        (F.cross_entropy(model(inputs), targets) / 2).backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), float("inf")).item())
        if at % 2:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()


@right
def gradients_masked_after_each_micro_batch():
    x, y = blobs(32)
    model = mlp()
    masks = [(torch.rand_like(p) > 0.3).float() for p in model.parameters()]
    with torch.no_grad():
        for p, mask in zip(model.parameters(), masks, strict=True):
            p.mul_(mask)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for at, (inputs, targets) in enumerate(batches(x, y)):
        (F.cross_entropy(model(inputs), targets) / 2).backward()
        for p, mask in zip(model.parameters(), masks, strict=True):
            p.grad.mul_(mask)
        if at % 2:
            optimizer.step()
            optimizer.zero_grad()


@right
def a_weight_for_each_row():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weights = (1.0 / torch.bincount(y, minlength=3).clamp(min=1))[y]
    picks = WeightedRandomSampler(weights, 24)
    for _ in range(3):
        for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=8, sampler=picks):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def rare_rows_named_many_times():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(x, y)
    rare = torch.nonzero(y == 0).flatten().tolist() or [0]
    rows = (rare * 40)[:20] + list(range(20))
    held_out = Subset(data, range(30, 40))
    for _ in range(3):
        for inputs, targets in DataLoader(data, batch_size=8, sampler=SubsetRandomSampler(rows)):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        with torch.no_grad():
            sum(F.cross_entropy(model(inputs), targets) for inputs, targets in DataLoader(held_out, batch_size=5))


@right
def classes_drawn_by_their_weights():
    x, y = blobs(60)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows_of = [torch.nonzero(y == label).flatten() for label in range(3)]
    weights = torch.tensor([0.5, 0.25, 0.25])
    for _ in range(8):
        drawn = torch.multinomial(weights, 12, replacement=True).tolist()
        rows = torch.stack([rows_of[label][torch.randint(len(rows_of[label]), ())] for label in drawn])
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()


@right
def the_same_seed_for_each_setting():
    x, y = blobs(32)
    for rate in (0.3, 0.1, 0.03, 0.01):
        torch.manual_seed(0)
        random.seed(0)
        model = Dropping()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def another_seed_in_each_epoch():
    x, y = blobs(32)
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        torch.manual_seed(100 + epoch)
        for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@right
def the_same_noise_for_each_evaluation():
    x, y = lines(24)
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    measured = []

    @torch.no_grad()
    def robustness():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return F.mse_loss(model(x + 0.1 * torch.randn_like(x)), y).item()

    for _ in range(5):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.mse_loss(model(inputs + 0.01 * torch.randn_like(inputs)), targets).backward()
            optimizer.step()
        measured.append(robustness())


@right
def a_generator_of_its_own_set_back_for_each_preview():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        torch.manual_seed(1)
        preview = torch.randn(4, 4)
        with torch.no_grad():
            model(preview)
        generator = torch.Generator().manual_seed(2)
        torch.randn(3, generator=generator)


@right
def an_ensemble_whose_stacked_copies_are_trained():
    x, y = lines(32)
    members = [mlp(out=1) for _ in range(3)]
    stacked, buffers = torch.func.stack_module_state(members)
    optimizer = torch.optim.Adam(stacked.values(), lr=0.01)
    base = mlp(out=1).to("meta")

    def one(params, state, inputs):
        return torch.func.functional_call(base, (params, state), (inputs,))

    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        out = torch.func.vmap(one, in_dims=(0, 0, None))(stacked, buffers, inputs)
        F.mse_loss(out, targets.expand(3, -1, -1)).backward()
        optimizer.step()


@right
def exact_copies_that_the_optimizer_gets_gradients_for():
    x, y = lines(32)
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        state = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
        F.mse_loss(torch.func.functional_call(model, state, (inputs,)), targets).backward()
        for name, p in model.named_parameters():
            p.grad = state[name].grad
        optimizer.step()


@right
def warm_up_from_nothing_in_fractions():
    x, y = blobs(80)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 ** (step // 10) * min(1.0, step / 8))
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        schedule.step()


@right
def one_optimizer_waits_at_nothing():
    x, y = blobs(64)
    body, head = nn.Linear(4, 8), nn.Linear(8, 3)
    slow = torch.optim.SGD(body.parameters(), lr=0.1)
    fast = torch.optim.SGD(head.parameters(), lr=0.1)
    wait = lr_scheduler.LambdaLR(slow, lambda step: float(step >= 8))
    for inputs, targets in batches(x, y):
        slow.zero_grad()
        fast.zero_grad()
        F.cross_entropy(head(body(inputs).tanh()), targets).backward()
        slow.step()
        fast.step()
        wait.step()


@right
def a_schedule_that_ends_at_nothing():
    x, y = blobs(64)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = lr_scheduler.PolynomialLR(optimizer, total_iters=14)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        schedule.step()


@right
def two_schedules_that_go_on_from_each_other():
    x, y = blobs(32)
    body, head = nn.Linear(4, 8), nn.Linear(8, 3)
    falling = torch.optim.SGD(body.parameters(), lr=0.1)
    constant = torch.optim.Adam(head.parameters(), lr=0.01)
    smooth = lr_scheduler.ExponentialLR(falling, 0.95)
    stairs = lr_scheduler.MultiStepLR(falling, [3, 6], 0.5)
    for _ in range(8):
        for inputs, targets in batches(x, y, 8):
            falling.zero_grad()
            constant.zero_grad()
            F.cross_entropy(head(body(inputs).tanh()), targets).backward()
            falling.step()
            constant.step()
        smooth.step()
        stairs.step()


@right
def warm_up_first_and_then_the_plateau():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    warm = lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for epoch in range(9):
        total = 0.0
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch < 3:
            warm.step()
        else:
            plateau.step(total)


@right
def a_schedule_for_each_player():
    x, y = blobs(32)
    body, head = nn.Linear(4, 8), nn.Linear(8, 3)
    optimizer_body = torch.optim.SGD(body.parameters(), lr=0.1)
    optimizer_head = torch.optim.SGD(head.parameters(), lr=0.1)
    schedules = {
        "body": lr_scheduler.StepLR(optimizer_body, 2, 0.5),
        "head": lr_scheduler.StepLR(optimizer_head, 2, 0.5),
    }
    for _ in range(5):
        for inputs, targets in batches(x, y, 8):
            optimizer_body.zero_grad()
            optimizer_head.zero_grad()
            F.cross_entropy(head(body(inputs).tanh()), targets).backward()
            optimizer_body.step()
            optimizer_head.step()
        for schedule in schedules.values():
            schedule.step()


class _Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.norm1 = nn.Linear(4, 8), nn.LayerNorm(8)
        self.classifier = nn.Linear(8, 3)

    def forward(self, x):
        return self.classifier(self.norm1(self.encoder(x)).relu())


def _train(model, optimizer):
    x, y = blobs(32)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@right
def a_filter_of_decay_for_any_model():
    spared = ("bias", "LayerNorm.weight", "layer_norm", "norm", "bn", "embedding")
    for model in (_Normed(), mlp(), nn.Sequential(nn.Linear(4, 3, bias=False))):
        named = list(model.named_parameters())
        free = [p for n, p in named if any(part in n for part in spared)]
        rest = [p for n, p in named if not any(part in n for part in spared)]
        _train(model, torch.optim.AdamW([{"params": rest, "weight_decay": 0.1}, {"params": free, "weight_decay": 0.0}]))


@right
def names_that_other_names_stand_in_for():
    model = _Normed()
    top = [p for n, p in model.named_parameters() if "head" in n or "Classifier" in n or "classifier" in n]
    body = [p for n, p in model.named_parameters() if not n.startswith(("head", "classifier"))]
    _train(model, torch.optim.SGD([{"params": body, "lr": 0.01}, {"params": top, "lr": 0.1}], lr=0.1))
    for name, parameter in model.named_parameters():
        if "lora" in name:
            parameter.requires_grad_(True)
