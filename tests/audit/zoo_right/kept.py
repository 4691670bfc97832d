"""Right loops that subtract weights from weights, and ones that compute gradients without an update."""

import torch
from torch import nn
from torch.func import functional_call, grad
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import right


def train(model, penalty=lambda: 0.0, after=lambda: None, steps=5):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x, y = lines()
        optimizer.zero_grad()
        (F.mse_loss(model(x), y) + penalty()).backward()
        optimizer.step()
        after()


@right
def anchored_to_copies():
    model = mlp(out=1)
    anchor = {name: p.detach().clone() for name, p in model.named_parameters()}
    train(model, lambda: 0.1 * sum(((p - anchor[name]) ** 2).sum() for name, p in model.named_parameters()))


@right
def reptile_from_copies():
    model = mlp(out=1)
    for _ in range(4):
        start = {name: it.clone() for name, it in model.state_dict().items()}
        train(model, steps=3)
        end = model.state_dict()
        model.load_state_dict({name: start[name] + 0.2 * (end[name] - start[name]) for name in start})


@right
def first_order_steps_written_with_a_zero():
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        x, y = lines()
        params = dict(model.named_parameters())
        slopes = torch.autograd.grad(F.mse_loss(functional_call(model, params, (x,)), y), list(params.values()))
        moved = {
            name: (p - 0.1 * slope).detach() + (p - p.detach())
            for (name, p), slope in zip(params.items(), slopes, strict=True)
        }
        optimizer.zero_grad()
        F.mse_loss(functional_call(model, moved, lines()[:1]), y).backward()
        optimizer.step()


class Tied(nn.Module):
    """A model of words whose last layer is its first one's table."""

    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(7, 5), nn.Linear(5, 7, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(torch.tanh(self.embed(tokens)))


@right
def tie_that_is_looked_at():
    model, gaps = Tied(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        tokens = torch.randint(7, (12,))
        optimizer.zero_grad()
        F.cross_entropy(model(tokens[:-1]), tokens[1:]).backward()
        optimizer.step()
        gaps.append((model.out.weight - model.embed.weight).abs().max().item())


@right
def prototypes_pushed_apart_one_of_them_alone():
    x, _ = blobs()
    prototypes = nn.Parameter(torch.randn(1, 4))
    optimizer = torch.optim.SGD([prototypes], lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        gaps = (prototypes.unsqueeze(0) - prototypes.unsqueeze(1)).pow(2).sum()
        (torch.cdist(x, prototypes).min(1).values.mean() - 0.1 * gaps).backward()
        optimizer.step()


@right
def change_of_each_step_measured():
    model, moved = mlp(out=1), []
    kept = {name: it.clone() for name, it in model.state_dict().items()}

    def measure():
        now = model.state_dict()
        moved.append(sum((now[name] - kept[name]).norm().item() for name in now))
        kept.update({name: it.clone() for name, it in now.items()})

    train(model, after=measure)


def loss_of(params, model, x, y):
    return F.cross_entropy(functional_call(model, params, (x,)), y)


@right
def step_whose_result_is_taken():
    model = mlp()
    params = {name: p.detach().clone() for name, p in model.named_parameters()}

    def move(params, grads):
        return {name: params[name] - 0.1 * grads[name] for name in params}

    for _ in range(6):
        params = move(params, grad(loss_of)(params, model, *blobs()))
    functional_call(model, params, blobs()[:1])


@right
def step_by_hand_in_place():
    model = mlp()
    params = {name: p.detach().clone() for name, p in model.named_parameters()}

    def move(params, grads):
        for p, slope in zip(params.values(), grads.values(), strict=True):
            p -= 0.1 * slope
        return [p - 0.0 for p in params.values()]

    for _ in range(6):
        move(params, grad(loss_of)(params, model, *blobs()))
    functional_call(model, params, blobs()[:1])


@right
def information_of_weights_that_stay():
    model = mlp()
    params = {name: p.detach().clone() for name, p in model.named_parameters()}
    fisher = {name: torch.zeros_like(p) for name, p in params.items()}

    def gather(fisher, grads):
        for name, slope in grads.items():
            fisher[name] += slope**2 - fisher[name] * 0.1
        return fisher

    for _ in range(6):
        gather(fisher, grad(loss_of)(params, model, *blobs()))
    functional_call(model, params, blobs()[:1])


@right
def loss_called_for_the_clock():
    model = mlp()
    params = {name: p.detach().clone() for name, p in model.named_parameters()}
    grads = grad(loss_of)(params, model, *blobs())

    def gap(params, grads):
        return sum((params[name] - grads[name]).sum() for name in params)

    gap(params, grads)
    for _ in range(3):
        gap(params, grads)
    functional_call(model, params, blobs()[:1])


@right
def model_and_optimizer_made_anew():
    for _ in range(2):
        train(mlp(out=1))
    model = mlp(out=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    saved = {}
    for _ in range(2):
        for _ in range(4):
            x, y = lines()
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        model = mlp(out=1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])


@right
def worker_whose_gradients_are_handed_over():
    shared, worker = mlp(out=1), mlp(out=1)
    optimizer = torch.optim.SGD(shared.parameters(), lr=0.05)
    for _ in range(6):
        worker.load_state_dict(shared.state_dict())
        x, y = lines()
        worker.zero_grad()
        F.mse_loss(worker(x), y).backward()
        for own, theirs in zip(shared.parameters(), worker.parameters(), strict=True):
            own.grad = theirs.grad.clone()
        optimizer.step()


@right
def first_order_meta_learning_in_a_dict():
    meta = {"w": torch.randn(4, 1, requires_grad=True), "b": torch.zeros(1, requires_grad=True)}
    optimizer = torch.optim.Adam(meta.values(), lr=0.01)
    for _ in range(5):
        fast = {name: w.detach().clone().requires_grad_() for name, w in meta.items()}
        for _ in range(2):
            x, y = lines()
            slopes = torch.autograd.grad(F.mse_loss(x @ fast["w"] + fast["b"], y), list(fast.values()))
            with torch.no_grad():
                for w, slope in zip(fast.values(), slopes, strict=True):
                    w -= 0.1 * slope
        x, y = lines()
        slopes = torch.autograd.grad(F.mse_loss(x @ fast["w"] + fast["b"], y), list(fast.values()))
        for w, slope in zip(meta.values(), slopes, strict=True):
            w.grad = slope
        optimizer.step()


@right
def gradients_of_a_copy_read_at_the_end():
    model = mlp(out=1)
    train(model)
    for _ in range(4):
        other = mlp(out=1)
        x, y = lines()
        F.mse_loss(other(x), y).backward()
        torch.cat([p.grad.flatten() for p in other.parameters()]).norm().item()
