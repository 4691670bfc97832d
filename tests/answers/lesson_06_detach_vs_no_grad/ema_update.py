"""Right and wrong answers to `ema_update`."""

import copy

import torch

from tests.answers.lesson_06_detach_vs_no_grad.side_effects import hook_on_module
from tests.answers.said import said


@torch.no_grad()
def ema_by_lerp(target, source, decay):
    for mine, its in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(its, 1 - decay)
    for mine, its in zip(target.buffers(), source.buffers(), strict=True):
        mine.copy_(its)


def ema_by_name(target, source, decay):
    theirs = dict(source.named_parameters())
    with torch.inference_mode(False), torch.no_grad():
        for name, parameter in target.named_parameters():
            parameter.mul_(decay).add_(theirs[name], alpha=1 - decay)
        for name, buffer in source.named_buffers():
            target.get_buffer(name).copy_(buffer)


def ema_by_foreach(target, source, decay):
    with torch.no_grad():
        mine, its = list(target.parameters()), list(source.parameters())
        torch._foreach_lerp_(mine, its, 1 - decay)
        for here, there in zip(target.buffers(), source.buffers(), strict=True):
            here[...] = there


def ema(parameters=None, buffers=True, after=None):
    """An update with one thing wrong."""

    def update(target, source, decay):
        with torch.no_grad():
            for mine, its in zip(target.parameters(), source.parameters(), strict=True):
                (parameters or (lambda a, b, d: a.lerp_(b, 1 - d)))(mine, its, decay)
            if buffers:
                for mine, its in zip(target.buffers(), source.buffers(), strict=True):
                    mine.copy_(its)
            if after:
                after(target, source)

    return update


def written_by_data(mine, its, decay):
    mine.data.mul_(decay).add_(its.data, alpha=1 - decay)


def written_by_numpy(mine, its, decay):
    mine.detach().numpy()[...] = decay * mine.detach().numpy() + (1 - decay) * its.detach().numpy()


def new_memory(mine, its, decay):
    mine.data = decay * mine + (1 - decay) * its


def ema_by_state_dict(target, source, decay):
    theirs = source.state_dict()
    with torch.no_grad():
        for name, tensor in target.state_dict().items():
            if tensor.is_floating_point() and "running" not in name:
                tensor.lerp_(theirs[name], 1 - decay)
            else:
                tensor.copy_(theirs[name])


def ema_by_loading(target, source, decay):
    """Right: the new numbers are computed first, and each shared weight gets the same ones twice."""
    theirs = source.state_dict()
    mixed = {}
    for name, tensor in target.state_dict().items():
        is_buffer = name in dict(target.named_buffers())
        mixed[name] = theirs[name] if is_buffer else decay * tensor + (1 - decay) * theirs[name]
    target.load_state_dict(mixed)


def ema_all_averaged(target, source, decay):
    with torch.no_grad():
        for mine, its in zip(target.parameters(), source.parameters(), strict=True):
            mine.lerp_(its, 1 - decay)
        for mine, its in zip(target.buffers(), source.buffers(), strict=True):
            mine.copy_(mine * decay + its * (1 - decay))


def ema_recorded(target, source, decay):
    for mine, its in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(its, 1 - decay)


def ema_grad_off(target, source, decay):
    ema_by_lerp(target, source, decay)
    torch.set_grad_enabled(False)


def ema_switching_on(target, source, decay):
    """Switches recording on at the end, also where it was off."""
    ema_by_lerp(target, source, decay)
    torch.set_grad_enabled(True)


def ema_of_live_sources(target, source, decay):
    """Passes over what is frozen in the source."""
    with torch.no_grad():
        for mine, its in zip(target.parameters(), source.parameters(), strict=True):
            if its.requires_grad:
                mine.lerp_(its, 1 - decay)
        for mine, its in zip(target.buffers(), source.buffers(), strict=True):
            mine.copy_(its)


def clear_target(target, source):
    for parameter in target.parameters():
        parameter.grad = None


def ema_frozen(target, source, decay):
    target.requires_grad_(False)
    for mine, its in zip(target.parameters(), source.detach().parameters(), strict=True):
        mine.lerp_(its, 1 - decay)


RIGHT = [ema_by_lerp, ema_by_name, ema_by_foreach, ema_by_loading]

MISCONCEIVED = {
    "behind the counter's back": ema(written_by_data),
    "weights changed places": ema(lambda mine, its, decay: mine.lerp_(its, decay)),
    "buffers forgotten": ema(buffers=False),
    "the shared weight twice": ema_by_state_dict,
}

WRONG = [
    said(ema(written_by_numpy), "behind the counter's back"),
    ema(new_memory),
    ema_all_averaged,
    ema_recorded,
    ema_grad_off,
    ema_frozen,
    ema_switching_on,
    ema_of_live_sources,
    ema(after=clear_target),
    ema(after=lambda target, source: target.eval()),
    ema(after=lambda target, source: hook_on_module(target)),
    ema(after=lambda target, source: source.zero_grad()),
    ema(after=lambda target, source: target.requires_grad_(True)),
    ema(after=lambda target, source: target.requires_grad_(False)),
    ema(lambda mine, its, decay: mine.copy_(its)),
    ema(lambda mine, its, decay: its.lerp_(mine, decay)),
    lambda target, source, decay: copy.deepcopy(source),
    lambda target, source, decay: target.load_state_dict(source.state_dict()),
]
