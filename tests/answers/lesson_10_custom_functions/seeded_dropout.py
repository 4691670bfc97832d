"""Right and wrong answers to `seeded_dropout`."""

import time

import numpy as np
import torch
from torch import nn
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint

from tests.answers.lesson_10_custom_functions.functions import function
from tests.answers.said import said


def mask_of(shape, p, seed):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) >= p


class SeededDropout(Function):
    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        return x * mask_of(x.shape, p, seed) / (1 - p)

    @staticmethod
    def backward(ctx, g):
        return g * mask_of(g.shape, ctx.p, ctx.seed) / (1 - ctx.p), None, None


def seeded_dropout(x, p, seed):
    return SeededDropout.apply(x, p, seed)


class ForkedDropout(Function):
    @staticmethod
    def run(tensor, p, seed):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return tensor * nn.functional.dropout(torch.ones(tensor.shape, dtype=tensor.dtype), p)

    @staticmethod
    def forward(x, p, seed):
        return ForkedDropout.run(x, p, seed)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, *ctx.how = inputs

    @staticmethod
    def backward(ctx, g):
        return ForkedDropout.run(g, *ctx.how), None, None


def dropout(
    keep=lambda ctx, mask: None,
    again=lambda ctx, g: mask_of(g.shape, ctx.p, ctx.seed),
    scaled=True,
    forward_scaled=True,
):
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        mask = mask_of(x.shape, p, seed)
        keep(ctx, mask)
        return x * mask / (1 - p if forward_scaled else 1)

    def backward(ctx, g):
        return g * again(ctx, g) / (1 - ctx.p if scaled else 1), None, None

    apply = function(forward, backward)
    return lambda x, p, seed: apply(x, p, seed)


class GlobalDropout(Function):
    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        torch.manual_seed(seed)
        return x * (torch.rand(x.shape) >= p) / (1 - p)

    @staticmethod
    def backward(ctx, g):
        torch.manual_seed(ctx.seed)
        return g * (torch.rand(g.shape) >= ctx.p) / (1 - ctx.p), None, None


class ResultDropout(Function):
    """Keeps no mask but its result, which shows where zeros are."""

    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p = p
        y = x * mask_of(x.shape, p, seed) / (1 - p)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * (ctx.saved_tensors[0] != 0) / (1 - ctx.p), None, None


def keep_state(ctx, mask):
    ctx.state = torch.Generator().manual_seed(ctx.seed).get_state()


def mask_from_state(ctx, g):
    generator = torch.Generator()
    generator.set_state(ctx.state)
    return torch.rand(g.shape, generator=generator) >= ctx.p


MASKS = {}


def keep_elsewhere(ctx, mask):
    MASKS["last"] = mask


def keep_as_one_number(ctx, mask):
    ctx.number = int("".join("01"[bit] for bit in mask.flatten().tolist()), 2)


def mask_from_number(ctx, g):
    bits = bin(ctx.number)[2:].zfill(g.numel())
    return torch.tensor([bit == "1" for bit in bits]).reshape(g.shape)


def keep_generator(ctx, mask):
    ctx.generator = torch.Generator().manual_seed(ctx.seed)


class DropoutInPlace(SeededDropout):
    @staticmethod
    def backward(ctx, g):
        return g.mul_(mask_of(g.shape, ctx.p, ctx.seed)).div_(1 - ctx.p), None, None


class DropoutBySeed(Function):
    """Keeps its masks in a table of its own, by the seed."""

    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        MASKS[seed] = mask_of(x.shape, p, seed)
        return x * MASKS[seed] / (1 - p)

    @staticmethod
    def backward(ctx, g):
        return g * MASKS[ctx.seed] / (1 - ctx.p), None, None


