"""Right and wrong answers to `frugal`."""

import io

import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from tests.answers.said import said


def frugal_in_slices(blocks, x, length=5, use_reentrant=False, **options):
    for start in range(0, len(blocks), length):
        x = checkpoint(blocks[start : start + length], x, use_reentrant=use_reentrant, **options)
    return x


def frugal_by_library(blocks, x):
    return checkpoint_sequential(blocks, min(6, len(blocks)), x, use_reentrant=False)


def frugal_with_a_function(blocks, x):
    def run(first, last, value):
        for block in list(blocks)[first:last]:
            value = block(value)
        return value

    for done in range(0, len(blocks), 4):
        x = checkpoint(run, done, done + 4, x, use_reentrant=False)
    return x


def frugal_twice_nested(blocks, x):
    return checkpoint(frugal_in_slices, blocks, x, use_reentrant=False)


def frugal_half_precision(blocks, x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().to(torch.float16), lambda t: t.double()):
        return blocks(x)


def frugal_reentrant(blocks, x):
    return frugal_in_slices(blocks, x, use_reentrant=True)


def frugal_but_the_last(blocks, x):
    """The last stretch is not recomputed: the backward pass begins there."""
    return blocks[-4:](frugal_in_slices(blocks[:-4], x, 4))


def frugal_in_lists(blocks, x):
    """What the graph saves lies in Python lists, where no tensor is."""
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: (t.tolist(), t.dtype), lambda p: torch.tensor(p[0], dtype=p[1])
    ):
        return blocks(x)


def frugal_in_files(blocks, x):
    def pack(tensor):
        file = io.BytesIO()
        torch.save(tensor.detach(), file)
        return file.getvalue()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda stored: torch.load(io.BytesIO(stored))):
        return blocks(x)


def frugal_without_training(blocks, x):
    blocks.eval()
    return frugal_in_slices(blocks, x)


def frugal_every_other(blocks, x):
    for number, block in enumerate(blocks):
        x = checkpoint(block, x, use_reentrant=False) if number % 2 else block(x)
    return x


def frugal_of_26(blocks, x):
    """Counts blocks by the number in the task."""
    for start in range(0, 26, 5):
        x = checkpoint(blocks[start : min(start + 5, 26)], x, use_reentrant=False)
    return x


def frugal_in_thirteens(blocks, x):
    """Two stretches are too long to be recomputed at once."""
    return frugal_in_slices(blocks, x, 13)


def frugal_and_evaluate(blocks, x):
    y = frugal_in_slices(blocks, x)
    blocks[0].eval()
    return y


def frugal_written(blocks, x):
    y = frugal_in_slices(blocks, x.clone())
    with torch.no_grad():
        x.add_(1)
    return y


