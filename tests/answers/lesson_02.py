"""Right and wrong answers to the exercises of lesson 02."""

import heapq
from collections import Counter, defaultdict, deque

import torch
from torch.autograd.graph import get_gradient_edge

PREDICTED = {
    "fan_out": 20,
    "two_passes": 17,
    "vector_seed": 60,
    "half_seed": 13.5,
    "broadcast": 10,
    "tie": 0.5,
    "after_grad": None,
    "left_out": None,
}


def product_by_sums(a, b, v):
    def back(gradient, shape):
        added = gradient.dim() - len(shape)
        gradient = gradient.sum(tuple(range(added))) if added else gradient
        for dim, size in enumerate(shape):
            if size == 1:
                gradient = gradient.sum(dim, keepdim=True)
        return gradient

    return back(v * b, a.shape), back(v * a, b.shape)


def product_by_sum_to_size(a, b, v):
    return [(v * b).sum_to_size(a.shape), (v * a).sum_to_size(b.shape)]


def vjp_by_autograd(operation):
    def answer(a, b, v):
        a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
        return torch.autograd.grad(operation(a, b), (a, b), v)

    return answer


def matmul_by_einsum(a, b, v):
    return torch.einsum("ij,lj->il", v, b), torch.einsum("il,ij->lj", a, v)


def softmax_in_one_line(y, v, dim):
    return y * (v - (v * y).sum(dim, keepdim=True))


def softmax_by_jacobian(y, v, dim):
    rows, weights = y.movedim(dim, -1), v.movedim(dim, -1)
    jacobian = torch.diag_embed(rows) - rows[..., :, None] * rows[..., None, :]
    return (jacobian @ weights[..., None])[..., 0].movedim(-1, dim)


def central(step):
    def answer(f, x):
        base = x.detach().double()
        result = torch.zeros(x.shape, dtype=torch.float64)
        for index in torch.cartesian_prod(*map(torch.arange, x.shape)).reshape(-1, x.dim()) if x.dim() else [()]:
            place = tuple(index)
            higher, lower = base.clone(), base.clone()
            higher[place] += step
            lower[place] -= step
            result[place] = (f(higher) - f(lower)) / (2 * step)
        return result

    return answer


def central_by_directions(f, x):
    base, step = x.to(torch.float64).clone(), 2e-6
    slopes = []
    for direction in torch.eye(x.numel(), dtype=torch.float64).reshape(x.numel(), *x.shape):
        slopes.append((f(base + step * direction).item() - f(base - step * direction).item()) / (2 * step))
    return torch.tensor(slopes, dtype=torch.float64).reshape(x.shape)


def parameters_by_grad(loss, model):
    wanted = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    gradients = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    found = dict(zip(wanted, gradients, strict=True))
    return {name: found.get(name) for name, _ in model.named_parameters()}


def parameters_by_backward_and_restoring(loss, model):
    held = {parameter: parameter.grad for parameter in model.parameters()}
    for parameter in held:
        parameter.grad = None
    loss.backward()
    found = defaultdict(None, {name: parameter.grad for name, parameter in model.named_parameters()})
    for parameter, gradient in held.items():
        parameter.grad = gradient
    return found


def jacobian_by_rows(f, x):
    x = x.detach().requires_grad_()
    y = f(x)
    rows = []
    for seed in torch.eye(y.numel(), dtype=y.dtype):
        (row,) = torch.autograd.grad(y, x, seed.reshape(y.shape), retain_graph=True)
        rows.append(row)
    return torch.stack(rows).reshape(y.shape + x.shape)


def jacobian_batched(f, x):
    x = x.detach().requires_grad_()
    y = f(x)
    seeds = torch.eye(y.numel(), dtype=y.dtype).reshape(y.numel(), *y.shape)
    (rows,) = torch.autograd.grad(y, x, seeds, is_grads_batched=True)
    return rows.reshape(*y.shape, *x.shape)


def nodes_behind(tensor):
    first = get_gradient_edge(tensor).node
    nodes, seen = [first], {first}
    for node in nodes:
        for to, _ in node.next_functions:
            if to is not None and to not in seen:
                seen.add(to)
                nodes.append(to)
    return nodes