def dropout_of(mask, divided=lambda numbers, p: numbers / (1 - p)):
    """Dropout by another mask of (shape, p, seed), the same in forward and backward."""

    def forward(ctx, x, p, seed):
        ctx.how = p, seed
        return divided(x * mask(x.shape, p, seed), p)

    def backward(ctx, g):
        return divided(g * mask(g.shape, *ctx.how), ctx.how[0]), None, None

    return function(forward, backward)


def exactly_the_share(shape, p, seed):
    """Drops as many numbers with each seed."""
    count = torch.Size(shape).numel()
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return (order >= round(p * count)).reshape(shape)


def two_slices_alike(shape, p, seed):
    mask = mask_of(shape, p, seed)
    mask[1] = mask[0]
    return mask


def dropout_with_a_hook(x, p, seed):
    """Leaves a hook on the input."""
    if x.requires_grad:
        x.register_hook(lambda gradient: None)
    return SeededDropout.apply(x, p, seed)


class DropoutByTheCall(SeededDropout):
    """Draws another mask in each call."""

    calls = 0

    @staticmethod
    def forward(ctx, x, p, seed):
        DropoutByTheCall.calls += 1
        return SeededDropout.forward(ctx, x, p, seed + 7919 * DropoutByTheCall.calls)


def mask_in_memory_order(like, p, seed):
    """Draws in the order of memory, which x and the gradient that comes in need not share."""
    return torch.empty_like(like).bernoulli_(1 - p, generator=torch.Generator().manual_seed(seed)).bool()


class DropoutInMemoryOrder(SeededDropout):
    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        return x * mask_in_memory_order(x, p, seed) / (1 - p)

    @staticmethod
    def backward(ctx, g):
        return g * mask_in_memory_order(g, ctx.p, ctx.seed) / (1 - ctx.p), None, None


class DropoutOfTheLastSeed(SeededDropout):
    """Keeps the seed with the class, not with the call."""

    @staticmethod
    def forward(ctx, x, p, seed):
        DropoutOfTheLastSeed.last = seed
        return SeededDropout.forward(ctx, x, p, seed)

    @staticmethod
    def backward(ctx, g):
        ctx.seed = DropoutOfTheLastSeed.last
        return SeededDropout.backward(ctx, g)


class DropoutOfSoMany(Function):
    """Drops exactly the share, other numbers in each call, and keeps the mask."""

    @staticmethod
    def forward(ctx, x, p, seed):
        generator = torch.Generator()
        generator.seed()
        mask = torch.ones(x.numel(), dtype=torch.bool)
        mask[torch.randperm(x.numel(), generator=generator)[: round(p * x.numel())]] = False
        ctx.save_for_backward(mask.reshape(x.shape))
        ctx.p = p
        return x * mask.reshape(x.shape) / (1 - p)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] / (1 - ctx.p), None, None


RIGHT = [seeded_dropout, ForkedDropout.apply]


def draw_on(ctx, g):
    """Draws by the generator that forward left, which nobody winds back."""
    return torch.rand(g.shape, generator=ctx.generator) >= ctx.p


MISCONCEIVED = {
    "the mask is kept": dropout(lambda ctx, mask: ctx.save_for_backward(mask), lambda ctx, g: ctx.saved_tensors[0]),
    "another mask in backward": dropout(again=lambda ctx, g: mask_of(g.shape, ctx.p, ctx.seed + 1)),
    "the global generator": lambda x, p, seed: GlobalDropout.apply(x, p, seed),
    "not scaled in backward": dropout(scaled=False),
    "not scaled in forward": dropout(forward_scaled=False),
    "not scaled at all": dropout(scaled=False, forward_scaled=False),
    "drawn on in the second pass": dropout(keep_generator, draw_on),
    "a mask in the memory's order": DropoutInMemoryOrder.apply,
}


def dropout_by_seed(made):
    """Right but for the seed, of which another number is made."""
    return dropout_of(lambda shape, p, seed: mask_of(shape, p, made(seed)))


