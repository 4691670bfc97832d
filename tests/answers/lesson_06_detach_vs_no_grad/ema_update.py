"""Right and wrong answers to `ema_update`."""

import copy

import torch

from tests.answers.lesson_06_detach_vs_no_grad.side_effects import hook_on_module
from tests.answers.near import near, near_buffers
from tests.answers.said import said


@torch.no_grad()
def ema_by_lerp(target, source, decay):
    for mine, its in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(its, 1 - decay)
    for mine, its in zip(target.buffers(), source.buffers(), strict=True):
        mine.copy_(its)


def ema_by_name(target, source, decay):
    theirs = dict(source.named_parameters())
    with torch.no_grad():
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


@torch.no_grad()
def write_others(target, source):
    """Copies the buffers that differ."""
    for mine, its in zip(target.buffers(), source.buffers(), strict=True):
        if not torch.equal(mine, its):
            mine.copy_(its)


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
    """Right but for the buffer that is not in the state: each shared weight gets the same numbers twice."""
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


def ema_replacing_buffers(target, source, decay):
    """Puts clones into the places of the buffers."""
    ema(buffers=False)(target, source, decay)
    for name, part in target.named_modules():
        its = source.get_submodule(name)
        for key in list(part._buffers):
            part._buffers[key] = its._buffers[key].clone()


def ema_of_new_objects(target, source, decay):
    """Puts other tensors with the same memory into the places of the buffers."""
    ema_by_lerp(target, source, decay)
    for part in target.modules():
        for key in list(part._buffers):
            part._buffers[key] = part._buffers[key].detach()


def ema_recorded_buffer(target, source, decay):
    """Writes a buffer with an operation that is recorded."""
    ema_by_lerp(target, source, decay)
    target[3].mask.add_(0 * target[0].weight.sum())


def ema_unless_one(target, source, decay):
    """Leaves the parameters alone where their numbers would be the same."""
    ema(lambda mine, its, d: mine.lerp_(its, 1 - d) if d < 1 else None)(target, source, decay)


def ema_unless_equal(target, source, decay):
    """Leaves the parameters alone that are equal already."""
    ema(lambda mine, its, d: mine if torch.equal(mine, its) else mine.lerp_(its, 1 - d))(target, source, decay)


def ema_whole_numbers_left(target, source, decay):
    ema(buffers=False)(target, source, decay)
    for mine, its in zip(target.buffers(), source.buffers(), strict=True):
        if mine.is_floating_point():
            mine.copy_(its)
        else:
            mine.add_(0)


@torch.no_grad()
def ema_of_the_near(target, source, decay):
    """Averages the models' own parameters and those of their direct children."""
    for mine, its in zip(near(target).values(), near(source).values(), strict=True):
        mine.lerp_(its, 1 - decay)
    for mine, its in zip(target.buffers(), source.buffers(), strict=True):
        mine.copy_(its)


@torch.no_grad()
def ema_of_near_buffers(target, source, decay):
    """Copies the models' own buffers and those of their direct children."""
    for mine, its in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(its, 1 - decay)
    for mine, its in zip(near_buffers(target).values(), near_buffers(source).values(), strict=True):
        mine.copy_(its)


RIGHT = [ema_by_lerp, ema_by_name, ema_by_foreach]

MISCONCEIVED = {
    "behind the counter's back": ema(written_by_data),
    "weights changed places": ema(lambda mine, its, decay: mine.lerp_(its, decay)),
    "buffers forgotten": ema(buffers=False),
    "buffers averaged": ema_all_averaged,
    "the shared weight twice": ema_by_state_dict,
}

WRONG = [
    ema_of_the_near,
    ema_of_near_buffers,
    said(ema(written_by_numpy), "behind the counter's back"),
    ema_by_loading,
    ema_elsewhere := ema(new_memory),
    said(ema(buffers=False, after=write_others), "behind the counter's back"),
    ema_recorded,
    ema_grad_off,
    ema_frozen,
    ema_switching_on,
    ema_of_live_sources,
    ema_clearing := ema(after=clear_target),
    ema_evaluating := ema(after=lambda target, source: target.eval()),
    ema_hooked := ema(after=lambda target, source: hook_on_module(target)),
    ema(after=lambda target, source: source.zero_grad()),
    ema_unfrozen := ema(after=lambda target, source: target.requires_grad_(True)),
    ema(after=lambda target, source: target.requires_grad_(False)),
    ema(lambda mine, its, decay: mine.copy_(its)),
    ema(lambda mine, its, decay: its.lerp_(mine, decay)),
    lambda target, source, decay: copy.deepcopy(source),
    ema_replacing_buffers,
    ema_of_new_objects,
    ema_moved := ema(after=lambda target, source: setattr(target[0].weight, "data", target[0].weight.data.clone())),
    ema_recorded_buffer,
    said(ema_unless_one, "behind the counter's back"),
    said(ema_unless_equal, "behind the counter's back"),
    ema_whole_numbers_left,
    ema_doubled := ema(after=lambda target, source: [it.mul_(2) for it in target.parameters()]),
    ema_of_the_source := ema(after=lambda target, source: [it.mul_(2) for it in source.buffers()]),
    lambda target, source, decay: target.load_state_dict(source.state_dict()),
]

EQUIVALENT = {
    "ema_by_name: with torch.no_grad(): ... | for name, buffer in source.named_buffers(): ... -> (swapped)": "Parameters and buffers do not touch each other.",
    "ema_by_foreach: with torch.no_grad(): ... | for here, there in zip(target.buffers(), source.buffers(), strict=True): ... -> (swapped)": "Parameters and buffers do not touch each other.",
    "ema_by_lerp: for mine, its in zip(target.parameters(), source.parameters(), strict=True): ... | for mine, its in zip(target.buffers()... -> (swapped)": "Parameters and buffers do not touch each other.",
}

GUARDS = {
    "each parameter of `target` becomes": {"value": ema_doubled},
    "each buffer of `target` becomes a copy of the buffer of `source`": {"value": ema_whole_numbers_left},
    "the target keeps its parameters and buffers as objects, with their memory": {
        "objects": ema_of_new_objects,
        "place": ema_moved,
    },
    "it has no graph": {"graph": ema_recorded_buffer},
    "the version counter of each of them moves": {"counted": MISCONCEIVED["behind the counter's back"]},
    "also where `decay` is 1": {"counted": ema_unless_one},
    "nothing of `source`": {"source": ema_of_the_source},
    "no `requires_grad`": {"flags": ema_unfrozen},
    "no `.grad`": {"gradients": ema_clearing},
    "no mode, no hook": {"modes": ema_evaluating, "hooks": ema_hooked},
    "not whether recording is on": {"grad mode": ema_switching_on},
}
