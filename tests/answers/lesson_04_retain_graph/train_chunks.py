"""Right and wrong answers to `train_chunks`."""

import torch
from torch.nn.functional import mse_loss

from tests.answers.leaving import clipping, gradients_off, leaving
from tests.answers.lesson_04_retain_graph.side_effects import frozen, hooked, in_evaluation
from tests.answers.said import said
from tests.answers.updating import updated


def in_groups(chunks, together):
    return [chunks[first : first + together] for first in range(0, len(chunks), together)]


def detach_both(state, first):
    return tuple(part.detach() for part in state)


def chunks_in_groups(lstm, readout, optimizer, chunks, state, together):
    losses = []
    for group in in_groups(chunks, together):
        found = []
        for inputs, targets in group:
            outputs, state = lstm(inputs, state)
            found.append(mse_loss(readout(outputs), targets))
        updated(optimizer, sum(found))
        state = tuple(part.detach() for part in state)
        losses += [loss.item() for loss in found]
    return losses, state


def chunks_counted(lstm, readout, optimizer, chunks, state, together):
    losses, total = [], 0
    for number, (inputs, targets) in enumerate(chunks, 1):
        outputs, state = lstm(inputs, hx=state)
        loss = torch.mean((readout(outputs) - targets) ** 2)
        losses.append(float(loss))
        total = total + loss
        if number % together == 0 or number == len(chunks):
            updated(optimizer, total)
            total, state = 0, [part.data for part in state]
    return [losses, state]