def mask_of_turned(like, p, seed):
    """A mask in the order of the memory of a matrix."""
    if like.dim() == 2 and not like.is_contiguous():
        return mask_of(like.T.shape, p, seed).T
    return mask_of(like.shape, p, seed)


class DropoutOfLarge(SeededDropout):
    """Drops what is small, too."""

    @staticmethod
    def forward(ctx, x, p, seed):
        return SeededDropout.forward(ctx, x * (x.abs() > 1e-2), p, seed)


class DropoutOfTurned(SeededDropout):
    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        return x * mask_of_turned(x, p, seed) / (1 - p)


class DropoutOfRounded(SeededDropout):
    """Remembers the seed in single precision."""

    @staticmethod
    def forward(ctx, x, p, seed):
        y = SeededDropout.forward(ctx, x, p, seed)
        ctx.seed = int(torch.tensor(float(seed)))
        return y


def dropout_drawn_by(draw):
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        return x * draw(x, p, seed) / (1 - p)

    def backward(ctx, g):
        return g * draw(g, ctx.p, ctx.seed) / (1 - ctx.p), None, None

    return function(forward, backward)


def in_its_own_dtype(x, p, seed):
    """Draws in the dtype of x: one in 256 numbers of bfloat16 is zero."""
    return torch.rand(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(seed)) >= p


def by_rounded_shares(x, p, seed):
    """Draws with 1 - p in the dtype of x: in bfloat16 it is 1 for a small p."""
    shares = torch.full(x.shape, 1 - p, dtype=x.dtype)
    return torch.bernoulli(shares, generator=torch.Generator().manual_seed(seed))


def mask_like(ctx, g):
    """Draws in the order in which what comes in lies in memory."""
    return torch.empty_like(g, dtype=torch.float32).uniform_(generator=torch.Generator().manual_seed(ctx.seed)) >= ctx.p