def edge_counts(nodes):
    return Counter(to for node in nodes for to, _ in node.next_functions if to is not None)


def order_by_counting(tensor):
    waiting = edge_counts(nodes_behind(tensor))
    ready = [get_gradient_edge(tensor).node]
    order = []
    while ready:
        node = max(ready, key=lambda node: node._sequence_nr())
        ready.remove(node)
        order.append(node)
        for to, _ in node.next_functions:
            if to is not None:
                waiting[to] -= 1
                if waiting[to] == 0:
                    ready.append(to)
    return order


def order_by_sorting(tensor):
    """In a graph that one thread made, the node with the highest number is always ready."""
    nodes = nodes_behind(tensor)
    waiting = edge_counts(nodes)
    leaves = {node for node in nodes if hasattr(node, "variable")}
    order = [node for node in nodes if node in leaves and not waiting[node]]
    for node in sorted(set(nodes) - leaves, key=lambda node: node._sequence_nr(), reverse=True):
        order.append(node)
        for to, _ in node.next_functions:
            if to in leaves:
                waiting[to] -= 1
                if not waiting[to]:
                    order.append(to)
    return order


def ran(node, gradients):
    results = node(*gradients) if callable(node) else node.apply(*gradients)
    return results if isinstance(results, tuple) else (results,)


def engine(loss):
    edge = get_gradient_edge(loss)
    nodes = nodes_behind(loss)
    waiting = edge_counts(nodes)
    inbox = {node: [None] * len(node._input_metadata) for node in nodes}
    inbox[edge.node][edge.output_nr] = torch.ones_like(loss)
    ready, found = [edge.node], {}
    with torch.no_grad():
        while ready:
            node = ready.pop()
            gradients = inbox.pop(node)
            if hasattr(node, "variable"):
                found[node.variable] = gradients[0]
                continue
            for (to, output), gradient in zip(node.next_functions, ran(node, gradients), strict=True):
                if to is None:
                    continue
                if gradient is not None:
                    expected = to._input_metadata[output]
                    gradient = gradient.sum_to_size(expected.shape).to(expected.dtype)
                    before = inbox[to][output]
                    inbox[to][output] = gradient if before is None else before + gradient
                waiting[to] -= 1
                if waiting[to] == 0:
                    ready.append(to)
    return found


@torch.no_grad()
def engine_with_heap(loss):
    """Collects contributions in lists, sums them when a node runs, and takes nodes in the order of the real engine."""
    start, at = get_gradient_edge(loss)[:2]
    nodes = nodes_behind(loss)
    number = {node: index for index, node in enumerate(nodes)}
    missing = edge_counts(nodes)
    mail = defaultdict(list)
    mail[start, at].append(torch.tensor(1.0, dtype=loss.dtype))
    result = defaultdict(lambda: None)
    heap = [(-start._sequence_nr(), 0, start)]
    while heap:
        _, _, node = heapq.heappop(heap)
        sums = []
        for output, expected in enumerate(node._input_metadata):
            letters = [letter.sum_to_size(expected.shape).to(expected.dtype) for letter in mail[node, output]]
            sums.append(torch.stack(letters).sum(0) if letters else None)
        if type(node).__name__ == "AccumulateGrad":
            result[node.variable] = sums[0]
            continue
        for (to, output), gradient in zip(node.next_functions, ran(node, sums), strict=True):
            if to is None:
                continue
            if gradient is not None:
                mail[to, output].append(gradient)
            missing[to] -= 1
            if not missing[to]:
                heapq.heappush(heap, (-to._sequence_nr(), number[to], to))
    return result


@torch.no_grad()
def engine_with_zeros(loss):
    """Starts every place with zeros and adds in place to these, which nobody else holds."""
    edge = get_gradient_edge(loss)
    nodes = nodes_behind(loss)
    waiting = edge_counts(nodes)
    places = {
        node: [torch.zeros(expected.shape, dtype=expected.dtype) for expected in node._input_metadata] for node in nodes
    }
    places[edge.node][edge.output_nr] += 1
    queue = deque([edge.node])
    while queue:
        node = queue.popleft()
        if type(node).__name__ == "AccumulateGrad":
            continue
        for (to, output), gradient in zip(node.next_functions, ran(node, places[node]), strict=True):
            if to is not None:
                if gradient is not None:
                    places[to][output] += gradient.sum_to_size(places[to][output].shape)
                waiting[to] -= 1
                if not waiting[to]:
                    queue.append(to)
    return {node.variable: places[node][0] for node in nodes if hasattr(node, "variable")}


