"""Right and wrong answers to `fit_classes`."""

import torch
from torch.nn.functional import cross_entropy, nll_loss

from tests.answers.leaving import clipping, zeroing
from tests.answers.lesson_09_practical_checklist.side_effects import (
    MESSES,
    clearing_before_steps,
    guarded,
    leaving,
    slips,
)
from tests.answers.lesson_09_practical_checklist.training import step
from tests.answers.near import clearing_near
from tests.answers.said import said


def by_grad(parameters, optimizer, loss):
    """A step whose gradients come from torch.autograd.grad."""
    for p, gradient in zip(parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True):
        p.grad = gradient
    optimizer.step()
    return loss.item()


def classifier(loss_of=cross_entropy, clear=True, keep=float, hits_of=lambda hit: hit.sum().item(), again=False):
    def fit_classes(model, optimizer, batches):
        losses, hits, total = [], 0, 0
        for inputs, targets in batches:
            scores = model(inputs)
            loss = loss_of(scores, targets)
            if clear:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if again:
                scores = model(inputs)
            losses.append(keep(loss))
            hits += hits_of(scores.argmax(1) == targets)
            total += len(targets)
        return losses, hits / total

    return fit_classes


def classes_by_hand(model, optimizer, batches):
    losses, right = [], []
    for inputs, targets in batches:
        logarithms = model(inputs).log_softmax(1)
        losses.append(step(optimizer, nll_loss(logarithms, targets)))
        right += (logarithms.argmax(1) == targets).tolist()
    return [losses, sum(right) / len(right)]


def classes_by_grad(model, optimizer, batches):
    losses, right = [], []
    for inputs, targets in batches:
        scores = model(inputs)
        right.append(scores.argmax(1) == targets)
        losses.append(
            by_grad([p for p in model.parameters() if p.requires_grad], optimizer, cross_entropy(scores, targets))
        )
    return losses, torch.cat(right).double().mean().item()


def cleared_after_the_step(loop):
    """Run a loop that never clears, with an optimizer that clears after each of its steps."""

    def fit_classes(model, optimizer, batches):
        handle = optimizer.register_step_post_hook(lambda *given: optimizer.zero_grad())
        try:
            return loop(model, optimizer, batches)
        finally:
            handle.remove()

    return fit_classes


def twice(scores, targets):
    return cross_entropy(scores.softmax(1), targets)


def with_an_optimizer_of_its_own(model, optimizer, batches):
    return classifier()(model, torch.optim.SGD(model.parameters(), lr=optimizer.param_groups[0]["lr"]), batches)


def in_training_mode(model, optimizer, batches):
    return classifier()(model.train(), optimizer, batches)


def classes_that_are_sure(model, optimizer, batches):
    """Counts a sample where the right class has more than half of the probability."""
    losses, sure = [], []
    for inputs, targets in batches:
        scores = model(inputs)
        sure += (scores.softmax(1)[range(len(targets)), targets] > 0.5).tolist()
        losses.append(step(optimizer, cross_entropy(scores, targets)))
    return losses, sum(sure) / len(sure)


RIGHT = [classifier(), classes_by_hand, classes_by_grad]


def with_a_mean_of_means(model, optimizer, batches):
    losses, shares = [], []
    for inputs, targets in batches:
        scores = model(inputs)
        shares.append((scores.argmax(1) == targets).float().mean().item())
        losses.append(step(optimizer, cross_entropy(scores, targets)))
    return losses, sum(shares) / len(shares)


MISCONCEIVED = {
    "nothing moves": clearing_before_steps(classifier()),
    "zeros for old gradients": zeroing(classifier()),
    "softmax twice": classifier(twice),
    "a mean of means": with_a_mean_of_means,
    "never cleared": classifier(clear=False),
    "gradients from before": cleared_after_the_step(classifier(clear=False)),
    "no gradient from what is very sure": classifier(
        lambda s, targets: nll_loss(s.softmax(1).clamp_min(1e-30).log(), targets)
    ),
    "logarithm of a softmax": classifier(lambda s, targets: nll_loss(s.softmax(1).log(), targets)),
}

SLIPS = slips(classifier())
LEFT = [leaving(classifier(), mess) for mess in MESSES]


def classes_cut_off(model, optimizer, batches):
    """Scores are cut off at 50: beyond, no gradient gets through."""
    return classifier(lambda s, targets: cross_entropy(s.clamp(-50, 50), targets))(model, optimizer, batches)


def classes_of_a_second_run(model, optimizer, batches):
    """Runs the model once for the accuracy and once for the loss."""
    losses, right = [], []
    for inputs, targets in batches:
        with torch.no_grad():
            right += (model(inputs).argmax(1) == targets).tolist()
        losses.append(step(optimizer, cross_entropy(model(inputs), targets)))
    return losses, sum(right) / len(right)


def classes_by_the_largest(model, optimizer, batches):
    """Logarithms of a softmax by hand, from which the largest score of the whole batch is taken, not that of a row."""

    def loss(scores, targets):
        scores = scores - scores.max().detach()
        return -(scores - scores.exp().sum(1, keepdim=True).log()).gather(1, targets[:, None]).mean()

    return classifier(loss)(model, optimizer, batches)


