"""Functions with a slope of their own, learned weights that are held, and schedules whose factors are small."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal

from tests.audit.parts import batches, blobs, lines, mlp
from tests.audit.registry import right


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)
        return grad * (gate + x * gate * (1 - gate))


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).float()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad / (1 + 10 * x.abs()) ** 2


class RoundedSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.sigmoid(x)
        ctx.save_for_backward(out)
        return (out * 15).round() / 15

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return grad * out * (1 - out)


class GuidedRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad.clamp(min=0) * (x > 0)


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class RowNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        size = x.norm(dim=1, keepdim=True)
        out = x / size
        ctx.save_for_backward(out, size)
        return out

    @staticmethod
    def backward(ctx, grad):
        out, size = ctx.saved_tensors
        return (grad - out * (grad * out).sum(1, keepdim=True)) / size


class SharpTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(3).tanh_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return grad * 3 * (1 - out * out)


def _trained_with(function, *more):
    x, y = blobs(96)
    first, last = nn.Linear(4, 32), nn.Linear(32, 3)
    optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=0.01)
    for _ in range(5):
        for inputs, targets in batches(x, y, 16):
            optimizer.zero_grad()
            F.cross_entropy(last(function.apply(first(inputs), *more)), targets).backward()
            optimizer.step()


@right
def a_swish_of_ones_own():
    _trained_with(Swish)


@right
def a_spike_with_a_slope_of_its_own():
    _trained_with(Spike)


@right
def a_tanh_in_place():
    _trained_with(SharpTanh)


@right
def a_rounded_sigmoid():
    _trained_with(RoundedSigmoid)


@right
def a_guided_relu():
    _trained_with(GuidedRelu)


@right
def a_gradient_turned_round():
    _trained_with(Reversed, 0.3)


@right
def rows_of_length_one():
    _trained_with(RowNorm)


def _weighed(combine, *weights):
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.Adam([*model.parameters(), *weights], lr=0.01)
    for _ in range(4):
        for inputs, targets in batches(x, y):
            scores = model(inputs)
            loss = combine(F.cross_entropy(scores, targets), scores.pow(2).mean(), *weights)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@right
def weights_with_a_term_of_their_own():
    _weighed(
        lambda one, two, s: sum(torch.exp(-a) * task + a for a, task in zip(s, (one, two), strict=True)),
        nn.Parameter(torch.zeros(2)),
    )


@right
def spreads_with_their_logarithm():
    _weighed(
        lambda one, two, s: (torch.stack([one, two]) / (2 * s**2)).sum() + torch.log(s.prod()),
        nn.Parameter(torch.ones(2)),
    )


@right
def a_spread_with_a_softened_logarithm():
    _weighed(
        lambda one, two, a, b: 0.5 / a**2 * one + torch.log1p(a**2) + 0.5 / b**2 * two + torch.log1p(b**2),
        nn.Parameter(torch.ones(())),
        nn.Parameter(torch.ones(())),
    )


@right
def two_shares_of_one():
    _weighed(
        lambda one, two, a: torch.sigmoid(a) * one + (1 - torch.sigmoid(a)) * two,
        nn.Parameter(torch.zeros(())),
    )


@right
def shares_by_softmax():
    _weighed(
        lambda one, two, a: (torch.softmax(a, 0) * torch.stack([one, two])).sum(),
        nn.Parameter(torch.zeros(2)),
    )


@right
def a_multiplier_that_rises():
    x, y = lines(32)
    model, log_lam = nn.Linear(x.shape[1], 1), torch.zeros((), requires_grad=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    ascent = torch.optim.SGD([log_lam], lr=0.05, maximize=True)
    for _ in range(4):
        for inputs, targets in batches(x, y):
            error = F.mse_loss(model(inputs), targets)
            size = model.weight.pow(2).sum()
            loss = error + log_lam.exp() * size
            optimizer.zero_grad()
            ascent.zero_grad()
            loss.backward()
            optimizer.step()
            ascent.step()


@right
def a_long_warm_up_that_is_hardly_begun():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / 1000)
    for _ in range(6):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            schedule.step()


@right
def a_rate_as_a_factor_of_one():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 3e-3 * 0.99**step)
    for _ in range(6):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            schedule.step()


@right
def a_part_that_rests_in_each_third_round():
    x, y = blobs(32)
    model, head = mlp(), nn.Linear(4, 3)
    first = torch.optim.SGD(model.parameters(), lr=0.05)
    second = torch.optim.SGD(head.parameters(), lr=0.05)
    for i in range(18):
        first.zero_grad()
        F.cross_entropy(model(x), y).backward()
        first.step()
        if i % 3:
            second.zero_grad()
            (F.cross_entropy(head(x), y) / 3).backward()
            second.step()


@right
def targets_turned_to_the_order_of_their_scores():
    tokens = torch.randint(7, (6, 10))
    table, recurrent, out = nn.Embedding(7, 8), nn.GRU(8, 8), nn.Linear(8, 7)
    parts = nn.ModuleList([table, recurrent, out])
    optimizer = torch.optim.Adam(parts.parameters(), lr=0.01)
    for step in range(6):
        given, target = tokens[:, :-1], tokens[:, 1:]
        states, _ = recurrent(table(given.t()))
        scores = out(states)
        if step % 2:
            loss = F.cross_entropy(scores.flatten(0, 1), target.t().flatten())
        else:
            loss = F.cross_entropy(scores.transpose(0, 1).reshape(-1, 7), target.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def gradients_of_tasks_taken_one_by_one():
    x, y = blobs(32)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        kept = []
        for inputs, targets in batches(x, y):
            model.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            kept.append([p.grad.clone() for p in model.parameters()])
        for p, *grads in zip(model.parameters(), *kept, strict=True):
            p.grad = torch.stack(grads).sum(0)
        optimizer.step()


@right
def an_optimizer_that_clips_before_its_own_step():
    class Limited(torch.optim.SGD):
        def step(self, closure=None):
            nn.utils.clip_grad_norm_([p for group in self.param_groups for p in group["params"]], 0.5)
            return super().step(closure)

    x, y = blobs(32)
    model = mlp()
    optimizer = Limited(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@right
def a_policy_beside_a_model_of_the_world():
    policy, world = nn.Linear(4, 2), nn.Linear(6, 4)
    optimizer = torch.optim.Adam([*policy.parameters(), *world.parameters()], lr=0.01)
    state = torch.randn(16, 4)
    for _ in range(8):
        chosen = Normal(policy(state), 0.5)
        action = chosen.sample()
        then = state + 0.1 * action.repeat(1, 2)
        told = Normal(world(torch.cat([state, action], 1)), 1.0).log_prob(then).sum(1)
        reward = -then.pow(2).sum(1)
        loss = -(chosen.log_prob(action).sum(1) * (reward - reward.mean())).mean() - told.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def a_step_that_decays_then_clips_then_moves():
    class Decayed(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.mul_(1 - 0.01 * group["lr"])
                nn.utils.clip_grad_norm_(group["params"], 0.5)
                for p in group["params"]:
                    p.sub_(group["lr"] * p.grad)

    x, y = blobs(32)
    model = mlp()
    optimizer = Decayed(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


@right
def a_sharpness_aware_step_that_clips_in_between():
    class Sharp(torch.optim.SGD):
        def step(self, closure):
            params = [p for group in self.param_groups for p in group["params"]]
            norm = torch.stack([p.grad.norm() for p in params]).norm()
            moved = [0.05 * p.grad / norm for p in params]
            with torch.no_grad():
                for p, by in zip(params, moved, strict=True):
                    p.add_(by)
            self.zero_grad()
            with torch.enable_grad():
                closure()
            with torch.no_grad():
                for p, by in zip(params, moved, strict=True):
                    p.sub_(by)
            nn.utils.clip_grad_norm_(params, 0.5)
            return super().step()

    x, y = blobs(32)
    model = mlp()
    torch.optim.SGD(mlp().parameters(), lr=0.1)  # from here on the step of SGD calls hooks, within that of Sharp, too
    optimizer = Sharp(model.parameters(), lr=0.1)
    for inputs, targets in batches(x, y):

        def again(inputs=inputs, targets=targets):
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            return loss

        optimizer.zero_grad()
        again()
        optimizer.step(again)