def order_by_distinct(count_edges, lower_edges):
    """Treats two edges between the same nodes as one: in counting, in lowering, or in both."""

    def answer(tensor):
        waiting = Counter()
        for node in nodes_behind(tensor):
            targets = [to for to, _ in node.next_functions if to is not None]
            waiting.update(targets if count_edges else set(targets))
        ready, order = [get_gradient_edge(tensor).node], []
        while ready:
            node = max(ready, key=lambda node: node._sequence_nr())
            ready.remove(node)
            order.append(node)
            targets = [to for to, _ in node.next_functions if to is not None]
            for to in targets if lower_edges else dict.fromkeys(targets):
                waiting[to] -= 1
                if waiting[to] == 0:
                    ready.append(to)
        return order

    return answer


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


RIGHT = {
    "predict_gradients": [
        PREDICTED,
        {name: v if v is None else torch.tensor(float(v)) for name, v in PREDICTED.items()},
    ],
    "vjp_product": [product_by_sum_to_size, product_by_sums, vjp_by_autograd(torch.mul)],
    "vjp_matmul": [lambda a, b, v: (v @ b.T, a.T @ v), matmul_by_einsum, vjp_by_autograd(torch.matmul)],
    "vjp_softmax": [softmax_in_one_line, softmax_by_jacobian],
    "numerical_gradient": [central(1e-5), central_by_directions, central(1e-4), central(1e-6)],
    "parameter_gradients": [parameters_by_grad, parameters_by_backward_and_restoring],
    "jacobian": [
        jacobian_by_rows,
        jacobian_batched,
        lambda f, x: torch.func.jacrev(f)(x),
        lambda f, x: torch.autograd.functional.jacobian(f, x),
    ],
    "run_order": [
        order_by_counting,
        order_by_sorting,
        order_by_distinct(count_edges=False, lower_edges=False),  # two edges open and close together
    ],
    "backward_engine": [
        engine,
        engine_with_heap,
        engine_with_zeros,
        taught_engine("first", count_edges=False, lower_edges=False),
    ],
}


def predicted(**changed):
    return {**PREDICTED, **changed}


def one_sided(f, x):
    base, step = x.double(), 1e-8
    at_x = f(base)
    slopes = [
        (f(base + step * direction) - at_x) / step
        for direction in torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape)
    ]
    return torch.stack(slopes).reshape(x.shape)


def moving_x_itself(f, x):
    base, step = x.double(), 1e-5  # no copy where x is float64 already
    result = torch.zeros(x.shape, dtype=torch.float64)
    for place in torch.cartesian_prod(*map(torch.arange, x.shape)).reshape(-1, x.dim()) if x.dim() else [()]:
        place = tuple(place)
        base[place] += step
        higher = f(base)
        base[place] -= 2 * step
        result[place] = (higher - f(base)) / (2 * step)
        base[place] += step
    return result


def in_float32(f, x):
    step = 1e-3
    slopes = [
        (f((x + step * direction).float()) - f((x - step * direction).float())).double() / (2 * step)
        for direction in torch.eye(x.numel()).reshape(-1, *x.shape)
    ]
    return torch.stack(slopes).reshape(x.shape)


def moving_a_copy(f, x):
    base = x.double().clone(memory_format=torch.preserve_format)
    spaced = base.T.contiguous().T if base.dim() == 2 else base.expand(1, *base.shape)
    flat, step = spaced.reshape(-1).clone(), 1e-5
    result = torch.zeros(x.numel(), dtype=torch.float64)
    for place in range(x.numel()):
        flat[place] += step
        higher = f(base)
        flat[place] -= 2 * step
        result[place] = (higher - f(base)) / (2 * step)
        flat[place] += step
    return result.reshape(x.shape)


