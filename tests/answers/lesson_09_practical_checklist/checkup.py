"""Right and wrong answers to `checkup`."""

import contextlib
import copy
import math

import torch

from tests.answers.lesson_09_practical_checklist.side_effects import MESSES, leaving
from tests.answers.near import near
from tests.answers.said import said


def checkup(model, optimizer, step):
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    frozen = {name: p.detach().clone() for name, p in model.named_parameters() if not p.requires_grad}
    arrived, bad, handles = set(), set(), []
    for name, p in model.named_parameters():
        if p.requires_grad:

            def note(grad, name=name):
                arrived.add(name)
                if not grad.isfinite().all():
                    bad.add(name)

            handles.append(p.register_hook(note))
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    try:
        step()
    finally:
        for handle in handles:
            handle.remove()
    named = dict(model.named_parameters())
    return {
        "no_gradient": trained - arrived,
        "not_in_optimizer": [name for name in trained if id(named[name]) not in held],
        "frozen_but_changed": [name for name, before in frozen.items() if not torch.equal(named[name], before)],
        "not_finite": bad,
    }


usual = checkup  # the grader's cell binds the exercise's name to the answer that it tries


def checkup_by_tensor_hooks(model, optimizer, step):
    held = [p for group in optimizer.param_groups for p in group["params"]]
    came, handles, before = {}, [], {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            handles += [p.register_hook(lambda grad, name=name: came.setdefault(name, []).append(grad))]
        else:
            before[name] = p.clone()
    report = {"no_gradient": [], "not_in_optimizer": [], "frozen_but_changed": [], "not_finite": []}
    try:
        step()
    finally:
        [handle.remove() for handle in handles]
    for name, p in model.named_parameters():
        if name in before:
            if (before[name] != p).any():
                report["frozen_but_changed"].append(name)
            continue
        if name not in came:
            report["no_gradient"].append(name)
        elif not all(torch.isfinite(grad).all() for grad in came[name]):
            report["not_finite"].append(name)
        if all(p is not other for other in held):
            report["not_in_optimizer"].append(name)
    return report


def checkup_by_looking(model, optimizer, step):
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    frozen = {name: p.detach().clone() for name, p in model.named_parameters() if not p.requires_grad}
    step()
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    return {
        "no_gradient": [name for name, p in named.items() if p.grad is None],
        "not_in_optimizer": [name for name, p in named.items() if id(p) not in held],
        "frozen_but_changed": [
            name for name, p in model.named_parameters() if name in frozen and not torch.equal(p, frozen[name])
        ],
        "not_finite": [name for name, p in named.items() if p.grad is not None and not p.grad.isfinite().all()],
    }


def changed(answer, before=None, after=None):
    """A checkup with something more done before it, or to what it returns."""

    def checkup(model, optimizer, step):
        if before:
            before(model, optimizer)
        report = answer(model, optimizer, step)
        return after(report) if after else report

    return checkup


def checkup_leaving_hooks(model, optimizer, step):
    for p in model.parameters():
        if p.requires_grad:
            p.register_hook(lambda grad: None)
    return usual(model, optimizer, step)


def checkup_leaving_hooks_after_an_error(model, optimizer, step):
    handles = [p.register_hook(lambda grad: None) for p in model.parameters() if p.requires_grad]
    report = usual(model, optimizer, step)
    for handle in handles:
        handle.remove()
    return report


def checkup_of_values(model, optimizer, step):
    """Compares numbers where it should compare objects."""
    held = [p for group in optimizer.param_groups for p in group["params"]]
    equal = {
        name for name, p in model.named_parameters() if any(p.shape == q.shape and torch.equal(p, q) for q in held)
    }
    report = usual(model, optimizer, step)
    report["not_in_optimizer"] = [name for name, p in model.named_parameters() if p.requires_grad and name not in equal]
    return report


def checkup_of_one_group(model, optimizer, step):
    report = usual(model, optimizer, step)
    held = {id(p) for p in optimizer.param_groups[0]["params"]}
    report["not_in_optimizer"] = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in held]
    return report


def checkup_of_frozen_too(model, optimizer, step):
    report = usual(model, optimizer, step)
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    report["not_in_optimizer"] = [name for name, p in model.named_parameters() if id(p) not in held]
    return report


def checkup_zeros_are_none(model, optimizer, step):
    """Takes a gradient of zeros for none."""
    came, handles = set(), []
    for name, p in model.named_parameters():
        if p.requires_grad:
            note = lambda grad, name=name: came.add(name) if grad.any() else None  # noqa: E731
            handles.append(p.register_hook(note))
    try:
        report = usual(model, optimizer, step)
    finally:
        for handle in handles:
            handle.remove()
    report["no_gradient"] = [name for name, p in model.named_parameters() if p.requires_grad and name not in came]
    return report