WRONG = [
    *map(dropout_by_seed, (lambda seed: seed % 1000, lambda seed: seed % 2**20, lambda seed: seed // 10 * 10)),
    *(DropoutOfLarge.apply, DropoutOfRounded.apply),
    said(DropoutOfTurned.apply, "a mask in the memory's order"),
    lambda x, p, seed: SeededDropout.apply(x, p, seed) if p else x,
    said(DropoutOfTheLastSeed.apply, "another mask in backward"),
    said(lambda x, p, seed: nn.functional.dropout(x, p), "the global generator"),
    lambda x, p, seed: x * mask_of(x.shape, p, seed) / (1 - p),
    lambda x, p, seed: SeededDropout.apply(x, 1 - p, seed),
    lambda x, p, seed: SeededDropout.apply(x, p, 7),
    lambda x, p, seed: SeededDropout.apply(x, p, seed or 1),
    lambda x, p, seed: SeededDropout.apply(x, p, seed or time.time_ns() % 2**31),
    lambda x, p, seed: SeededDropout.apply(x, p, min(seed, 2**31 - 1)),
    lambda x, p, seed: SeededDropout.apply(x, p, seed % 65536),
    said(
        dropout(
            lambda ctx, mask: setattr(ctx, "mask", np.packbits(mask.flatten().numpy())),
            lambda ctx, g: torch.from_numpy(np.unpackbits(ctx.mask, count=g.numel())).bool().reshape(g.shape),
        ),
        "the mask is kept",
    ),
    said(dropout(lambda ctx, mask: setattr(ctx, "mask", mask), lambda ctx, g: ctx.mask), "the mask is kept"),
    said(
        dropout(lambda ctx, mask: setattr(ctx, "mask", mask.numpy()), lambda ctx, g: torch.from_numpy(ctx.mask)),
        "the mask is kept",
    ),
    said(
        dropout(lambda ctx, mask: setattr(ctx, "mask", mask.tolist()), lambda ctx, g: torch.tensor(ctx.mask)),
        "the mask is kept",
    ),
    said(
        dropout(
            lambda ctx, mask: setattr(ctx, "mask", mask.numpy().tobytes()),
            lambda ctx, g: torch.frombuffer(bytearray(ctx.mask), dtype=torch.bool).reshape(g.shape),
        ),
        "the mask is kept",
    ),
    said(lambda x, p, seed: ResultDropout.apply(x, p, seed), "the mask is kept"),
    said(dropout(keep_state, mask_from_state), "the mask is kept"),
    dropout(keep_elsewhere, lambda ctx, g: MASKS["last"]),
    said(dropout(keep_as_one_number, mask_from_number), "the mask is kept"),
    DropoutInPlace.apply,
    dropout_by_the_share := dropout_of(exactly_the_share),
    dropout_with_a_hook,
    dropout_of_two := dropout_of(two_slices_alike),
    dropout_by_the_call := lambda x, p, seed: DropoutByTheCall.apply(x, p, seed),
    dropout_of_more := dropout_of(lambda shape, p, seed: mask_of(shape, p + 0.1, seed)),
    dropout_in_two_nodes := lambda x, p, seed: SeededDropout.apply(x * 1.0, p, seed),
    lambda x, p, seed: SeededDropout.apply(x.view(-1).view(x.shape), p, seed),
    DropoutBySeed.apply,
    dropout_of(lambda shape, p, seed: mask_of(shape[-1:], p, seed)),
    dropout_of(lambda shape, p, seed: mask_of(shape[:1], p, seed).reshape(-1, *[1] * (len(shape) - 1))),
    dropout_by_parity := dropout_of(lambda shape, p, seed: mask_of(shape, p, seed % 2)),
    dropout_nearly := dropout_of(mask_of, lambda numbers, p: numbers / (1 - p + 1e-11)),
    dropout_in_single := dropout_of(lambda shape, p, seed: mask_of(shape, p, seed) / (1 - p), lambda it, p: it),
    said(dropout(keep_generator, draw_on), "drawn on in the second pass"),
    lambda x, p, seed: checkpoint(lambda t: t * mask_of(t.shape, p, seed) / (1 - p), x, use_reentrant=False),
    said(DropoutOfSoMany.apply, "the mask is kept"),
    dropout_of(lambda shape, p, seed: torch.ones(shape, dtype=torch.bool)),
    dropout_of(lambda shape, p, seed: torch.zeros(shape, dtype=torch.bool)),
    dropout(again=mask_like),
    *map(dropout_drawn_by, (in_its_own_dtype, by_rounded_shares)),
]

EQUIVALENT = {
    "ForkedDropout.run: torch.random.fork_rng(devices=[]) -> torch.random.fork_rng()": "Without a GPU there is no other generator to fork.",
    "mask_of: ...manual_seed(seed)) >= p -> ...manual_seed(seed)) > p": "A number drawn from 2**24 is hardly ever p itself, and the text does not say what then.",
}

GUARDS = {
    "Between the inputs and the result there is one node": {"one node": dropout_in_two_nodes},
    "the inputs, the gradient mode": {"left alone": dropout_with_a_hook},
    "sets each number, by itself, to zero": {"each by itself": dropout_of_two, "by chance": dropout_by_the_share},
    "with probability `p`": {"share": dropout_of_more},
    "divides the others by `1 - p`": {"exact": dropout_nearly, "value": dropout_in_single},
    "The same seed gives the same mask": {"same": dropout_by_the_call},
    "another seed another one": {"other": dropout_by_parity},
    "Backward multiplies by the forward's mask": {"value": MISCONCEIVED["another mask in backward"]},
    "divides by `1 - p` as the forward did": {"value": MISCONCEIVED["not scaled in backward"]},
    "the graph keeps at most 400 bytes": {"kept": MISCONCEIVED["the mask is kept"]},
    "PyTorch's global random generator must be left as it was": {"generator": MISCONCEIVED["the global generator"]},
}
