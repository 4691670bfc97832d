"""Right and wrong answers to `backward_engine`."""

import math
from collections import Counter, defaultdict, deque
from functools import cache

import torch
from torch.autograd.graph import get_gradient_edge

from tests.answers.lesson_02_how_backward_works.nodes import edge_counts, nodes_behind
from tests.answers.said import said


def ran(node, gradients):
    results = node(*gradients) if callable(node) else node.apply(*gradients)
    return results if isinstance(results, tuple) else (results,)


@torch.no_grad()
def engine(loss):
    edge, nodes, found = get_gradient_edge(loss), nodes_behind(loss), {}
    inbox, waiting = {node: [None] * len(node._input_metadata) for node in nodes}, edge_counts(nodes)
    inbox[edge.node][edge.output_nr], ready = torch.ones_like(loss), [edge.node]
    while ready:
        node = ready.pop()
        if hasattr(node, "variable"):
            found[node.variable] = inbox[node][0]
            continue
        for (to, output), gradient in zip(node.next_functions, ran(node, inbox[node]), strict=True):
            if to and gradient is not None:
                expected = to._input_metadata[output]
                letters = [inbox[to][output], gradient.sum_to_size(expected.shape).to(expected.dtype)]
                inbox[to][output] = sum(letter for letter in letters if letter is not None)
            waiting[to] -= 1
            if to and not waiting[to]:
                ready.append(to)
    return found


@torch.no_grad()
def engine_in_time(loss):
    """Collects contributions in lists, sums them when a node runs, and takes the nodes from the newest to the oldest."""
    nodes, start, mail, result = (
        nodes_behind(loss),
        get_gradient_edge(loss),
        defaultdict(list),
        defaultdict(lambda: None),
    )
    mail[start.node, start.output_nr].append(torch.ones_like(loss))
    for node in sorted(nodes, key=lambda node: (hasattr(node, "variable"), -node._sequence_nr())):
        sums = []
        for output, expected in enumerate(node._input_metadata):
            letters = [letter.sum_to_size(expected.shape).to(expected.dtype) for letter in mail[node, output]]
            sums.append(torch.stack(letters).sum(0) if letters else None)
        if type(node).__name__ == "AccumulateGrad":
            result[node.variable] = sums[0]
            continue
        for edge, gradient in zip(node.next_functions, ran(node, sums), strict=True):
            if gradient is not None:
                mail[edge].append(gradient)
    return result


def zeros_for(expected):
    return torch.zeros(expected.shape, dtype=expected.dtype)


@torch.no_grad()
def engine_with_zeros(loss):
    """Starts every place with zeros and adds in place to these, which nobody else holds."""
    edge, nodes = get_gradient_edge(loss), nodes_behind(loss)
    waiting, places = edge_counts(nodes), {node: [zeros_for(it) for it in node._input_metadata] for node in nodes}
    places[edge.node][edge.output_nr] += 1
    queue = deque([edge.node])
    while queue:
        node = queue.popleft()
        if type(node).__name__ == "AccumulateGrad":
            continue
        for (to, output), gradient in zip(node.next_functions, ran(node, places[node]), strict=True):
            if to and gradient is not None:
                places[to][output] += gradient.sum_to_size(places[to][output].shape)
            waiting[to] -= 1
            if to and not waiting[to]:
                queue.append(to)
    return {node.variable: places[node][0] for node in places if hasattr(node, "variable")}


@torch.no_grad()
def engine_from_the_leaves(loss):
    """Asks each place what comes to it, and remembers what a node gave."""
    start, nodes = get_gradient_edge(loss), nodes_behind(loss)

    @cache
    def given_by(node):
        return ran(node, [comes_to(node, output) for output in range(len(node._input_metadata))])

    def comes_to(node, output):
        expected, letters = node._input_metadata[output], [torch.ones_like(loss)] * (start[:2] == (node, output))
        for other in nodes:
            for edge, place in zip(other.next_functions, range(len(other.next_functions)), strict=True):
                if edge == (node, output) and given_by(other)[place] is not None:
                    letters.append(given_by(other)[place].sum_to_size(expected.shape).to(expected.dtype))
        return sum(letters) if letters else None

    return {node.variable: comes_to(node, 0) for node in nodes if hasattr(node, "variable")}