def checkup_with_frozen(model, optimizer, step):
    report = usual(model, optimizer, step)
    report["no_gradient"] |= {name for name, p in model.named_parameters() if not p.requires_grad}
    return report


def checkup_swallowing(model, optimizer, step, kind=Exception):
    def quietly():
        try:
            step()
        except kind:
            print("the step failed")

    return usual(model, optimizer, quietly)


def checkup_by_numbers(model, optimizer, step):
    """Asks whether some tensor with the same numbers is held, and compares after the step."""
    report = usual(model, optimizer, step)
    held = [p for group in optimizer.param_groups for p in group["params"]]
    report["not_in_optimizer"] = [
        name for name, p in model.named_parameters() if not any(p.shape == q.shape for q in held)
    ]
    return report


def reported_beside(model, optimizer, step, hook):
    """The report, while hook(name, p) has put a hook of its own on each parameter that learns."""
    handles = [hook(name, p) for name, p in model.named_parameters() if p.requires_grad]
    try:
        return usual(model, optimizer, step)
    finally:
        for handle in handles:
            handle.remove()


def checkup_of_grad_as_it_comes(model, optimizer, step):
    """Looks at .grad when a gradient was added to it: an old NaN counts as arrived."""
    odd = set()

    def hook(name, p):
        return p.register_post_accumulate_grad_hook(lambda p: odd if p.grad.isfinite().all() else odd.add(name))

    return {**reported_beside(model, optimizer, step, hook), "not_finite": odd}


def checkup_by_versions(model, optimizer, step):
    frozen = {name: p._version for name, p in model.named_parameters() if not p.requires_grad}
    report, named = usual(model, optimizer, step), dict(model.named_parameters())
    return {
        **report,
        "frozen_but_changed": [name for name, version in frozen.items() if named[name]._version > version],
    }


def checkup_by_closeness(model, optimizer, step):
    frozen = {name: p.detach().clone() for name, p in model.named_parameters() if not p.requires_grad}
    report, named = usual(model, optimizer, step), dict(model.named_parameters())
    return {**report, "frozen_but_changed": [name for name, p in frozen.items() if not torch.allclose(named[name], p)]}


def checkup_of_sums(model, optimizer, step):
    frozen = {name: p.sum().item() for name, p in model.named_parameters() if not p.requires_grad}
    report = usual(model, optimizer, step)
    named = dict(model.named_parameters())
    moved = [name for name, total in frozen.items() if not math.isclose(named[name].sum().item(), total, rel_tol=1e-14)]
    return {**report, "frozen_but_changed": moved}


def checkup_finite_by(number):
    """Takes a gradient for finite where a number made from it is."""

    def checkup_finite(model, optimizer, step):
        odd = set()

        def hook(name, p):
            return p.register_hook(lambda gradient: None if number(gradient).isfinite() else odd.add(name))

        return {**reported_beside(model, optimizer, step, hook), "not_finite": odd}

    return checkup_finite


def checkup_of_modules(model, optimizer, step):
    """Counts a gradient for all parameters of a module."""
    report = usual(model, optimizer, step)
    missing = set(report["no_gradient"])
    whole = {
        name
        for name, part in model.named_modules()
        if all(f"{name}.{own}" in missing for own, _ in part.named_parameters(recurse=False))
    }
    return {**report, "no_gradient": [name for name in missing if name.rpartition(".")[0] in whole]}


def checkup_of_the_first_layer(model, optimizer, step):
    report = usual(model, optimizer, step)
    return {**report, "frozen_but_changed": [name for name in report["frozen_but_changed"] if "first.w" in name]}


def checkup_of_buffers(model, optimizer, step):
    before = {name: it.clone() for name, it in model.named_buffers()}
    report = usual(model, optimizer, step)
    moved = [name for name, it in model.named_buffers() if not torch.equal(it, before[name])]
    return {**report, "frozen_but_changed": report["frozen_but_changed"] + moved}


def checkup_of_the_last_pass(model, optimizer, step):
    odd = {}

    def hook(name, p):
        return p.register_hook(lambda gradient: odd.update({name: not gradient.isfinite().all()}))

    report = reported_beside(model, optimizer, step, hook)
    return {**report, "not_finite": [name for name, is_odd in odd.items() if is_odd]}


def checkup_of_all_names(model, optimizer, step):
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    report, named = usual(model, optimizer, step), model.named_parameters(remove_duplicate=False)
    return {**report, "not_in_optimizer": [name for name, p in named if p.requires_grad and id(p) not in held]}