def frugal_thrice(blocks, x):
    """A third run, by forward, where no hook sees it."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        blocks[0].forward(x)
    return frugal_in_slices(blocks, x)


def frugal_cut(blocks, x):
    with torch.no_grad():
        return blocks(x)


def frugal_first_24(blocks, x):
    return frugal_in_slices(blocks[:24], x)


def frugal_and_one(blocks, x):
    """Another value with the right slopes."""
    return frugal_in_slices(blocks, x) + 1


RIGHT = [
    *(frugal_in_slices, frugal_by_library, frugal_with_a_function),
    *(frugal_reentrant, frugal_but_the_last),
]

MISCONCEIVED = {
    "one long stretch": lambda blocks, x: checkpoint(blocks, x, use_reentrant=False),
    "every block by itself": lambda blocks, x: frugal_in_slices(blocks, x, 1),
    "nothing recomputed": lambda blocks, x: blocks(x),
    "other noise the second time": lambda blocks, x: frugal_in_slices(blocks, x, preserve_rng_state=False),
}

WRONG = [
    frugal_twice_nested,
    frugal_half_precision,
    frugal_in_lists,
    frugal_in_files,
    frugal_without_training,
    frugal_every_other,
    said(lambda blocks, x: frugal_in_slices(blocks, x, 5) if len(blocks) == 26 else blocks(x), "nothing recomputed"),
    *(frugal_of_26, frugal_in_thirteens, frugal_and_evaluate, frugal_written, frugal_thrice),
    frugal_cut,
    frugal_first_24,
    lambda blocks, x: frugal_in_slices(blocks, x).detach().requires_grad_(),
    lambda blocks, x: frugal_in_slices(blocks, x.detach().requires_grad_()),
    lambda blocks, x: frugal_in_slices(blocks.float(), x.float()).double(),
    lambda blocks, x: (frugal_in_slices(blocks, x), x),
    frugal_and_one,
]

EQUIVALENT = {
    "frugal_in_slices: ...s(blocks, x, length=5, use_reentrant=Fals... -> ...s(blocks, x, length=6, use_reentrant=Fals...": "Both ways of torch.utils.checkpoint recompute; the task leaves the way open.",
    "frugal_in_slices: ...th=5, use_reentrant=False, **options): ... -> ...th=5, use_reentrant=True, **options): ...": "Both ways of torch.utils.checkpoint recompute; the task leaves the way open.",
    "frugal_in_slices: range(0, len(blocks), length) -> range(0, len(blocks) + 1, length)": "A stretch that begins behind the last block is empty.",
    "frugal_in_slices: ...start + length], x, use_reentrant=use_reentrant, **options) -> ...start + length], x, **options)": "Both ways of torch.utils.checkpoint recompute; the task leaves the way open.",
    "frugal_in_slices: ...ntrant=use_reentrant, **options) -> ...ntrant=use_reentrant)": "Both ways of torch.utils.checkpoint recompute; the task leaves the way open.",
    "frugal_by_library: ...n(6, len(blocks)), x, use_reentrant=False) -> ...n(6, len(blocks)), x)": "Both ways of torch.utils.checkpoint recompute; the task leaves the way open.",
    "frugal_by_library: min(6, len(blocks)) -> min(7, len(blocks))": "Other lengths of stretches are right as well: the task bounds the memory.",
    "frugal_by_library: ...), x, use_reentrant=False) -> ...), x, use_reentrant=True)": "Both ways of torch.utils.checkpoint recompute; the task leaves the way open.",
    "frugal_with_a_function: range(0, len(blocks), 4) -> range(0, len(blocks) + 1, 4)": "A stretch that begins behind the last block is empty.",
    "frugal_with_a_function: checkpoint(run, done, done + 4, x, use_reentrant=False) -> checkpoint(run, done, done + 4, x)": "Both ways of torch.utils.checkpoint recompute; the task leaves the way open.",
    "frugal_with_a_function: checkpoint(run, done, done + 4, x, use_reentrant=False) -> checkpoint(run, done, done + 4, x, use_reentrant=True)": "Both ways of torch.utils.checkpoint recompute; the task leaves the way open.",
    "frugal_reentrant: frugal_in_slices(blocks, x, use_reentrant=True) -> frugal_in_slices(blocks, x)": "Both ways of torch.utils.checkpoint recompute; the task leaves the way open.",
    "frugal_reentrant: frugal_in_slices(blocks, x, use_reentrant=True) -> frugal_in_slices(blocks, x, use_reentrant=False)": "Both ways of torch.utils.checkpoint recompute; the task leaves the way open.",
    "frugal_but_the_last: frugal_in_slices(blocks[:-4], x, 4) -> frugal_in_slices(blocks[:-4], x, 5)": "Other lengths of stretches are right as well: the task bounds the memory.",
}

GUARDS = {
    "It returns what `blocks(x)` returns": {"result's value": frugal_and_one},
    "with a graph": {"graph": frugal_cut},
    "the same gradients, up to rounding, for `x` and for every parameter": {"gradient's value": frugal_half_precision},
    "tensors made there take more than 26 times the memory of `x`": {"peak": frugal_in_thirteens},
    "no block's forward may run more than twice, the backward pass included": {"runs": frugal_thrice},
    "what blocks save may not be put elsewhere, into files or lists, say": {"elsewhere": frugal_in_files},
    "`x` keeps its numbers.": {"input": frugal_written},
    "a function leaves modes, flags, hooks": {"left": frugal_and_evaluate},
}


class _ByFormula(torch.autograd.Function):
    """A block without noise: its backward works out from its input what it needs, and runs no block."""

    @staticmethod
    def forward(ctx, x, block, scale):
        ctx.save_for_backward(x, scale)
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        x, scale = ctx.saved_tensors
        slope = 0.1 * gradient * torch.cos(scale * x)
        return gradient + scale * slope, None, (slope * x).sum()


def by_formula(blocks, x):
    """Keeps the input of each block, of which none runs twice: no more than that is saved."""
    if any(block.noise for block in blocks):
        return RIGHT[0](blocks, x)
    for block in blocks:
        x = _ByFormula.apply(x, block, block.scale)
    return x


WRONG += [by_formula]