@torch.no_grad()
def engine_that_leaves_out(loss):
    """Leaves out the gradients that are None, and the inputs that need none, each by itself: the rest is shifted."""
    edge, nodes = get_gradient_edge(loss), nodes_behind(loss)
    inbox, waiting = {node: [None] * len(node._input_metadata) for node in nodes}, edge_counts(nodes)
    inbox[edge.node][edge.output_nr], ready, found = torch.ones_like(loss), [edge.node], {}
    while ready:
        node = ready.pop()
        if hasattr(node, "variable"):
            found[node.variable] = inbox[node][0]
            continue
        sent = [gradient for gradient in ran(node, inbox[node]) if gradient is not None]
        edges = [(to, output) for to, output in node.next_functions if to is not None]
        for (to, output), gradient in zip(edges, [*sent, *[None] * len(edges)], strict=False):
            if gradient is not None:
                expected = to._input_metadata[output]
                letters = [inbox[to][output], gradient.sum_to_size(expected.shape).to(expected.dtype)]
                inbox[to][output] = sum(letter for letter in letters if letter is not None)
            waiting[to] -= 1
            if not waiting[to]:
                ready.append(to)
    return found


def taught_engine(pick="newest", in_place=False, lower_none=True, count_edges=True, lower_edges=True, as_dict=False):
    """The master's engine in an order of one's own, with one thing wrong."""

    @torch.no_grad()
    def answer(loss):
        edge = get_gradient_edge(loss)
        nodes = nodes_behind(loss)
        waiting = Counter()
        for node in nodes:
            targets = [to for to, _ in node.next_functions if to is not None]
            waiting.update(targets if count_edges else set(targets))
        inbox = {node: [None] * len(node._input_metadata) for node in nodes}
        inbox[edge.node][edge.output_nr] = torch.ones_like(loss)
        ready, found = [edge.node], {}
        while ready:
            node = {
                "newest": max(ready, key=lambda node: node._sequence_nr()),
                "first": ready[0],
                "last": ready[-1],
            }[pick]
            ready.remove(node)
            gradients = inbox[node]
            if hasattr(node, "variable"):
                found[node.variable] = gradients[0]
                continue
            pairs = list(zip(node.next_functions, ran(node, gradients), strict=True))
            lowered = set()
            for (to, output), gradient in dict(pairs).items() if as_dict else pairs:
                if to is None:
                    continue
                if gradient is not None:
                    expected = to._input_metadata[output]
                    gradient = gradient.sum_to_size(expected.shape).to(expected.dtype)
                    before = inbox[to][output]
                    if before is None:
                        inbox[to][output] = gradient
                    elif in_place:
                        before += gradient
                    else:
                        inbox[to][output] = before + gradient
                if (gradient is None and not lower_none) or (to in lowered and not lower_edges):
                    continue
                lowered.add(to)
                waiting[to] -= 1
                if waiting[to] == 0:
                    ready.append(to)
        return found

    return answer


def faulty_engine(
    wait=True, add=True, in_place=False, outputs=True, shapes=True, dtypes=True, leaves=True, recorded=False
):
    """The master's engine with one thing wrong."""

    @torch.set_grad_enabled(recorded)
    def answer(loss):
        edge = get_gradient_edge(loss)
        nodes = nodes_behind(loss)
        waiting = edge_counts(nodes)
        inbox = {node: [None] * len(node._input_metadata) for node in nodes}
        inbox[edge.node][edge.output_nr if outputs else 0] = torch.ones_like(loss)
        ready, found, done = deque([edge.node]), {}, set()
        while ready:
            node = ready.popleft()
            if node in done:
                continue
            done.add(node)
            gradients = inbox[node]
            if hasattr(node, "variable"):
                if not leaves:
                    node(gradients[0])
                found[node.variable] = node.variable.grad if not leaves else gradients[0]
                continue
            for (to, output), gradient in zip(node.next_functions, ran(node, gradients), strict=True):
                if to is None:
                    continue
                output = output if outputs else 0
                waiting[to] -= 1
                if gradient is not None:
                    expected = to._input_metadata[output]
                    if shapes is True or (shapes == "of leaves" and hasattr(to, "variable")):
                        gradient = gradient.sum_to_size(expected.shape)
                    if dtypes:
                        gradient = gradient.to(expected.dtype)
                    before = inbox[to][output]
                    if before is None or not add:
                        inbox[to][output] = gradient
                    elif in_place:
                        before += gradient
                    else:
                        inbox[to][output] = before + gradient
                if not wait or waiting[to] == 0:
                    ready.append(to)
        return found

    return answer


