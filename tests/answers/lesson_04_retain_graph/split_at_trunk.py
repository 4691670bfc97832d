"""Right and wrong answers to `split_at_trunk`."""

import torch

from tests.answers.leaving import gradients_off, leaving
from tests.answers.lesson_04_retain_graph.side_effects import frozen, hooked, in_evaluation
from tests.answers.said import said


def split_by_a_leaf(trunk, heads, inputs):
    h = trunk(inputs)
    cut = h.detach().requires_grad_()
    losses = []
    for head in heads:
        loss = head(cut)
        losses.append(loss.item())
        loss.backward()
    h.backward(cut.grad)
    return losses


def split_by_grad(trunk, heads, inputs):
    """Each head's pass stops at h, which stays in the graph."""
    h = trunk(inputs)
    arrived, losses = torch.zeros_like(h), []
    for head in heads:
        parameters = list(head.parameters())
        loss = head(h)
        mine, *own = torch.autograd.grad(loss, [h, *parameters])
        for parameter, gradient in zip(parameters, own, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        arrived += mine
        losses.append(float(loss))
    torch.autograd.backward(h, arrived)
    return losses


def split_with_inputs(trunk, heads, inputs):
    h = trunk(inputs)
    losses = []
    for head in heads:
        loss = head(h)
        losses.append(loss.item())
        loss.backward(inputs=[h, *head.parameters()])
    arrived, h.grad = h.grad, None
    h.backward(arrived)
    return tuple(losses)


def split_with_a_cut_each(trunk, heads, inputs):
    h, arrived, losses = trunk(inputs), 0, []
    for head in heads:
        cut = h.clone().detach().requires_grad_()
        loss = head(cut)
        loss.backward()
        arrived = arrived + cut.grad
        losses.append(loss.item())
    (h * arrived).sum().backward()
    return losses


def split_by_forward(trunk, heads, inputs):
    h = trunk.forward(inputs)
    arrived, losses = torch.zeros_like(h), []
    for head in heads:
        cut = h.data.requires_grad_()
        loss = head.forward(cut)
        loss.backward()
        arrived.add_(cut.grad)
        losses.append(loss.item())
    h.backward(arrived)
    return losses


def heads_again(trunk, heads, inputs):
    """The losses come from a second forward that no hook sees."""
    losses = split_by_a_leaf(trunk, heads, inputs)
    with torch.no_grad():
        h = trunk.forward(inputs)
        return [head.forward(h).item() for head in heads[: len(losses)]]


def split_and_move(trunk, heads, inputs):
    losses = split_by_a_leaf(trunk, heads, inputs)
    for parameter in trunk.parameters():
        parameter.data.mul_(1.1)
    return losses


def split_retaining_the_trunk(trunk, heads, inputs):
    h = trunk(inputs)
    cut = h.detach().requires_grad_()
    losses = []
    for head in heads:
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
    h.backward(cut.grad, retain_graph=True)
    return losses


def splitter(joined=True, **options):
    def split_at_trunk(trunk, heads, inputs):
        h = trunk(inputs)
        cut = h.detach().requires_grad_()
        losses = []
        for head in heads:
            loss = head(cut)
            loss.backward(**options)
            losses.append(loss.item())
        if joined:
            h.backward(cut.grad)
        return losses

    return split_at_trunk


def heads_through_the_trunk(trunk, heads, inputs):
    h, losses = trunk(inputs), []
    for number, head in enumerate(heads, 1):
        loss = head(h)
        loss.backward(retain_graph=number < len(heads))
        losses.append(loss.item())
    return losses


def heads_at_once(trunk, heads, inputs):
    h = trunk(inputs)
    losses = [head(h) for head in heads]
    sum(losses).backward()
    return [loss.item() for loss in losses]


def split_late(trunk, heads, inputs):
    """Cut, but all heads run before the first pass."""
    h = trunk(inputs)
    cut = h.detach().requires_grad_()
    losses = [head(cut) for head in heads]
    for loss in losses:
        loss.backward()
    h.backward(cut.grad)
    return [loss.item() for loss in losses]


def split_keeping_one(trunk, heads, inputs):
    """Only the last head's gradient is handed on."""
    h, losses = trunk(inputs), []
    for head in heads:
        cut = h.detach().requires_grad_()
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
    h.backward(cut.grad)
    return losses


def split_with_checkpoints(trunk, heads, inputs):
    """Heads are recomputed."""
    from torch.utils.checkpoint import checkpoint

    h = trunk(inputs)
    losses = [checkpoint(head, h, use_reentrant=False) for head in heads]
    sum(losses).backward()
    return [loss.item() for loss in losses]


def split_twice_forward(trunk, heads, inputs):
    with torch.no_grad():
        cut = trunk(inputs)
    cut.requires_grad_()
    losses = []
    for head in heads:
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
    trunk(inputs).backward(cut.grad)
    return losses


def split_after_zeroing(trunk, heads, inputs):
    trunk.zero_grad()
    return split_by_a_leaf(trunk, heads, inputs)


def split_replacing(trunk, heads, inputs):
    """The trunk's gradients replace what .grad held."""
    h = trunk(inputs)
    cut = h.detach().requires_grad_()
    losses = []
    for head in heads:
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
    parameters = list(trunk.parameters())
    for parameter, gradient in zip(parameters, torch.autograd.grad(h, parameters, cut.grad), strict=True):
        parameter.grad = gradient
    return losses


def split_and_pass_by_functions(trunk, heads, inputs):
    """The trunk's own gradients are right, from a pass that no hook sees; the inputs get none."""
    values = {name: parameter.detach() for name, parameter in trunk.named_parameters()}
    h, pull = torch.func.vjp(lambda own: torch.func.functional_call(trunk, own, (inputs.detach(),)), values)
    cut, losses = h.detach().requires_grad_(), []
    for head in heads:
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
    (found,) = pull(cut.grad)
    for name, parameter in trunk.named_parameters():
        parameter.grad = found[name] if parameter.grad is None else parameter.grad + found[name]
    return losses


def split_handing_each_on(trunk, heads, inputs):
    """Cut, and each head's gradient is handed on by itself."""
    h, losses = trunk(inputs), []
    for head in heads:
        cut = h.detach().requires_grad_()
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
        h.backward(cut.grad, retain_graph=True)
    return losses


def split_in_two_passes(trunk, heads, inputs):
    """Half of the gradient goes through the trunk, and the other half through its parts, run once more."""
    h = trunk(inputs)
    cut = h.detach().requires_grad_()
    losses = []
    for head in heads:
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
    h.backward(cut.grad / 2)
    again = trunk.first(inputs).tanh()
    (again + trunk.second(again).sigmoid()).backward(cut.grad / 2)
    return losses


def zeros_for_inputs(trunk, heads, inputs):
    if not inputs.requires_grad:
        inputs.grad = torch.zeros_like(inputs)


def split_clearing_inputs(trunk, heads, inputs):
    inputs.grad = None
    return split_by_a_leaf(trunk, heads, inputs)


def split_retaining_one(trunk, heads, inputs):
    """A pass through the trunk that retains where there is one head."""
    h = trunk(inputs)
    cut, losses = h.detach().requires_grad_(), []
    for head in heads:
        loss = head(cut)
        losses.append(loss.item())
        loss.backward()
    h.backward(cut.grad, retain_graph=len(heads) == 1)
    return losses


RIGHT = [split_by_a_leaf, split_by_grad, split_with_inputs, split_with_a_cut_each, split_by_forward]

MISCONCEIVED = {
    "through the trunk each time": heads_through_the_trunk,
    "all heads at once": heads_at_once,
    "cut and not joined": splitter(joined=False),
}


def split_in_float32(trunk, heads, inputs):
    h = trunk(inputs)
    cut = h.detach().float().requires_grad_()
    losses = []
    for head in heads:
        loss = head(cut)
        loss.backward()
        losses.append(loss.item())
    h.backward(cut.grad.to(h.dtype))
    return losses


WRONG = [
    *(leaving(split_by_a_leaf, change) for change in (gradients_off, in_evaluation, hooked)),
    split_and_freeze := leaving(split_by_a_leaf, frozen),
    split_with_zeros := leaving(split_by_a_leaf, zeros_for_inputs),
    split_backwards := lambda trunk, heads, inputs: split_by_a_leaf(trunk, heads, inputs)[::-1],
    split_in_two_passes,
    said(split_handing_each_on, "through the trunk each time"),
    split_and_pass_by_functions,
    leaving(split_by_a_leaf, lambda trunk, heads, inputs: heads.reverse()),
    *(heads_again, split_and_move, split_retaining_the_trunk),
    said(split_after_zeroing, "old gradients gone"),
    split_replacing,
    said(split_late, "all heads at once"),
    said(split_keeping_one, "the last head alone"),
    *(said(split_clearing_inputs, "old gradients gone"), split_retaining_one),
    split_with_checkpoints,
    split_twice_forward,
    splitter(retain_graph=True),
    lambda trunk, heads, inputs: (split_by_a_leaf(trunk, heads, inputs), trunk)[0][:-1],
    split_to_tensors := lambda trunk, heads, inputs: [
        torch.tensor(loss) for loss in split_by_a_leaf(trunk, heads, inputs)
    ],
    lambda trunk, heads, inputs: split_by_a_leaf(trunk, heads, inputs.detach()),
    split_in_float32,
]

EQUIVALENT = {
    "split_by_a_leaf: losses.append(loss.item()) | loss.backward() -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "split_by_grad: arrived += mine -> arrived = arrived + mine": "A new object with the same numbers serves as well.",
    "split_by_grad: parameters = list(head.parameters()) | loss = head(h) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "split_by_grad: for parameter, gradient in zip(parameters, own, strict=True): ... | arrived += mine -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "split_by_grad: arrived += mine | losses.append(float(loss)) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "split_with_inputs: losses.append(loss.item()) | loss.backward(inputs=[h, *head.parameters()]) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "split_with_inputs: return tuple(losses) -> return losses": "A tuple serves as a list does.",
    "split_with_a_cut_each: h.clone().detach -> h.detach": "What it is copied from is not written to afterwards, so a copy and the thing itself serve alike.",
    "split_with_a_cut_each: h.clone().detach -> h.detach().detach": "What it is copied from is not written to afterwards, so a copy and the thing itself serve alike.",
    "split_with_a_cut_each: arrived = arrived + cut.grad -> arrived += cut.grad": "A new object with the same numbers serves as well.",
    "split_with_a_cut_each: arrived = arrived + cut.grad | losses.append(loss.item()) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "split_by_forward: arrived.add_(cut.grad) | losses.append(loss.item()) -> (swapped)": "Neither of the two statements changes what the other one uses.",
}

GUARDS = {
    "a function leaves modes, flags, hooks, and the lists that it is given as they were": {"left": split_and_freeze},
    "It adds to `.grad` what": {"gradient's value": split_after_zeroing},
    "the inputs where they require a gradient": {"none": split_with_zeros},
    "the trunk and each head run forward once": {"runs": split_twice_forward},
    "one backward pass goes through the trunk": {"passes": split_in_two_passes},
    "when a head starts its forward, no saved tensor of an earlier head is alive": {"alive": heads_at_once},
    "no backward pass retains what it used": {"retained": split_retaining_the_trunk},
    "Return the losses as Python floats": {"floats": split_to_tensors},
    "in the order of the heads": {"value": split_backwards},
    "Parameters and inputs keep their numbers.": {"moved": split_and_move},
}


def split_and_clear(trunk, heads, inputs):
    """Clears first, as a training loop does."""
    for part in (trunk, *heads):
        part.zero_grad()
    return split_by_a_leaf(trunk, heads, inputs)


MISCONCEIVED["old gradients gone"] = split_and_clear
MISCONCEIVED["the last head alone"] = split_keeping_one