def checkup_clearing_all_hooks(model, optimizer, step):
    report = usual(model, optimizer, step)
    for p in model.parameters():
        p._backward_hooks = None
    return report


def checkup_for_errors(kind):
    """Removes its hooks where an error of one kind comes, and not where another does."""

    def checkup(model, optimizer, step):
        handles = [p.register_hook(lambda grad: None) for p in model.parameters() if p.requires_grad]
        try:
            report = usual(model, optimizer, step)
        except kind:
            [handle.remove() for handle in handles]
            raise
        [handle.remove() for handle in handles]
        return report

    return checkup


def checkup_after_a_trial(model, optimizer, step):
    """Runs the step once to try it, and puts all back."""
    named = dict(model.named_parameters())
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict(), {name: p.grad for name, p in named.items()}))
    with contextlib.suppress(Exception):
        step()
    model.load_state_dict(before[0])
    optimizer.load_state_dict(before[1])
    for name, p in named.items():
        p.grad = before[2][name]
    return usual(model, optimizer, step)


def checkup_by_kept_gradients(model, optimizer, step):
    """Keeps what its hooks are given, and looks at it when the step is over."""
    kept = {}

    def hook(name, p):
        return p.register_hook(lambda gradient: kept.setdefault(name, []).append(gradient.detach()))

    report = reported_beside(model, optimizer, step, hook)
    return {**report, "not_finite": [name for name, it in kept.items() if not all(g.isfinite().all() for g in it)]}


def checkup_of_fresh_gradients(model, optimizer, step):
    """Clears, so as to see in .grad what arrives."""
    odd = set()

    def hook(name, p):
        p.grad = None
        return p.register_post_accumulate_grad_hook(lambda p: None if p.grad.isfinite().all() else odd.add(name))

    return {**reported_beside(model, optimizer, step, hook), "not_finite": odd}


RIGHT = [checkup, checkup_by_tensor_hooks]

MISCONCEIVED = {
    ".grad after the step": checkup_by_looking,
    "hooks left behind": checkup_leaving_hooks,
    "frozen is not missing": checkup_with_frozen,
    "kept without a copy": checkup_by_kept_gradients,
    "the last pass": checkup_of_the_last_pass,
    "the first group": checkup_of_one_group,
    "zeros are none": checkup_zeros_are_none,
    "cleared before the step": checkup_of_fresh_gradients,
}


def checkup_of_the_first_pass(model, optimizer, step):
    """Judges each parameter by the first gradient that arrives."""
    heard = {}

    def hook(name, p):
        return p.register_hook(lambda gradient: heard.update({name: heard.get(name, gradient.isfinite().all())}))

    report = reported_beside(model, optimizer, step, hook)
    return report | {"not_finite": [name for name, finite in heard.items() if not finite]}


def checkup_of_dimensions(model, optimizer, step):
    """Passes over parameters without dimensions."""
    flat = {name for name, p in model.named_parameters() if not p.dim()}
    return {kind: set(names) - flat for kind, names in usual(model, optimizer, step).items()}


def checkup_of_the_near(model, optimizer, step):
    """Looks after the model's own parameters and those of its direct children."""
    known, report = near(model), usual(model, optimizer, step)
    return {key: [name for name in names if name in known] for key, names in report.items()}


def checkup_of_memory(model, optimizer, step):
    """Takes a parameter for held where the optimizer holds one over the same memory."""
    held = {p.data_ptr() for group in optimizer.param_groups for p in group["params"]}
    learning = [name for name, p in model.named_parameters() if p.requires_grad and p.data_ptr() not in held]
    return {**usual(model, optimizer, step), "not_in_optimizer": learning}