@torch.no_grad()
def engine_by_paths(loss, most=math.inf):
    """Follows every path to its end, or as many nodes as it may run."""
    found, runs = {}, 0
    edge = get_gradient_edge(loss)
    stack = [(edge.node, edge.output_nr, torch.ones_like(loss))]
    while stack and runs < most:
        runs += 1
        node, output, gradient = stack.pop()
        expected = node._input_metadata[output]
        gradient = gradient.sum_to_size(expected.shape).to(expected.dtype)
        if hasattr(node, "variable"):
            found[node.variable] = found.get(node.variable, 0) + gradient
            continue
        gradients = [None] * len(node._input_metadata)
        gradients[output] = gradient
        for (to, number), result in zip(node.next_functions, ran(node, gradients), strict=True):
            if to is not None and result is not None:
                stack.append((to, number, result))
    return found


def engine_without_end(loss):
    while True:
        pass


def leaves_behind(loss):
    return [node.variable for node in nodes_behind(loss) if hasattr(node, "variable")]


def engine_by_torch(loss):
    leaves = leaves_behind(loss)
    return dict(zip(leaves, torch.autograd.grad(loss, leaves), strict=True))


def engine_by_torch_from_behind(loss):
    """Starts PyTorch's engine one node later, where the loss itself is not reached."""
    edge = get_gradient_edge(loss)
    if hasattr(edge.node, "variable"):
        return {loss: torch.ones_like(loss)}
    gradients = [None] * len(edge.node._input_metadata)
    gradients[edge.output_nr] = torch.ones_like(loss)
    with torch.no_grad():
        results = ran(edge.node, gradients)
    roots = [
        (torch.autograd.graph.GradientEdge(to, number), result)
        for (to, number), result in zip(edge.node.next_functions, results, strict=True)
        if to is not None and result is not None
    ]
    leaves = leaves_behind(loss)
    starts, seeds = zip(*roots, strict=True)
    return dict(zip(leaves, torch.autograd.grad(starts, leaves, seeds), strict=True))


def engine_with_a_seed_by_torch(loss):
    one = torch.ones((), requires_grad=True)
    return {leaf: gradient * torch.autograd.grad(one, one)[0] for leaf, gradient in engine(loss).items()}


def engine_twice(loss):
    engine(loss)
    return engine(loss)


def engine_with_guests(loss):
    return {**engine(loss), torch.ones(1): torch.ones(1)}


def engine_doubled(loss):
    return {leaf: 2 * gradient for leaf, gradient in engine(loss).items()}


def engine_flattened(loss):
    return {leaf: gradient.reshape(-1) for leaf, gradient in engine(loss).items()}


def engine_in_double(loss):
    return {leaf: gradient.double() for leaf, gradient in engine(loss).items()}


@torch.no_grad()
def engine_adding_at_leaves(loss):
    """Sums in place at leaves only, and what came first there may have been handed to another leaf, too."""
    edge, nodes, found = get_gradient_edge(loss), nodes_behind(loss), {}
    inbox, waiting = {node: [None] * len(node._input_metadata) for node in nodes}, edge_counts(nodes)
    inbox[edge.node][edge.output_nr], ready = torch.ones_like(loss), [edge.node]
    while ready:
        node = ready.pop()
        if hasattr(node, "variable"):
            found[node.variable] = inbox[node][0]
            continue
        for (to, output), gradient in zip(node.next_functions, ran(node, inbox[node]), strict=True):
            if to and gradient is not None:
                expected, there = to._input_metadata[output], inbox[to][output]
                letter = gradient.sum_to_size(expected.shape).to(expected.dtype)
                summed = letter if there is None else there.add_(letter) if hasattr(to, "variable") else there + letter
                inbox[to][output] = summed
            waiting[to] -= 1
            if to and not waiting[to]:
                ready.append(to)
    return found