def asking_autograd(f, x):
    y = x.detach().double().requires_grad_()
    for _ in range(2 * x.numel() - 1):
        f(y)
    return torch.autograd.grad(f(y), y)[0]


def one_sided_and_more(step):
    """One-sided differences with a step so small that only the points tell, and enough calls."""

    def answer(f, x):
        base = x.double()
        result = torch.zeros_like(base).contiguous()
        for place, direction in enumerate(torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape)):
            result.view(-1)[place] = (f(base + step * direction) - f(base)) / step
        return result

    return answer


def moving_a_flat_copy(f, x):
    base, step = x.double(), 1e-5
    result = torch.zeros(x.numel(), dtype=torch.float64)
    for place in range(x.numel()):
        higher, lower = base.clone(), base.clone()
        higher.flatten()[place] += step
        lower.flatten()[place] -= step
        result[place] = (f(higher) - f(lower)) / (2 * step)
    return result.reshape(x.shape)


def by_vmap(f, x):
    base, step = x.double(), 1e-5
    directions = step * torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape)
    together = torch.func.vmap(f)
    return ((together(base + directions) - together(base - directions)) / (2 * step)).reshape(x.shape)


def by_complex_step(f, x):
    base = x.to(torch.complex128)
    directions = torch.eye(x.numel(), dtype=torch.complex128).reshape(-1, *x.shape)
    f(base)
    return torch.stack([f(base + 1e-20j * direction).imag / 1e-20 for direction in directions]).reshape(x.shape)


def spoiled(answer, spoil):
    """A right answer with a side effect on its inputs."""

    def spoiling(*given):
        returned = answer(*given)
        spoil(*given)
        return returned

    return spoiling


@torch.no_grad()
def move_parameters(loss, model):
    for parameter in model.parameters():
        parameter.add_(0.1)


def zeros_for_none(loss, model):
    held = {parameter: parameter.grad for parameter in model.parameters()}
    for parameter in held:
        parameter.grad = None
    loss.backward()
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    for parameter, gradient in held.items():
        parameter.grad = torch.zeros_like(parameter) if gradient is None else gradient
    return found


def with_backward(loss, model):
    loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def clearing(loss, model):
    model.zero_grad()
    loss.backward()
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    return found


def pass_for_each(loss, model):
    return {
        name: torch.autograd.grad(loss, parameter, retain_graph=True, allow_unused=True)[0]
        if parameter.requires_grad
        else None
        for name, parameter in model.named_parameters()
    }


def with_options(**options):
    def answer(loss, model):
        wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
        gradients = torch.autograd.grad(loss, wanted, allow_unused=True, **options)
        found = dict(zip(map(id, wanted), gradients, strict=True))
        return {name: found.get(id(parameter)) for name, parameter in model.named_parameters()}

    return answer


def only_used(loss, model):
    return {name: gradient for name, gradient in parameters_by_grad(loss, model).items() if gradient is not None}


def forward_for_each_row(f, x):
    x = x.detach().requires_grad_()
    y = f(x)
    rows = [torch.autograd.grad(f(x).reshape(-1)[i], x)[0] for i in range(y.numel())]
    return torch.stack(rows).reshape(y.shape + x.shape)


def rows_in_grad(f, x):
    x.requires_grad_()
    y = f(x)
    rows = []
    for number in y.reshape(-1):
        number.backward(retain_graph=True)
        rows.append(x.grad.clone())
    return torch.stack(rows).reshape(y.shape + x.shape)


def gradient_of_sum(f, x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x)[0]


def input_first(f, x):
    right = jacobian_by_rows(f, x)
    outputs = right.dim() - x.dim()
    return right.permute(*range(outputs, right.dim()), *range(outputs))


def order_first_come(tensor):
    waiting = edge_counts(nodes_behind(tensor))
    order = [get_gradient_edge(tensor).node]
    for node in order:
        for to, _ in node.next_functions:
            if to is not None:
                waiting[to] -= 1
                if waiting[to] == 0:
                    order.append(to)
    return order


def order_depth_first(tensor):
    order, stack = [], [get_gradient_edge(tensor).node]
    while stack:
        node = stack.pop()
        if node not in order:
            order.append(node)
            stack += [to for to, _ in reversed(node.next_functions) if to is not None]
    return order