WRONG = [
    checkup_of_the_near,
    checkup_of_the_first_pass,
    checkup_of_dimensions,
    said(checkup_leaving_hooks_after_an_error, "hooks left behind"),
    checkup_swallowing,
    lambda model, optimizer, step: checkup_swallowing(model, optimizer, step, RuntimeError),
    checkup_of_grad_as_it_comes,
    checkup_by_versions,
    checkup_by_closeness,
    checkup_after_a_trial,
    checkup_moving := leaving(checkup, lambda model: model.last.bias.data.mul_(2)),
    checkup_clearing := leaving(checkup, lambda model: model.zero_grad()),
    checkup_twice_each := changed(checkup, after=lambda report: {key: [*it, *it] for key, it in report.items()}),
    checkup_of_sums,
    checkup_of_squares := checkup_finite_by(lambda gradient: gradient.square().sum()),  # of huge ones infinite
    checkup_finite_by(torch.sum),
    checkup_finite_by(lambda gradient: gradient.flatten()[0]),
    checkup_finite_by(lambda gradient: torch.where(gradient.isnan(), 0, gradient).abs().max()),
    checkup_finite_by(lambda gradient: torch.where(gradient.isinf(), 0, gradient).abs().max()),
    checkup_finite_by(lambda gradient: gradient.max()),
    checkup_of_modules,
    checkup_of_the_first_layer,
    checkup_of_buffers,
    said(checkup_of_the_last_pass, "the last pass"),
    checkup_of_all_names,
    checkup_clearing_all_hooks,
    said(checkup_for_errors(RuntimeError), "hooks left behind"),
    said(checkup_stopped := checkup_for_errors(Exception), "hooks left behind"),
    leaving(checkup, lambda model: model.train()),
    checkup_by_numbers,
    checkup_of_values,
    said(checkup_of_one_group, "the first group"),
    said(checkup_of_frozen_too, "frozen is not missing"),
    said(checkup_zeros_are_none, "zeros are none"),
    *(leaving(usual, mess) for mess in MESSES[:4]),
    said(leaving(checkup, MESSES[4]), "hooks left behind"),
    *(leaving(usual, mess) for mess in MESSES[5:]),
    checkup_evaluating := leaving(checkup, lambda model: model.eval()),
    checkup_unfreezing := leaving(checkup, lambda model: model.requires_grad_(True)),
    said(changed(checkup, before=lambda model, optimizer: optimizer.zero_grad()), "cleared before the step"),
    changed(checkup_by_looking, before=lambda model, optimizer: model.zero_grad()),
    changed(checkup, after=lambda report: {name: [] for name in report}),
    changed(checkup, after=lambda report: {name: len(names) for name, names in report.items()}),
    changed(checkup, after=lambda report: {name: [3] for name in report}),
    lambda model, optimizer, step: [step() for _ in range(2)] and usual(model, optimizer, lambda: None),
    lambda model, optimizer, step: usual(model, optimizer, lambda: None),
    checkup_of_memory,
    said(checkup_by_kept_gradients, "kept without a copy"),
    said(checkup_of_fresh_gradients, "cleared before the step"),
]

STILL_RIGHT = {"keeps every graph", "reversed list"}

EQUIVALENT = {
    "checkup.note: arrived.add(name) | if not grad.isfinite().all(): ... -> (swapped)": "Neither line reads what the other one writes.",
    "checkup: for name, p in model.named_parameters(): ... | trained = {name for name, p in model.named_parameters() if p.requires_gra... -> (swapped)": "Neither line reads what the other one writes.",
    "checkup: held = {id(p) for group in optimizer.param_groups for p in group['params']} | frozen = {name: p.detach().clone() for nam... -> (swapped)": "Neither line reads what the other one writes.",
    "checkup: p.detach().clone -> p.clone": "What is compared is its numbers; whether the copy has a graph changes none.",
    "checkup: p.detach().clone -> p.clone().clone": "What is compared is its numbers; whether the copy has a graph changes none.",
    "checkup: trained = {name for name, p in model.named_parameters() if p.requires_grad} | try: ... -> (swapped)": "Neither line reads what the other one writes.",
    "checkup: try: ... | named = dict(model.named_parameters()) -> (swapped)": "Neither line reads what the other one writes.",
    "checkup_by_tensor_hooks: if name not in came: ... | if all((p is not other for other in held)): ... -> (swapped)": "Neither line reads what the other one writes.",
}

GUARDS = {
    "It calls `step()` once": {"calls": checkup_after_a_trial},
    "a dict with four lists (or sets) of names": {"once": checkup_twice_each},
    "parameters that require a gradient, and in this step none arrived": {"no_gradient": checkup_zeros_are_none},
    "parameters that require a gradient, and the optimizer does not hold them": {
        "not_in_optimizer": checkup_of_one_group
    },
    "parameters that require no gradient, and the step changed their numbers": {"frozen_but_changed": checkup_of_sums},
    "parameters for which a gradient arrived that holds NaN or infinity": {"not_finite": checkup_of_squares},
    "the parameters and every `.grad` are afterwards what `step()` alone makes of them": {
        "step": checkup_moving,
        "grad": checkup_clearing,
    },
    "No hook stays behind": {"hooks": checkup_leaving_hooks},
    "not even where `step()` raises, or is stopped from the keyboard.": {"hooks": checkup_stopped},
    "Its exception is not yours: let it through.": {"raised": checkup_swallowing},
    "What requires a gradient, and which part of the model is in which mode, stays as it was.": {
        "flags": checkup_unfreezing,
        "modes": checkup_evaluating,
    },
}