def engine_freezing(loss):
    found = engine(loss)
    for leaf in found:
        leaf.requires_grad_(False)
    return found


def engine_stepping(loss):
    """Takes a step, which nobody asked for."""
    found = engine(loss)
    for leaf, gradient in found.items():
        leaf.data -= 0.1 * gradient
    return found


def engine_touching_grad(loss):
    found = engine(loss)
    for leaf in found:
        leaf.grad = None
    return found


def engine_without_zeros(loss):
    """Takes a gradient of zeros for none."""
    return {leaf: gradient for leaf, gradient in engine(loss).items() if gradient.count_nonzero()}


def engine_from_single(loss):
    """Begins with a one of float32, whatever the loss is."""
    return {leaf: torch.tensor(1.0) if leaf is loss else gradient for leaf, gradient in engine(loss).items()}


def engine_in_lists(loss):
    return {leaf: gradient.tolist() for leaf, gradient in engine(loss).items()}


RIGHT = [
    engine,
    engine_in_time,
    engine_with_zeros,
    engine_from_the_leaves,
]

MISCONCEIVED = {
    "PyTorch's engine": engine_by_torch,
    "AccumulateGrad is called": faulty_engine(leaves=False),
    "once for each path": engine_by_paths,
    "one edge for two": taught_engine(count_edges=False, lower_edges=False, as_dict=True),
    "not all contributions": faulty_engine(wait=False),
    "changed in place": faulty_engine(in_place=True),
    "wrong output": faulty_engine(outputs=False),
    "not summed back": faulty_engine(shapes=False),
    "None leaves the edge open": taught_engine(lower_none=False),
    "shapes of leaves only": faulty_engine(shapes="of leaves"),
    "the wrong dtype": faulty_engine(dtypes=False),
}

WRONG = [
    said(taught_engine(as_dict=True), "one edge for two"),
    said(taught_engine(as_dict=True, count_edges=False), "one edge for two"),
    said(taught_engine(lower_edges=False), "one edge for two"),
    said(taught_engine(count_edges=False), "one edge for two", "not all contributions"),
    said(taught_engine("first", count_edges=False), "one edge for two", "not all contributions"),
    said(taught_engine("last", count_edges=False), "one edge for two", "not all contributions"),
    said(taught_engine(in_place=True), "changed in place"),
    said(taught_engine("first", in_place=True), "changed in place"),
    said(taught_engine("last", in_place=True), "changed in place"),
    said(faulty_engine(add=False), "not all contributions"),
    faulty_engine(recorded=True),
    said(engine_by_torch_from_behind, "PyTorch's engine"),
    lambda loss: list(engine(loss).items()),
    lambda loss: {id(leaf): gradient for leaf, gradient in engine(loss).items()},
    lambda loss: dict(list(engine(loss).items())[:-1]),
    said(engine_with_a_seed_by_torch, "PyTorch's engine"),
    engine_twice,
    engine_with_guests,
    engine_doubled,
    engine_flattened,
    said(engine_in_double, "the wrong dtype"),
    said(engine_touching_grad, "AccumulateGrad is called"),
    engine_in_lists,
    engine_without_zeros,
    engine_from_single,
    engine_that_leaves_out,
    said(engine_adding_at_leaves, "changed in place"),
    *(engine_freezing, engine_stepping),
    said(lambda loss: engine_by_paths(loss, 3000), "once for each path"),
    engine_without_end,
]

EQUIVALENT = {
    "engine: if to and gradient is not None: ... | waiting[to] -= 1 -> (swapped)": "Neither statement changes what the other reads.",
    "engine_with_zeros: if to and gradient is not None: ... | waiting[to] -= 1 -> (swapped)": "Neither statement changes what the other reads.",
    "engine_with_zeros: places[edge.node][edge.output_nr] += 1 | queue = deque([edge.node]) -> (swapped)": "Neither statement changes what the other reads.",
}