def chunks_by_copies(lstm, readout, optimizer, chunks, state, together):
    """New tensors from the numbers, and passes that put gradients where the optimizer looks."""
    parameters = [*lstm.parameters(), *readout.parameters()]
    losses = []
    for group in in_groups(chunks, together):
        found = []
        for inputs, targets in group:
            outputs, state = lstm(inputs, state)
            found.append(mse_loss(readout(outputs), targets))
        gradients = torch.autograd.grad(torch.stack(found).sum(), parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        losses.extend(loss.item() for loss in found)
        state = [torch.tensor(part.tolist()) for part in state]
        optimizer.step()
    return losses, state


def chunks_by_forward(lstm, readout, optimizer, chunks, state, together):
    """No call of a module, and nothing kept of a retained graph."""

    def passed(group, state):
        total, losses = 0, []
        for inputs, targets in group:
            outputs, state = lstm.forward(inputs, state)
            losses.append(mse_loss(readout.forward(outputs), targets))
            total = total + losses[-1]
        total.backward(retain_graph=True)
        return [loss.item() for loss in losses], detach_both(state, None)

    losses = []
    for group in in_groups(chunks, together):
        optimizer.zero_grad()
        found, state = passed(group, state)
        losses += found
        optimizer.step()
    return losses, state


def grouped(
    carry=detach_both,
    *,
    within=lambda state, first: state,
    through=lambda outputs: outputs,
    finish=lambda state: state,
    add=sum,
    clear="before",
    **options,
):
    """The loop with one thing wrong."""

    def train_chunks(lstm, readout, optimizer, chunks, state, together):
        losses, first = [], state
        for group in in_groups(chunks, together):
            found = []
            for inputs, targets in group:
                outputs, last = lstm(inputs, state)
                found.append(mse_loss(readout(through(outputs)), targets))
                state = within(last, first)
            if clear == "before":
                optimizer.zero_grad()
            add(found).backward(**options)
            if clear == "between":
                optimizer.zero_grad()
            optimizer.step()
            if clear == "after":
                optimizer.zero_grad()
            losses += [loss.item() for loss in found]
            state = carry(last, first)
        return losses, finish(detach_both(last, None))

    return train_chunks


def as_leaves(state):
    """Each part a leaf that requires a gradient: no graph is behind it."""
    return tuple(part.requires_grad_() for part in state)


def nothing(state, first):
    return None


def the_first(state, first):
    return first


def attached(state, first):
    return state


def zeros(state, first):
    return tuple(torch.zeros_like(part) for part in state)


def chunks_forgotten_at_the_end(lstm, readout, optimizer, chunks, state, together):
    losses, total = [], 0
    for number, (inputs, targets) in enumerate(chunks, 1):
        outputs, state = lstm(inputs, state)
        loss = mse_loss(readout(outputs), targets)
        losses.append(loss.item())
        total = total + loss
        if number % together == 0:
            updated(optimizer, total)
            total, state = 0, detach_both(state, None)
    return losses, detach_both(state, None)


def chunks_in_larger_groups(lstm, readout, optimizer, chunks, state, together):
    return chunks_in_groups(lstm, readout, optimizer, chunks, state, together + 1)


def chunks_with_the_rest_in_the_last_group(lstm, readout, optimizer, chunks, state, together):
    first, middle = chunks_in_groups(lstm, readout, optimizer, chunks[:together], state, together)
    rest, last = chunks_in_groups(lstm, readout, optimizer, chunks[together:], middle, len(chunks))
    return first + rest, last


def chunks_left_out_at_the_end(lstm, readout, optimizer, chunks, state, together):
    return chunks_in_groups(lstm, readout, optimizer, chunks[: len(chunks) // together * together], state, together)


def chunks_one_at_a_time(lstm, readout, optimizer, chunks, state, together):
    return chunks_in_groups(lstm, readout, optimizer, chunks, state, 1)


def chunks_with_a_pass_each(lstm, readout, optimizer, chunks, state, together):
    """The right gradients, by a pass for each loss."""
    losses = []
    for group in in_groups(chunks, together):
        optimizer.zero_grad()
        for number, (inputs, targets) in enumerate(group, 1):
            outputs, state = lstm(inputs, state)
            loss = mse_loss(readout(outputs), targets)
            loss.backward(retain_graph=number < len(group))
            losses.append(loss.item())
        optimizer.step()
        state = detach_both(state, None)
    return losses, state


def chunks_in_place(lstm, readout, optimizer, chunks, state, together):
    own = tuple(part.clone() for part in state)
    losses, end = chunks_in_groups(lstm, readout, optimizer, chunks, own, together)
    for part, new in zip(state, end, strict=True):
        part.copy_(new)
    return losses, state


def chunks_without_the_optimizer(lstm, readout, optimizer, chunks, state, together):
    parameters, losses = [*lstm.parameters(), *readout.parameters()], []
    for group in in_groups(chunks, together):
        found = []
        for inputs, targets in group:
            outputs, state = lstm(inputs, state)
            found.append(mse_loss(readout(outputs), targets))
        for parameter, gradient in zip(parameters, torch.autograd.grad(sum(found), parameters), strict=True):
            parameter.data.sub_(gradient, alpha=0.3)
        state = detach_both(state, None)
        losses += [loss.item() for loss in found]
    return losses, state


def chunks_run_twice(lstm, readout, optimizer, chunks, state, together):
    for inputs, _ in chunks:
        with torch.no_grad():
            lstm(inputs, state)
    return chunks_in_groups(lstm, readout, optimizer, chunks, state, together)


def chunks_that_keep(what):
    """The loop that keeps something of every chunk, with its graph."""

    def train_chunks(lstm, readout, optimizer, chunks, state, together):
        losses, kept = [], []
        for group in in_groups(chunks, together):
            found = []
            for inputs, targets in group:
                outputs, state = lstm(inputs, state)
                found.append(mse_loss(readout(outputs), targets))
                kept.append(what(found[-1], state))
            updated(optimizer, sum(found))
            losses += [loss.item() for loss in found]
            state = detach_both(state, None)
        return losses, state

    return train_chunks


chunks_and_keep = chunks_that_keep(lambda loss, state: loss)
chunks_and_keep_states = chunks_that_keep(lambda loss, state: state)


def chunks_moment_by_moment(lstm, readout, optimizer, chunks, state, together):
    """The state is cut after each moment."""
    losses = []
    for group in in_groups(chunks, together):
        found = []
        for inputs, targets in group:
            outputs = []
            for moment in inputs.split(1, dim=1):
                output, state = lstm(moment, detach_both(state, None))
                outputs.append(output)
            found.append(mse_loss(readout(torch.cat(outputs, dim=1)), targets))
        updated(optimizer, sum(found))
        losses += [loss.item() for loss in found]
    return losses, detach_both(state, None)


def chunks_with_states_of_the_new_weights(lstm, readout, optimizer, chunks, state, together):
    losses = []
    for group in in_groups(chunks, together):
        found, start = [], state
        for inputs, targets in group:
            outputs, state = lstm(inputs, state)
            found.append(mse_loss(readout(outputs), targets))
        updated(optimizer, sum(found))
        losses += [loss.item() for loss in found]
        state = start
        with torch.no_grad():
            for inputs, _ in group:
                _, state = lstm.forward(inputs, state)
    return losses, state


def chunks_in_one_pass(lstm, readout, optimizer, chunks, state, together):
    return chunks_in_groups(lstm, readout, optimizer, chunks, state, len(chunks))


def chunks_from_two_moments_on(lstm, readout, optimizer, chunks, state, together):
    """Takes a single moment for no sequence."""
    longer = [it for it in chunks if it[0].shape[1] > 1]
    return chunks_in_groups(lstm, readout, optimizer, longer, state, together)


def chunks_returned_with_graph(lstm, readout, optimizer, chunks, state, together):
    losses = []
    for group in in_groups(chunks, together):
        found, state = [], detach_both(state, None)
        for inputs, targets in group:
            outputs, state = lstm(inputs, state)
            found.append(mse_loss(readout(outputs), targets))
        updated(optimizer, sum(found))
        losses += [loss.item() for loss in found]
    return losses, state


def chunks_in_a_running_sum(lstm, readout, optimizer, chunks, state, together):
    """The sum never starts anew."""
    losses, total = [], 0
    for number, (inputs, targets) in enumerate(chunks, 1):
        outputs, state = lstm(inputs, state)
        loss = mse_loss(readout(outputs), targets)
        losses.append(loss.item())
        total = total + loss
        if number % together == 0 or number == len(chunks):
            updated(optimizer, total)
            state = detach_both(state, None)
    return losses, state


def chunks_and_one(*given):
    losses, state = chunks_in_groups(*given)
    return [loss + 1 for loss in losses], state


def losses_of_groups(*given):
    losses, state = chunks_in_groups(*given)
    return [sum(group) for group in in_groups(losses, given[-1])], state


def one_part(state, first):
    return state[0].detach(), state[1]


RIGHT = [chunks_in_groups, chunks_counted, chunks_by_copies, chunks_by_forward, grouped(finish=as_leaves)]

MISCONCEIVED = {
    "cut after each chunk": grouped(within=detach_both),
    "a step for each chunk": chunks_one_at_a_time,
    "the last group forgotten": chunks_forgotten_at_the_end,
    "averaged, not summed": grouped(add=lambda found: sum(found) / len(found)),
    "the last loss alone": grouped(add=lambda found: found[-1]),
    "the state thrown away": grouped(nothing, within=nothing),
    "the first state again": grouped(the_first, within=the_first),
    "cut inside the chunk": grouped(through=lambda outputs: outputs.detach()),
    "retained for nothing": grouped(retain_graph=True),
    "never cleared": grouped(clear="never"),
    "no gradient at the step": grouped(clear="between"),
    "cleared too late": grouped(clear="after"),
}

WRONG = [
    clipping(chunks_in_groups),
    *(leaving(chunks_in_groups, change) for change in (gradients_off, in_evaluation, frozen, hooked)),
    leaving(chunks_in_groups, lambda *given: given[-2][1].requires_grad_()),
    leaving(chunks_in_groups, lambda *given: given[-3][0][0].requires_grad_()),
    *(chunks_moment_by_moment, chunks_with_states_of_the_new_weights, chunks_with_a_pass_each),
    *(chunks_left_out_at_the_end, chunks_in_a_running_sum, losses_of_groups),
    said(grouped(nothing, within=nothing, clear="never"), "the state thrown away", "never cleared"),
    said(grouped(the_first, within=the_first, clear="after"), "the first state again", "cleared too late"),
    *(chunks_in_place, chunks_without_the_optimizer, chunks_run_twice, chunks_and_keep),
    chunks_and_keep_states,
    clipping(chunks_in_groups, longest=1e4),
    chunks_from_two_moments_on,
    *(chunks_returned_with_graph, chunks_in_one_pass),
    grouped(attached),
    grouped(attached, retain_graph=True),
    grouped(one_part, retain_graph=True),
    grouped(one_part),
    said(grouped(nothing), "the state thrown away"),
    said(grouped(the_first), "the first state again"),
    said(grouped(zeros, within=zeros), "the state thrown away"),
    *(chunks_in_larger_groups, chunks_with_the_rest_in_the_last_group),
    grouped(finish=lambda state: state[0]),
    chunks_and_one,
    grouped(finish=lambda state: (2 * state[0], state[1])),
    leaving(chunks_in_groups, lambda lstm, readout, *given: readout.weight.data.mul_(2)),
    leaving(chunks_in_groups, lambda *given: torch.ones(1, requires_grad=True).sum().backward()),
]

EQUIVALENT = {
    "as_leaves: part.requires_grad_() -> part": "Whether the last state requires a gradient is open: it has no graph either way.",
    "as_leaves: return tuple((part.requires_grad_() for part in state)) -> return state": "Whether the last state requires a gradient is open: it has no graph either way.",
    "grouped.train_chunks: for inputs, targets in group: ... | optimizer.zero_grad() -> (swapped)": "No pass runs between the two.",
    "grouped.train_chunks: found.append(mse_loss(readout(through(outputs)), targets)) | state = within(last, first) -> (swapped)": "Neither line reads what the other one writes.",
    "grouped.train_chunks: losses += [loss.item() for loss in found] -> losses = losses + [loss.item() for loss in found]": "Nothing else refers to the list.",
    "grouped.train_chunks: losses += [loss.item() for loss in found] | state = carry(last, first) -> (swapped)": "Neither line reads what the other one writes.",
    "grouped.train_chunks: optimizer.step() | losses += [loss.item() for loss in found] -> (swapped)": "The losses were computed before the step.",
    "grouped.train_chunks: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "A pass adds to zeros as to nothing, and what .grad holds at the end is open.",
    "updated: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "A pass adds to zeros as to nothing, and what .grad holds at the end is open.",
    "updated: return loss.item() -> (dropped)": "These answers do not use what updated returns.",
    "updated: return loss.item() -> return optimizer": "These answers do not use what updated returns.",
    "updated: return loss.item() -> return loss": "These answers do not use what updated returns.",
    "chunks_in_groups: losses += [loss.item() for loss in found] -> losses = losses + [loss.item() for loss in found]": "Both bind the name to the same numbers; what the other one writes into nobody else uses.",
    "chunks_in_groups: updated(optimizer, sum(found)) | state = tuple((part.detach() for part in state)) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "chunks_in_groups: state = tuple((part.detach() for part in state)) | losses += [loss.item() for loss in found] -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "chunks_counted: losses, total = ([], 0) -> losses, total = ([], 1)": "A constant in the sum has no gradient, and the sum is not returned.",
    "chunks_counted: total = total + loss -> total += loss": "Both bind the name to the same numbers; what the other one writes into nobody else uses.",
    "chunks_counted: (0, [part.data for part in state]) -> (1, [part.data for part in state])": "A constant in the sum has no gradient, and the sum is not returned.",
    "chunks_counted: losses.append(float(loss)) | total = total + loss -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "chunks_by_copies: for parameter, gradient in zip(parameters, gradients, strict=True): ... | losses.extend((loss.item() for loss in found)) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "chunks_by_copies: losses.extend((loss.item() for loss in found)) | state = [torch.tensor(part.tolist()) for part in state] -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "chunks_by_copies: state = [torch.tensor(part.tolist()) for part in state] | optimizer.step() -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "chunks_by_forward.passed: total, losses = (0, []) -> total, losses = (1, [])": "A constant in the sum has no gradient, and the sum is not returned.",
    "chunks_by_forward.passed: total = total + losses[-1] -> total += losses[-1]": "Both bind the name to the same numbers; what the other one writes into nobody else uses.",
    "chunks_by_forward.passed: total.backward(retain_graph=True) -> total.backward()": "The graph is let go of before the step, so nothing is held whether the pass retained or not.",
    "chunks_by_forward.passed: total.backward(retain_graph=True) -> total.backward(retain_graph=False)": "The graph is let go of before the step, so nothing is held whether the pass retained or not.",
    "chunks_by_forward: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "A pass adds to zeros as to nothing, and what .grad holds at the end is open.",
    "chunks_by_forward: losses += found -> losses = losses + found": "Both bind the name to the same numbers; what the other one writes into nobody else uses.",
    "chunks_by_forward: losses += found | optimizer.step() -> (swapped)": "Neither of the two statements changes what the other one uses.",
}

GUARDS = {
    "the loss of each chunk, as Python floats": {"value": chunks_and_one},
    "and the last state, a pair": {"state's value": WRONG[-3], "state": WRONG[-5]},
    "a pair without a graph": {"cut": chunks_returned_with_graph},
    "Gradients go back to the start of their group and no further.": {"trained": WRONG[-2]},
    "Each chunk takes one run of the LSTM": {"forwards": chunks_run_twice},
    "each group one backward pass, for the sum of its losses, and one step of `optimizer`": {
        "passes": WRONG[-1],
        "steps": chunks_without_the_optimizer,
    },
    "whose numbers stay as they are": {"start": chunks_in_place},
    "no saved tensors are still held": {"kept": MISCONCEIVED["retained for nothing"]},
    "no graph of an earlier group is alive": {"graphs": chunks_and_keep},
    "a function leaves modes, flags, hooks": {"left": WRONG[3]},
}
