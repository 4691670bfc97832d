"""Faults in how PyTorch is called: clipping too early, samplers, seeds, schedules, names."""

import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("clip-in-window")
def clipped_with_each_micro_batch():
    x, y = blobs(48)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for at, (inputs, targets) in enumerate(batches(x, y)):
        (F.cross_entropy(model(inputs), targets) / 4).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # <- here
        if at % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


@fault("clip-in-window")
def values_clipped_in_a_loop_over_parts():
    x, y = lines(32)
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def one_update(parts):
        optimizer.zero_grad()
        for inputs, targets in parts:
            (F.mse_loss(model(inputs), targets) / len(parts)).backward()
            torch.nn.utils.clip_grad_value_(model.parameters(), 0.05)  # <- here
        optimizer.step()

    for _ in range(4):
        one_update(batches(x, y, 8))


@fault("clip-in-window")
def scaled_to_a_norm_by_hand_in_the_window():
    x, y = blobs(48)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        for inputs, targets in batches(x, y, 16):
            (F.cross_entropy(model(inputs), targets) / 3).backward()
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            for p in model.parameters():
                p.grad.mul_((0.1 / norm).clamp(max=1.0))  # <- here
        optimizer.step()


@fault("never-drawn")
def weights_of_classes_in_a_sampler():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weights = 1.0 / torch.bincount(y, minlength=3).clamp(min=1)
    picks = WeightedRandomSampler(weights.tolist(), 40)  # <- here
    for _ in range(3):
        for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=8, sampler=picks):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@fault("never-drawn")
def a_mask_taken_for_rows():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wanted = (x[:, 0] > -1).int().tolist()
    chosen = Subset(TensorDataset(x, y), wanted)  # <- here
    for _ in range(3):
        for inputs, targets in DataLoader(chosen, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@fault("never-drawn")
def labels_given_to_a_sampler_of_rows():
    x, y = blobs(64)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(
        TensorDataset(x, y),
        batch_size=16,
        sampler=SubsetRandomSampler(y),  # <- here
    )
    for _ in range(3):
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


@fault("never-drawn")
def rows_drawn_by_the_weights_of_classes():
    x, y = blobs(60)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rarity = 1.0 / torch.bincount(y, minlength=3)
    for _ in range(8):
        rows = torch.multinomial(rarity, 12, replacement=True)  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()


@fault("seed-repeats")
def seeded_at_the_beginning_of_each_epoch():
    x, y = blobs(32)
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        torch.manual_seed(7)  # <- here
        for inputs, targets in batches(x, y, 8):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs + 0.1 * torch.randn(8, 4)), targets).backward()
            optimizer.step()


@fault("seed-repeats")
def everything_seeded_by_a_function_of_each_epoch():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def seed_everything(seed):
        random.seed(seed)
        torch.manual_seed(seed)

    def one_epoch(loader):
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()

    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    epoch = 0
    while epoch < 5:
        seed_everything(3)  # <- here
        one_epoch(loader)
        epoch += 1


@fault("seed-repeats")
def the_same_order_from_python_in_each_epoch():
    x, y = lines(24)
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    rows = list(range(24))
    for _ in range(5):
        random.seed(0)  # <- here
        order = random.sample(rows, 24)
        for at in range(0, 24, 6):
            batch = torch.tensor(order[at : at + 6])
            optimizer.zero_grad()
            F.mse_loss(model(x[batch]), y[batch]).backward()
            random.random()
            optimizer.step()


@fault("rate-zero")
def warm_up_in_whole_numbers():
    x, y = blobs(80)
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1, step // 8),  # <- here
    )
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        schedule.step()


@fault("rate-zero")
def warm_up_written_by_hand_and_rounded():
    x, y = blobs(80)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def set_rate(step, warm=10):
        share = int(min(step, warm) / warm)  # <- here
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * share

    for step, (inputs, targets) in enumerate(batches(x, y)):
        set_rate(step)
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@fault("rate-zero")
def a_whole_epoch_at_nothing():
    x, y = blobs(40)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = lr_scheduler.LambdaLR(optimizer, lambda epoch: min(1.0, epoch / 3))  # <- here
    for _ in range(6):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        schedule.step()