GUARDS = {
    "what `loss.backward()` does": {"value": engine_doubled},
    "Return a dict from leaf tensor to gradient": {"type": WRONG[12], "keys": engine_with_guests},
    "one entry for each leaf that a gradient comes to, and no other.": {"missing": engine_without_zeros},
    "PyTorch's own engine must not run": {"passes": engine_with_a_seed_by_torch},
    "Each node runs once, when all its contributions have come.": {"once": engine_twice},
    "Every leaf keeps its numbers, its `.grad`, and whether it requires a gradient.": {
        "grad": engine_touching_grad,
        "numbers": engine_stepping,
        "flags": engine_freezing,
    },
    "The gradients have the values, shapes and dtypes that `torch.autograd.grad` gives": {
        "shape": engine_flattened,
        "dtype": engine_in_double,
    },
    "no graph of their own": {"recorded": WRONG[10]},
}


def engine_keeping_its_dict(loss, found={}):  # noqa: B006
    found.update(engine(loss))
    return dict(found)


def engine_wrong_in_large_graphs(loss):
    """Which slip that is, no large scene can tell."""
    found = engine(loss)
    return {leaf: gradient * 1.5 if len(found) > 8 else gradient for leaf, gradient in found.items()}


def engine_wrong_behind_two_edges(loss):
    found = engine(loss)
    targets = [[to for to, _ in node.next_functions if to is not None] for node in nodes_behind(loss)]
    twice = any(len(set(to)) < len(to) for to in targets)
    return {leaf: 3 * gradient if twice else gradient for leaf, gradient in found.items()}


WRONG += [
    *(engine_keeping_its_dict, engine_wrong_in_large_graphs),
    said(engine_wrong_behind_two_edges, "one edge for two"),
]


def begun(loss):
    """Return what an engine begins with: what arrives at each node, the edges that it waits for, who is ready, nothing."""
    edge, nodes = get_gradient_edge(loss), nodes_behind(loss)
    inbox = {node: [None] * len(node._input_metadata) for node in nodes}
    inbox[edge.node][edge.output_nr] = torch.ones_like(loss)
    return inbox, edge_counts(nodes), [edge.node], {}


def engine_that_fills_in(shorter=False):
    """The master's engine, which takes ones for what no edge brings; or sums only over dimensions that were added."""

    @torch.no_grad()
    def answer(loss):
        inbox, waiting, ready, found = begun(loss)
        while ready:
            node = ready.pop()
            gradients = inbox[node]
            if hasattr(node, "variable"):
                found[node.variable] = gradients[0]
                continue
            if not shorter:
                ones = [torch.ones(it.shape, dtype=it.dtype) for it in node._input_metadata]
                gradients = [one if it is None else it for it, one in zip(gradients, ones, strict=True)]
            for (to, output), gradient in zip(node.next_functions, ran(node, gradients), strict=True):
                if to is None:
                    continue
                if gradient is not None:
                    expected = to._input_metadata[output]
                    while shorter and gradient.dim() > len(expected.shape):
                        gradient = gradient.sum(0)
                    gradient = (gradient if shorter else gradient.sum_to_size(expected.shape)).to(expected.dtype)
                    before = inbox[to][output]
                    inbox[to][output] = gradient if before is None else before + gradient
                waiting[to] -= 1
                if waiting[to] == 0:
                    ready.append(to)
        return found

    return answer


WRONG += [
    said(engine_that_fills_in(), "wrong output"),
    said(engine_that_fills_in(shorter=True), "not summed back"),
]


def engine_without_empty_edges(loss):
    """Drops edges to None before it sets them beside what a node returned, and None there where the counts differ."""
    inbox, waiting, ready, found = begun(loss)
    with torch.no_grad():
        while ready:
            node = ready.pop()
            if hasattr(node, "variable"):
                found[node.variable] = inbox[node][0]
                continue
            edges = [(to, output) for to, output in node.next_functions if to is not None]
            returned = ran(node, inbox[node])
            if returned.count(None) == len(returned) - len(edges):
                returned = [gradient for gradient in returned if gradient is not None]
            for (to, output), gradient in zip(edges, returned, strict=False):
                waiting[to] -= 1
                if gradient is not None:
                    expected = to._input_metadata[output]
                    gradient = gradient.sum_to_size(expected.shape).to(expected.dtype)
                    before = inbox[to][output]
                    inbox[to][output] = gradient if before is None else before + gradient
                if waiting[to] == 0:
                    ready.append(to)
    return found


MISCONCEIVED["shifted by an input without a node"] = engine_without_empty_edges