WRONG = [
    clearing_near(classifier()),
    clipping(classifier(), 1e4),
    *SLIPS.values(),
    said(classifier(twice, clear=False), "softmax twice", "never cleared"),
    said(cleared_after_the_step(classifier(twice, clear=False)), "softmax twice", "gradients from before"),
    with_an_optimizer_of_its_own,
    in_training_mode,
    classifier(lambda scores, targets: cross_entropy(scores.clamp(-1e5, 1e5), targets)),
    classifier(keep=lambda loss: min(float(loss), 1e4)),
    classes_to_tensor := classifier(hits_of=lambda hit: hit.sum()),
    classifier(keep=lambda loss: loss),
    losses_as_tensors := classifier(keep=lambda loss: loss.detach()),
    classifier(hits_of=lambda hit: hit.float().mean().item()),
    classes_after_the_step := classifier(again=True),
    classes_and_more := lambda *given: (*classifier()(*given), 0.0),
    classifier(lambda scores, targets: cross_entropy(scores, targets, reduction="sum")),
    said(lambda model, optimizer, batches: ([], 0.0), "nothing moves"),
    *LEFT,
    classes_that_are_sure,
    said(classes_cut_off, "no gradient from what is very sure"),
    classes_of_a_second_run,
    said(classes_by_the_largest, "logarithm of a softmax"),
]

EQUIVALENT = {
    "classifier.fit_classes: hits += hits_of(scores.argmax(1) == targets) -> hits = hits + hits_of(scores.argmax(1) == targets)": "Nobody else holds the object.",
    "classifier.fit_classes: scores.argmax(1) -> scores.argmax(-1)": "The tensor has two dimensions, so 1 and -1 are the same one.",
    "classifier.fit_classes: total += len(targets) -> total = total + len(targets)": "Nobody else holds the object.",
    "classifier.fit_classes: loss = loss_of(scores, targets) | optimizer.zero_grad() -> (swapped)": "Neither line reads what the other one writes.",
    "classifier.fit_classes: optimizer.step() | losses.append(keep(loss)) -> (swapped)": "Neither line reads what the other one writes.",
    "classifier.fit_classes: losses.append(keep(loss)) | hits += hits_of(scores.argmax(1) == targets) -> (swapped)": "Neither line reads what the other one writes.",
    "classifier.fit_classes: hits += hits_of(scores.argmax(1) == targets) | total += len(targets) -> (swapped)": "Neither line reads what the other one writes.",
    "classes_by_hand: model(inputs).log_softmax(1) -> model(inputs).log_softmax(-1)": "The tensor has two dimensions, so 1 and -1 are the same one.",
    "classes_by_hand: right += (logarithms.argmax(1) == targets).tolist() -> right = right + (logarithms.argmax(1) == targets).tolist()": "Nobody else holds the object.",
    "classes_by_hand: logarithms.argmax(1) -> logarithms.argmax(-1)": "The tensor has two dimensions, so 1 and -1 are the same one.",
    "classes_by_hand: losses.append(step(optimizer, nll_loss(logarithms, targets))) | right += (logarithms.argmax(1) == targets).tolist() -> (swapped)": "Neither line reads what the other one writes.",
    "classes_by_grad: scores.argmax(1) -> scores.argmax(-1)": "The tensor has two dimensions, so 1 and -1 are the same one.",
    "classes_by_grad: right.append(scores.argmax(1) == targets) | losses.append(by_grad([p for p in model.parameters() if p.requires_grad], op... -> (swapped)": "Neither line reads what the other one writes.",
}

GUARDS = {
    **guarded(SLIPS, hooks=LEFT[4], flags=LEFT[3]),
    "at what it leaves behind, in the model": {"counted": classes_of_a_second_run},
    "It returns `(losses, accuracy)`": {"parts": classes_and_more},
    "the list of losses and the accuracy": {"value": classes_that_are_sure},
    "Python floats": {"float": classes_to_tensor, "floats": losses_as_tensors},
}


def classes_beside_old_gradients(model, optimizer, batches):
    """Leaves the old gradient of a parameter that takes no part."""
    losses, right = [], []
    live = [p for p in model.parameters() if p.requires_grad]
    for inputs, targets in batches:
        scores = model(inputs)
        loss = cross_entropy(scores, targets)
        for p, gradient in zip(live, torch.autograd.grad(loss, live, allow_unused=True), strict=True):
            p.grad = p.grad if gradient is None else gradient
        optimizer.step()
        losses.append(loss.item())
        right += (scores.argmax(1) == targets).tolist()
    return losses, sum(right) / len(right)


WRONG.append(classes_beside_old_gradients)


def classes_keeping_a_layer(model, optimizer, batches, hoard=[]):  # noqa: B006
    """Keeps the graph of each batch by what a layer gave."""
    handle = next(model.children()).register_forward_hook(lambda part, given, result: hoard.append(result))
    try:
        return RIGHT[0](model, optimizer, batches)
    finally:
        handle.remove()


WRONG.append(classes_keeping_a_layer)