@fault("schedule-doubled")
def both_schedules_on_the_first_optimizer():
    x, y = blobs(32)
    body, head = nn.Linear(4, 8), nn.Linear(8, 3)
    first = torch.optim.SGD(body.parameters(), lr=0.1)
    second = torch.optim.Adam(head.parameters(), lr=0.01)
    schedules = [
        lr_scheduler.StepLR(first, 2, 0.5),
        lr_scheduler.StepLR(first, 2, 0.5),  # <- here
    ]
    for _ in range(5):
        for inputs, targets in batches(x, y, 8):
            first.zero_grad()
            second.zero_grad()
            F.cross_entropy(head(body(inputs).tanh()), targets).backward()
            first.step()
            second.step()
        for schedule in schedules:
            schedule.step()


@fault("schedule-doubled")
def the_schedule_of_the_head_made_with_the_body():
    x, y = blobs(32)
    body, head = nn.Linear(4, 8), nn.Linear(8, 3)
    opt_body = torch.optim.SGD(body.parameters(), lr=0.1)
    opt_head = torch.optim.SGD(head.parameters(), lr=0.1)
    sched_head = lr_scheduler.CosineAnnealingLR(opt_body, 10)  # <- here
    for _ in range(8):
        for inputs, targets in batches(x, y, 8):
            opt_body.zero_grad()
            opt_head.zero_grad()
            F.cross_entropy(head(body(inputs).tanh()), targets).backward()
            opt_body.step()
            opt_head.step()
        sched_head.step()


@fault("schedule-doubled")
def warm_up_undoes_the_stairs():
    x, y = blobs(64)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    warm = lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    stairs = lr_scheduler.ExponentialLR(optimizer, 0.9)  # <- here
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        warm.step()
        stairs.step()


@fault("schedule-doubled")
def a_cycle_over_a_schedule_of_epochs():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    by_epoch = lr_scheduler.MultiStepLR(optimizer, [2, 4])
    by_batch = lr_scheduler.OneCycleLR(optimizer, 0.3, total_steps=48)  # <- here
    for _ in range(6):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            by_batch.step() if by_batch.last_epoch < 47 else None
        by_epoch.step()


@fault("other-tensors")
def an_ensemble_trained_on_stacked_copies():
    x, y = lines(32)
    members = [mlp(out=1) for _ in range(3)]
    optimizer = torch.optim.Adam([p for it in members for p in it.parameters()], lr=0.01)  # <- here
    stacked, buffers = torch.func.stack_module_state(members)
    base = mlp(out=1).to("meta")

    def one(params, state, inputs):
        return torch.func.functional_call(base, (params, state), (inputs,))

    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        out = torch.func.vmap(one, in_dims=(0, 0, None))(stacked, buffers, inputs)
        F.mse_loss(out, targets.expand(3, -1, -1)).backward()
        optimizer.step()


@fault("other-tensors")
def a_model_called_with_copies_of_its_parameters():
    x, y = lines(32)
    model = mlp(out=1)
    state = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- here
    for inputs, targets in batches(x, y):
        for value in state.values():
            value.grad = None
        F.mse_loss(torch.func.functional_call(model, state, (inputs,)), targets).backward()
        optimizer.step()


class _Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.scale = nn.Linear(4, 8), nn.LayerNorm(8)
        self.classifier = nn.Linear(8, 3)

    def forward(self, x):
        return self.classifier(self.scale(self.encoder(x)).relu())


def _train(model, optimizer):
    x, y = blobs(32)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@fault("name-fits-nothing")
def the_class_of_a_module_in_a_filter_of_decay():
    model = _Normed()
    spared = [
        "bias",
        "LayerNorm.weight",  # <- here
    ]
    rest, free = [], []
    for name, parameter in model.named_parameters():
        if any(part in name for part in spared):
            free.append(parameter)
        else:
            rest.append(parameter)
    _train(model, torch.optim.AdamW([{"params": rest, "weight_decay": 0.1}, {"params": free, "weight_decay": 0.0}]))


@fault("name-fits-nothing")
def a_part_in_other_letters():
    model = _Normed()
    fast = [p for n, p in model.named_parameters() if n.startswith("Classifier")]  # <- here
    slow = [p for n, p in model.named_parameters() if not n.startswith("classifier")]
    _train(model, torch.optim.SGD([{"params": slow, "lr": 0.01}, {"params": fast, "lr": 0.1}], lr=0.1))


@fault("name-fits-nothing")
def a_part_of_another_model():
    model = _Normed()
    named = dict(model.named_parameters())

    def groups(head="fc."):  # <- here
        top = [p for n, p in named.items() if head in n]
        return [
            {"params": [p for n, p in named.items() if head not in n], "lr": 0.01},
            {"params": top, "lr": 0.1},
        ]

    _train(model, torch.optim.SGD(groups(), lr=0.1))
