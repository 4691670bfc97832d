"""Kinds of mistakes that the fifth strangers made: what was kept, what wrote from afar, updates that replace a leaf."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

from tests.explain.provoked import case


class KeepsItsPrior(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self._prior = None

    def prior(self):
        if self._prior is None:
            self._prior = self.scale.exp()  # computed here, once
        return self._prior

    def forward(self, x):
        return (x * self.prior()).sum()


def two_steps_with_a_kept_prior():
    model = KeepsItsPrior()
    for _ in range(2):
        loss = model(torch.ones(3))
        loss.backward()  # second pass here


@case("computed-once", "`model._prior`", "without the `if` before it", remembered=True)
def prior_that_a_module_keeps():
    two_steps_with_a_kept_prior()


@case("computed-once", "`model._prior`", certain=False)
def prior_that_a_module_keeps_and_nobody_watched():
    two_steps_with_a_kept_prior()


class Ridge:
    def __init__(self, layer):
        self.layer = layer
        self.penalty = layer.weight.pow(2).sum()  # computed here, once

    def step(self, x):
        loss = self.layer(x).sum() + self.penalty
        loss.backward()  # second pass here


@case("computed-once", "`self.penalty`", "self.layer.weight.pow(2).sum()", remembered=True)
def penalty_made_with_the_object():
    ridge = Ridge(nn.Linear(3, 1))
    for _ in range(2):
        ridge.step(torch.ones(2, 3))


@case("same-loss-twice", "inside closure", remembered=True)
def loss_made_outside_of_the_closure():
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.LBFGS([w])
    loss = (w.exp() - 2).pow(2).sum()  # computed here, once

    def closure():
        optimizer.zero_grad()
        loss.backward()  # second pass here
        return loss

    optimizer.step(closure)


@case("grad-is-none", "`w` is a new tensor", "w -= 0.1 * w.grad")
def update_that_makes_a_new_tensor():
    w = torch.ones(2, requires_grad=True)
    w.pow(2).sum().backward()
    with torch.no_grad():
        w = w - 0.1 * w.grad  # new tensor here
    w.grad.zero_()  # raised here


@case("grad-is-none", "computed, so it is no leaf", "with torch.no_grad():\n    w -= 0.1 * w.grad")
def update_that_is_recorded():
    w = torch.ones(2, requires_grad=True)
    w.pow(2).sum().backward()
    w = w - 0.1 * w.grad  # new tensor here
    w.grad.zero_()  # raised here


@case("grad-is-none", "by a conversion", "w = w.detach().requires_grad_()")
def parameter_that_was_converted():
    w = torch.ones(2, requires_grad=True).double()
    w.pow(2).sum().backward()
    w -= 0.1 * w.grad  # raised here


@case("grad-of-non-leaf", "one of `w`, `h`", warns=True, certain=False)
def two_gradients_in_one_line():
    w = torch.ones(2, requires_grad=True)
    h = w * 2
    h.sum().backward()
    return w.grad, h.grad  # read here


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        h = self.fc(x)
        self.code = h  # kept here
        return h


@case("deepcopy-non-leaf", "`net[0].code`", "self.code = h.detach()")
def copy_of_a_module_that_keeps_its_code():
    net = nn.Sequential(Encoder())
    net(torch.ones(1, 3))
    copy.deepcopy(net)  # raised here


@case("deepcopy-non-leaf", "by pruning", "best = {k: v.detach().clone() for k, v in net.state_dict().items()}")
def copy_of_a_pruned_module():
    net = nn.Sequential(nn.Linear(3, 3))
    prune.random_unstructured(net[0], "weight", amount=0.5)  # made computed here
    best = copy.deepcopy(net)  # raised here
    return best


@case("copy-construct", "start.detach().clone().to(torch.float64).requires_grad_()", warns=True)
def copy_that_is_to_learn():
    start = torch.ones(2)
    return torch.tensor(start, dtype=torch.float64, requires_grad=True)  # raised here


@case("vmap-item", "w.clamp(max=1.0)")
def minimum_of_an_item_in_vmap():
    torch.vmap(lambda w: w * min(w.item(), 1.0))(torch.ones(3))  # raised here


@torch.inference_mode()  # made here
def features(x):
    return x * 2


@case("inference-tensor", "feats.clone()  # a normal tensor")
def inference_tensor_in_a_closure():
    w = torch.ones(3, requires_grad=True)
    feats = features(torch.ones(3))

    def loss():
        return (w * feats).sum()  # raised here

    loss()


class Factors:
    def __init__(self):
        self.rows = 0.1 * torch.randn(2, requires_grad=True)  # made here
        self.columns = 0.1 * torch.randn(3, requires_grad=True)


@case("optimizer-non-leaf", "factors.rows = factors.rows.detach().requires_grad_()\nfactors.columns = ")
def two_products_to_optimize():
    factors = Factors()
    torch.optim.SGD([factors.rows, factors.columns], lr=0.1)  # raised here


@case("in-place", "`wipe`, which has returned", "weights = weights.clone()", certain=False)
def helper_that_wipes_what_softmax_saved():
    def wipe(weights):
        weights[0] = 0.0  # overwritten here
        return weights

    def attend(scores):
        weights = scores.softmax(0)  # saved here
        return wipe(weights)

    attend(torch.ones(3, requires_grad=True)).sum().backward()  # needed here


@case("in-place", "`kept`", "kept.clamp(max=1.0)", certain=False)
def alias_of_a_detached_tensor():
    def log(rates):
        kept = rates.detach()
        kept.clamp_(max=1.0)  # overwritten here

    def run():
        rates = torch.ones(3, requires_grad=True).exp()  # saved here
        log(rates)
        return rates

    run().sum().backward()  # needed here


@case("in-place", "`field`", "field = field.clone()", certain=False)
def view_that_a_function_fills():
    def energy(field):
        return field.pow(2).sum()  # saved here

    def hold(field):
        edge = field[0]
        edge.fill_(0.0)  # overwritten here

    def simulate(k):
        field = torch.ones(2, 2) * k
        total = energy(field)
        hold(field)
        return total + field.sum()

    simulate(torch.tensor(2.0, requires_grad=True)).backward()  # needed here


@case("in-place", "`path`", "new[t + 1] = path[t] * a", certain=False)
def states_in_one_tensor():
    def roll(a):
        path = torch.zeros(4)
        path[0] = 1.0
        for t in range(3):
            path[t + 1] = path[t] * a  # saved here, overwritten here
        return path

    roll(torch.tensor(2.0, requires_grad=True)).sum().backward()  # needed here


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("size", torch.ones(3))

    def forward(self, x):
        self.size.lerp_(x.detach().abs(), 0.5)  # overwritten here
        return x / self.size  # saved here


@case("in-place", "`norm.size`", "self.size = self.size.lerp(", certain=False)
def statistics_of_two_calls():
    norm, x = Running(), torch.ones(3, requires_grad=True)
    (norm(x) + norm(2 * x)).sum().backward()  # needed here


def clipped(net):
    with torch.no_grad():
        for p in net.parameters():
            p.clamp_(-0.1, 0.1)  # writes into parameters


@case("in-place", "`clipped` writes into the parameters", certain=False, remembered=True)
def weights_clipped_before_backward():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        loss = net(torch.ones(1, 2)).sum()
        clipped(net)
        loss.backward()  # needed here
        optimizer.step()


@case("in-place", "rewritten by a lookup (max_norm=0.5)", certain=False)
def embedding_that_is_tied_and_renormed():
    words = nn.Embedding(4, 2, max_norm=0.5)  # rewrites at each lookup
    prior = torch.ones(2, requires_grad=True) @ words.weight.T
    (prior.sum() + words(torch.arange(4)).sum()).backward()  # needed here


@case("in-place", "return out.mul(2)", certain=False)
def hook_that_returns_what_it_wrote():
    def double(module, args, out):
        return out.mul_(2)  # overwritten here

    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    net[1].register_forward_hook(double)
    net(torch.ones(1, 2)).sum().backward()  # needed here


@case("complex-loss", "complex64", "d.abs().pow(2)")
def square_of_a_spectrum():
    w = torch.ones(8, requires_grad=True)
    d = torch.fft.rfft(w)
    loss = (d**2).mean()  # squared here
    loss.backward()  # raised here


@case("complex-cast", "`z` is complex", "z.real", warns=True)
def complex_numbers_made_real():
    z = torch.ones(2, dtype=torch.cfloat)
    return z.float()  # raised here


@case("complex-cast", "does not take complex numbers")
def complex_numbers_in_a_relu():
    torch.relu(torch.ones(2, dtype=torch.cfloat))  # raised here


@case("sparse-gradient", "`table`, made with sparse=True", "SparseAdam(table.parameters(), lr=0.1)")
def sparse_rows_for_adam():
    table = nn.Embedding(4, 2, sparse=True)  # made sparse here
    optimizer = torch.optim.Adam(table.parameters(), lr=0.1)
    table(torch.tensor([1])).sum().backward()
    optimizer.step()  # raised here


@case("sparse-gradient", "was given a dense gradient")
def dense_rows_for_sparse_adam():
    layer = nn.Linear(2, 1)
    optimizer = torch.optim.SparseAdam(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()  # raised here


@case("scaler-without-gradients", "holds no parameter of `model`", "(`net`)")
def optimizer_of_a_copy_under_a_scaler():
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # made here
    model, scaler = copy.deepcopy(net), torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    scaler.step(optimizer)  # raised here


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.width = 3

    def forward(self, x):
        y = x[: self.width].exp()
        self.width -= 1  # changes between the runs
        return y.sum()


@case("checkpoint-recomputed", "self.width -= 1", certain=False)
def module_that_counts_under_a_checkpoint():
    checkpoint(Counts(), torch.ones(4, requires_grad=True), use_reentrant=False).backward()  # raised here


@case("no-derivative", "fused attention was differentiated twice", "SDPBackend.MATH")
def penalty_through_attention():
    q = torch.randn(1, 1, 4, 8, requires_grad=True)
    y = F.scaled_dot_product_attention(q, q, q).sum()  # fused attention here
    (g,) = torch.autograd.grad(y, q, create_graph=True)
    g.pow(2).sum().backward()  # raised here


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(4, 2), nn.Linear(2, 4, bias=False)
        self.out.weight = self.embed.weight  # shared from here


@case("parameters-twice", "has a second name", "[p for p in lm.out.parameters() if p is not lm.embed.weight]")
def tied_weight_in_two_groups():
    lm = Tied()
    torch.optim.SGD([{"params": lm.embed.parameters()}, {"params": lm.out.parameters()}], lr=0.1)  # raised here


@case("optimizer-of-no-tensors", "gains.values()")
def keys_for_an_optimizer():
    gains = {"p": torch.ones(1, requires_grad=True)}
    torch.optim.SGD(list(gains), lr=0.1)  # raised here


class Uneven(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, at):
        return torch.ones(at + 1), at  # a sample is made here


@case("stacked-shapes", "the DataLoader cannot stack samples", "pad_sequence")
def samples_of_unequal_length():
    next(iter(DataLoader(Uneven(), batch_size=2)))  # raised here


@case("not-in-graph", "`heat` never uses that argument")
def argument_that_is_not_used():
    def heat(x, t):  # argument not used
        return x.pow(2)

    x, t = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    u = heat(x, t)  # given here
    torch.autograd.grad(u.sum(), t)  # raised here


@case("scheduler-first", "optimizer.step()\nschedule.step()", warns=True, certain=False)
def schedule_at_the_start_of_an_epoch():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    schedule.step()  # raised here
    optimizer.step()


class Beta(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return (beta * x).exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.exp(), None  # backward of it


@case("gradcheck-mismatch", "forward keeps `ctx.beta`, and backward never reads it", certain=False)
def gradcheck_of_a_backward_that_forgets():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda t: Beta.apply(t, 2.0), (x,))  # raised here


@case("hook-result", "the hook `halve`")
def hook_that_sums():
    def halve(grad):
        return grad.sum() / 2  # returned here

    w = torch.ones(2, requires_grad=True)
    y = w * 2
    y.register_hook(halve)
    y.sum().backward()  # raised here


@case("no-graph-frozen", "all of `net` is frozen")
def everything_frozen_by_a_name():
    net = nn.Linear(2, 1)
    for name, p in net.named_parameters():
        p.requires_grad = name.startswith("head")  # freezes here
    net(torch.ones(1, 2)).sum().backward()  # raised here
