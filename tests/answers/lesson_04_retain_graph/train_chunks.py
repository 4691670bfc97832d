"""Right and wrong answers to `train_chunks`."""

import torch
from torch.nn.functional import mse_loss

from tests.answers.leaving import clipping, gradients_off, leaving
from tests.answers.lesson_04_retain_graph.side_effects import frozen, hooked, in_evaluation
from tests.answers.said import said
from tests.answers.updating import updated


def chunks_detached_after(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, end = lstm(inputs, state)
        losses.append(updated(optimizer, mse_loss(readout(outputs), targets)))
        state = tuple(part.detach() for part in end)
    return losses, state


def chunks_detached_before(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        h, c = state
        outputs, state = lstm(inputs, hx=(h.detach(), c.detach()))
        losses += [updated(optimizer, torch.mean((readout(outputs) - targets) ** 2))]
    h, c = state
    return [losses, (h.data, c.data)]


def chunks_by_copies(lstm, readout, optimizer, chunks, state):
    """New tensors from the numbers, and passes that put gradients where the optimizer looks."""
    parameters = [*lstm.parameters(), *readout.parameters()]
    losses = []
    for inputs, targets in chunks:
        outputs, end = lstm(inputs, state)
        loss = mse_loss(readout(outputs), targets)
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        losses.append(loss.item())
        state = [torch.tensor(part.tolist()) for part in end]
        optimizer.step()
    return losses, state


def chunks_detached_in_place(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, state = lstm(inputs, state)
        losses.append(updated(optimizer, mse_loss(readout(outputs), targets)))
        for part in state:
            part.detach_()
    return losses, state


def chunks_by_forward(lstm, readout, optimizer, chunks, state):
    """No call of a module, and nothing kept of a retained graph."""

    def passed(inputs, targets, state):
        outputs, (h, c) = lstm.forward(inputs, state)
        loss = mse_loss(readout.forward(outputs), targets)
        loss.backward(retain_graph=True)
        return loss.item(), (h.detach(), c.detach())

    losses = []
    for inputs, targets in chunks:
        optimizer.zero_grad()
        loss, state = passed(inputs, targets, state)
        losses.append(loss)
        optimizer.step()
    return losses, state


def chunks_clearing(when, carry):
    def train_chunks(lstm, readout, optimizer, chunks, state):
        losses, first = [], state
        for inputs, targets in chunks:
            outputs, last = lstm(inputs, state)
            loss = mse_loss(readout(outputs), targets)
            loss.backward()
            optimizer.step()
            if when == "after":
                optimizer.zero_grad()
            losses.append(loss.item())
            state = carry(last, first)
        return losses, detach_both(last, None)

    return train_chunks


def chunks_in_place(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, end = lstm(inputs, tuple(part.clone() for part in state))
        loss = mse_loss(readout(outputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        for part, new in zip(state, end, strict=True):
            part.copy_(new.detach())
    return losses, state


def chunks_without_the_optimizer(lstm, readout, optimizer, chunks, state):
    parameters, losses = [*lstm.parameters(), *readout.parameters()], []
    for inputs, targets in chunks:
        outputs, end = lstm(inputs, state)
        state = detach_both(end, None)
        loss = mse_loss(readout(outputs), targets)
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.data.sub_(gradient, alpha=0.3)
        losses.append(loss.item())
    return losses, state


def chunks_by_hand(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        with torch.no_grad():
            _, end = lstm.forward(inputs, state)
        loss = mse_loss(readout(lstm(inputs, state)[0]), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        state = end
    return losses, state


def chunks_and_keep(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, state = lstm(inputs, detach_both(state, None))
        loss = mse_loss(readout(outputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [loss.item() for loss in losses], detach_both(state, None)


def chunks_zeroing_between(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, state = lstm(inputs, detach_both(state, None))
        loss = mse_loss(readout(outputs), targets)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses, detach_both(state, None)


def chunks_moment_by_moment(lstm, readout, optimizer, chunks, state):
    """The state is cut after each moment."""
    losses = []
    for inputs, targets in chunks:
        outputs = []
        for moment in inputs.split(1, dim=1):
            output, state = lstm(moment, detach_both(state, None))
            outputs.append(output)
        loss = mse_loss(readout(torch.cat(outputs, dim=1)), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, detach_both(state, None)


def chunks_with_states_of_the_new_weights(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, _ = lstm(inputs, state)
        loss = mse_loss(readout(outputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with torch.no_grad():
            _, state = lstm(inputs, state)
    return losses, state


def chunker(carry, through=lambda outputs: outputs, finish=lambda state: state, **options):
    """The loop with one thing wrong."""

    def train_chunks(lstm, readout, optimizer, chunks, state):
        losses, first = [], state
        for inputs, targets in chunks:
            outputs, state = lstm(inputs, state)
            loss = mse_loss(readout(through(outputs)), targets)
            optimizer.zero_grad()
            loss.backward(**options)
            optimizer.step()
            losses.append(loss.item())
            last, state = state, carry(state, first)
        return losses, finish(tuple(part.detach() for part in last))

    return train_chunks


def detach_both(state, first):
    return tuple(part.detach() for part in state)


def chunks_returned_with_graph(lstm, readout, optimizer, chunks, state):
    losses = []
    for inputs, targets in chunks:
        outputs, state = lstm(inputs, tuple(part.detach() for part in state))
        loss = mse_loss(readout(outputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, state


def chunks_in_one_pass(lstm, readout, optimizer, chunks, state):
    losses, total = [], 0
    for inputs, targets in chunks:
        outputs, state = lstm(inputs, state)
        loss = mse_loss(readout(outputs), targets)
        total = total + loss
        losses.append(loss.item())
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return losses, detach_both(state, None)


def chunks_from_two_moments_on(lstm, readout, optimizer, chunks, state):
    """Takes a single moment for no sequence."""
    return chunks_detached_after(lstm, readout, optimizer, [it for it in chunks if it[0].shape[1] > 1], state)


def chunks_and_one(*given):
    losses, state = chunks_detached_after(*given)
    return [loss + 1 for loss in losses], state


def chunks_and_keep_states(lstm, readout, optimizer, chunks, state):
    """Keeps the states with their graphs, and hands on detached ones."""
    losses, states = [], [state]
    for inputs, targets in chunks:
        outputs, end = lstm(inputs, detach_both(states[-1], state))
        losses.append(updated(optimizer, mse_loss(readout(outputs), targets)))
        states.append(end)
    return losses, detach_both(states[-1], state)


RIGHT = [
    *(chunks_detached_after, chunks_detached_before, chunks_by_copies, chunks_detached_in_place),
    chunks_by_forward,
]

MISCONCEIVED = {
    "the state thrown away": chunker(lambda state, first: None),
    "the first state again": chunker(lambda state, first: first),
    "cut inside the chunk": chunker(detach_both, lambda outputs: outputs.detach()),
    "retained for nothing": chunker(detach_both, retain_graph=True),
    "never cleared": chunks_clearing("never", detach_both),
    "cleared too late": chunks_clearing("after", detach_both),
}

WRONG = [
    clipping(chunks_detached_after),
    *(leaving(chunks_detached_after, change) for change in (gradients_off, in_evaluation, frozen, hooked)),
    leaving(chunks_detached_after, lambda *given: given[-1][1].requires_grad_()),
    leaving(chunks_detached_after, lambda *given: given[-2][0][0].requires_grad_()),
    chunks_zeroing_between,
    chunks_moment_by_moment,
    chunks_with_states_of_the_new_weights,
    said(chunks_clearing("never", lambda state, first: None), "the state thrown away", "never cleared"),
    said(chunks_clearing("after", lambda state, first: first), "the first state again", "cleared too late"),
    *(chunks_in_place, chunks_without_the_optimizer, chunks_by_hand, chunks_and_keep),
    clipping(chunks_detached_after, longest=1e4),
    chunks_from_two_moments_on,
    *(chunks_returned_with_graph, chunks_in_one_pass, chunks_and_keep_states),
    chunker(lambda state, first: state),
    chunker(lambda state, first: state, retain_graph=True),
    chunker(lambda state, first: (state[0].detach(), state[1]), retain_graph=True),
    chunker(lambda state, first: (state[0].detach(), state[1])),
    said(chunker(lambda state, first: (state[0].detach(), first[1])), "the first state again"),
    chunker(detach_both, finish=lambda state: state[0]),
    said(chunker(lambda state, first: tuple(torch.zeros_like(part) for part in state)), "the state thrown away"),
    chunks_and_one,
    chunker(detach_both, finish=lambda state: (2 * state[0], state[1])),
    leaving(chunks_detached_after, lambda lstm, readout, *given: readout.weight.data.mul_(2)),
    leaving(chunks_detached_after, lambda *given: torch.ones(1, requires_grad=True).sum().backward()),
]

EQUIVALENT = {
    "updated: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "A pass adds to zeros as to nothing, and what .grad holds at the end is open.",
    "chunks_detached_after: losses.append(updated(optimizer, mse_loss(readout(outputs), targets))) | state = tuple((part.detach() for part in end)) -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "chunks_by_copies: for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True): ... | losses.append(loss... -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "chunks_by_copies: losses.append(loss.item()) | state = [torch.tensor(part.tolist()) for part in end] -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "chunks_by_copies: state = [torch.tensor(part.tolist()) for part in end] | optimizer.step() -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "chunks_detached_in_place: losses.append(updated(optimizer, mse_loss(readout(outputs), targets))) | for part in state: ... -> (swapped)": "Neither of the two statements changes what the other one uses.",
    "chunks_by_forward.passed: loss.backward(retain_graph=True) -> loss.backward()": "The graph is let go of before the step, so nothing is held whether the pass retained or not.",
    "chunks_by_forward.passed: loss.backward(retain_graph=True) -> loss.backward(retain_graph=False)": "The graph is let go of before the step, so nothing is held whether the pass retained or not.",
    "chunks_by_forward: optimizer.zero_grad() -> optimizer.zero_grad(set_to_none=False)": "A pass adds to zeros as to nothing, and what .grad holds at the end is open.",
    "chunks_by_forward: losses.append(loss) | optimizer.step() -> (swapped)": "Neither of the two statements changes what the other one uses.",
}

GUARDS = {
    "the list of losses as Python floats": {"value": chunks_and_one},
    "and the last state, a pair": {"state's value": WRONG[-3], "state": WRONG[-6]},
    "a pair without a graph": {"cut": chunks_returned_with_graph},
    "Gradients go back to the start of their chunk and no further.": {"trained": WRONG[-2]},
    "Each chunk takes one run of the LSTM, one backward pass and one step of `optimizer`.": {
        "forwards": chunks_by_hand,
        "passes": WRONG[-1],
        "steps": chunks_without_the_optimizer,
    },
    "whose numbers stay as they are": {"start": chunks_in_place},
    "no saved tensors are still held": {"kept": MISCONCEIVED["retained for nothing"]},
    "no graph of an earlier chunk is alive": {"graphs": chunks_and_keep_states},
    "a function leaves modes, flags, hooks": {"left": WRONG[3]},
}