def order_by_number(tensor):
    return sorted(nodes_behind(tensor), key=lambda node: node._sequence_nr(), reverse=True)


def order_leaves_last(tensor):
    return sorted(order_by_counting(tensor), key=lambda node: hasattr(node, "variable"))


def order_by_running(tensor):
    nodes, order = nodes_behind(tensor), []
    for node in nodes:
        node.register_prehook(lambda gradients, node=node: order.append(node))
    tensor.backward()
    return order


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
def engine_by_paths(loss):
    """Follows every path to its end."""
    found = {}
    edge = get_gradient_edge(loss)
    stack = [(edge.node, edge.output_nr, torch.ones_like(loss))]
    while stack:
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


MISCONCEIVED = {
    ("predict_gradients", "one branch only"): predicted(fan_out=6),
    ("predict_gradients", "the second pass replaces"): predicted(two_passes=5),
    ("predict_gradients", "the seed is ignored"): predicted(vector_seed=6, half_seed=27),
    ("predict_gradients", "nothing is zero"): predicted(after_grad=0, left_out=0),
    ("predict_gradients", "a pass writes everywhere"): predicted(after_grad=6, left_out=2),
    ("predict_gradients", "a tie goes to one"): predicted(tie=1),
    ("vjp_product", "not summed back"): lambda a, b, v: (v * b, v * a),
    ("vjp_product", "gradients swapped"): lambda a, b, v: product_by_sums(b, a, v),
    ("vjp_product", "v is ignored"): lambda a, b, v: product_by_sums(a, b, torch.ones_like(v)),
    ("vjp_matmul", "transposed"): lambda a, b, v: (b @ v.T, v.T @ a),
    ("vjp_matmul", "gradients swapped"): lambda a, b, v: (a.T @ v, v @ b.T),
    ("vjp_matmul", "v is ignored"): lambda a, b, v: (torch.ones_like(v) @ b.T, a.T @ torch.ones_like(v)),
    ("vjp_softmax", "only the diagonal"): lambda y, v, dim: v * y * (1 - y),
    ("vjp_softmax", "softmax once more"): lambda y, v, dim: softmax_in_one_line(y.softmax(dim), v, dim),
    ("vjp_softmax", "dim is ignored"): lambda y, v, dim: softmax_in_one_line(y, v, -1),
    ("vjp_softmax", "summed over everything"): lambda y, v, dim: y * (v - (v * y).sum()),
    ("vjp_softmax", "the factor y is missing"): lambda y, v, dim: v - (v * y).sum(dim, keepdim=True),
    ("numerical_gradient", "one-sided differences"): one_sided,
    ("numerical_gradient", "x itself is moved"): moving_x_itself,
    ("numerical_gradient", "differences in float32"): in_float32,
    ("numerical_gradient", "a copy is moved"): moving_a_copy,
    ("numerical_gradient", "autograd is asked"): asking_autograd,
    ("parameter_gradients", "zeros in place of None"): zeros_for_none,
    ("parameter_gradients", "writes into .grad"): with_backward,
    ("parameter_gradients", "clears .grad"): clearing,
    ("parameter_gradients", "one pass for each parameter"): pass_for_each,
    ("parameter_gradients", "the graph is kept"): with_options(retain_graph=True),
    ("jacobian", "the rows are summed"): gradient_of_sum,
    ("jacobian", "input dimensions first"): input_first,
    ("jacobian", "f runs for each row"): forward_for_each_row,
    ("jacobian", "the rows pile up in .grad"): rows_in_grad,
    ("run_order", "the nearest first"): nodes_behind,
    ("run_order", "by number alone"): order_by_number,
    ("run_order", "leaves at the end"): order_leaves_last,
    ("run_order", "one edge for two"): order_by_distinct(count_edges=True, lower_edges=False),
    ("backward_engine", "PyTorch's engine"): engine_by_torch,
    ("backward_engine", "AccumulateGrad is called"): faulty_engine(leaves=False),
    ("backward_engine", "once for each path"): engine_by_paths,
    ("backward_engine", "one edge for two"): taught_engine(count_edges=False, lower_edges=False, as_dict=True),
    ("backward_engine", "not all contributions"): faulty_engine(wait=False),
    ("backward_engine", "changed in place"): faulty_engine(in_place=True),
    ("backward_engine", "wrong output"): faulty_engine(outputs=False),
    ("backward_engine", "not summed back"): faulty_engine(shapes=False),
    ("backward_engine", "None leaves the edge open"): taught_engine(lower_none=False),
    ("backward_engine", "shapes of leaves only"): faulty_engine(shapes="of leaves"),
    ("backward_engine", "the wrong dtype"): faulty_engine(dtypes=False),
}

WRONG = {
    "predict_gradients": [
        predicted(fan_out=14),
        predicted(broadcast=2),
        predicted(left_out="None"),
        predicted(vector_seed=[4, 60, 1000]),
        list(PREDICTED.values()),
    ],
    "vjp_product": [
        lambda a, b, v: ((v * b).sum_to_size(a.shape), v * a),
        lambda a, b, v: tuple(g.float() for g in product_by_sums(a, b, v)),
        lambda a, b, v: (product_by_sums(a, b.mul_(2), v)[0] / 2, product_by_sums(a, b, v)[1]),
        lambda a, b, v: product_by_sums(a, b, v)[0],
    ],
    "vjp_matmul": [
        spoiled(lambda a, b, v: (v @ b.T, a.T @ v), lambda a, b, v: a.requires_grad_()),
        lambda a, b, v: (v @ b, a @ v),
        lambda a, b, v: (v @ b.T, v.T @ a),
    ],
    "vjp_softmax": [
        lambda y, v, dim: softmax_in_one_line(y, v, abs(dim)),
        lambda y, v, dim: y * (v - v.sum(dim, keepdim=True)),
        lambda y, v, dim: y * v,
    ],
    "numerical_gradient": [
        central(1e-1),
        central(1e-12),
        *(one_sided_and_more(step) for step in (1e-6, 1e-7, 1e-8, 1e-9)),
        moving_a_flat_copy,
        by_vmap,
        by_complex_step,
        spoiled(central(1e-5), lambda f, x: x.requires_grad_()),
        lambda f, x: torch.func.grad(f)(x.double()),
        lambda f, x: central(1e-5)(f, x).float(),
    ],
    "parameter_gradients": [
        only_used,
        spoiled(parameters_by_grad, lambda loss, model: model.requires_grad_()),
        spoiled(parameters_by_grad, lambda loss, model: model.requires_grad_(False)),
        spoiled(parameters_by_grad, lambda loss, model: model.eval()),
        spoiled(parameters_by_grad, move_parameters),
        with_options(create_graph=True),
        with_options(materialize_grads=True),
        lambda loss, model: list(parameters_by_grad(loss, model).values()),
    ],
    "jacobian": [
        spoiled(jacobian_by_rows, lambda f, x: x.requires_grad_()),
        spoiled(jacobian_by_rows, lambda f, x: x.requires_grad_(False)),
        lambda f, x: jacobian_by_rows(f, x).reshape(-1, x.numel()),
        lambda f, x: torch.func.jacrev(lambda x: f(x).sum(0))(x),
    ],
    "run_order": [
        order_by_distinct(count_edges=False, lower_edges=True),
        order_first_come,
        order_depth_first,
        order_by_running,
        lambda tensor: order_by_counting(tensor)[::-1],
        lambda tensor: [type(node).__name__ for node in order_by_counting(tensor)],
        lambda tensor: order_by_counting(tensor) * 2,
    ],
    "backward_engine": [
        taught_engine(as_dict=True),
        taught_engine(as_dict=True, count_edges=False),
        taught_engine(lower_edges=False),
        taught_engine(count_edges=False),
        taught_engine("first", count_edges=False),
        taught_engine("last", count_edges=False),
        taught_engine(in_place=True),
        taught_engine("first", in_place=True),
        taught_engine("last", in_place=True),
        faulty_engine(add=False),
        faulty_engine(recorded=True),
        engine_by_torch_from_behind,
        lambda loss: list(engine(loss).items()),
        lambda loss: {id(leaf): gradient for leaf, gradient in engine(loss).items()},
        lambda loss: dict(list(engine(loss).items())[:-1]),
    ],
}
