"""Right and wrong answers to the exercises of lesson 05."""

import copy

import torch
from torch.func import functional_call
from torch.nn.functional import mse_loss

SECOND = {
    "recorded": 27.0,
    "retained": "error",
    "two_backwards": 40.5,
    "same_pass_twice": 13.5,
    "third": 36.0,
    "line": "error",
    "relu": 0.0,
    "product": 54.0,
    "product_unrecorded": 13.5,
    "square": 729.0,
}


# nth_derivative


def nth_by_passes(f, x, n):
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True, materialize_grads=True)
    return y.detach()


def nth_by_func(f, x, n):
    """Nested torch.func.grad: they give zeros where autograd raises."""

    def derivative(g):
        return torch.func.grad(lambda t: g(t).sum())

    g = f
    for _ in range(n):
        g = derivative(g)
    return g(x.detach()).detach()


def nth_by_ones(f, x, n):
    own = x.clone().detach().requires_grad_(True)
    y = f(own)
    for number in range(1, n + 1):
        if y.grad_fn is None:
            y = torch.zeros_like(own)
            break
        y = torch.autograd.grad(y, own, torch.ones_like(y), create_graph=number < n, allow_unused=True)[0]
        if y is None:
            return torch.zeros_like(own).detach()
    return y.detach()


def nth_forward_mode(f, x, n):
    def derivative(g):
        return lambda t: torch.func.jvp(g, (t,), (torch.ones_like(t),))[1]

    g = f
    for _ in range(n):
        g = derivative(g)
    return g(x.detach()).detach()


def nth_without_zeros(f, x, n):
    """Fails where what f's parameter leaves over does not depend on x."""
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True)
    return y.detach()


def nth_into_parameters(f, x, n):
    """With backward, which also writes to .grad of f's own parameters."""
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        own.grad = None
        y.sum().backward(create_graph=True)
        y = own.grad if own.grad is not None else torch.zeros_like(own)
    own.grad = None
    return y.detach()


def leaving(right, effect):
    """The right answer, which then changes something."""

    def answer(*given):
        result = right(*given)
        effect(*given)
        return result

    return answer


def gradients_off(*given):
    torch.set_grad_enabled(False)


def hook_on(tensor):
    if tensor.requires_grad:
        tensor.register_hook(lambda gradient: None)


def nth_accumulated(f, x, n):
    own = x.detach().clone().requires_grad_()
    y = f(own)
    if n == 0:
        return y.detach()
    for _ in range(n):
        if not y.requires_grad:
            break
        y.sum().backward(create_graph=True)
        y = own.grad
    result = own.grad.detach() if own.grad is not None else torch.zeros_like(x)
    own.grad = None
    return result


def nth_one_more(f, x, n):
    return nth_by_passes(f, x, n + 1)


def nth_retained(f, x, n):
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, retain_graph=True)
    return y.detach()


def nth_unguarded(f, x, n):
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True)
    return y.detach()


def nth_recorded(f, x, n):
    own = x.detach().requires_grad_()
    y = f(own)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), own, create_graph=True)
    return y


def nth_by_differences(f, x, n):
    def derivative(g, h=1e-3):
        return lambda t: (g(t + h) - g(t - h)) / (2 * h)

    g = f
    for _ in range(n):
        g = derivative(g)
    return g(x.detach())


def nth_on_x(f, x, n):
    x.requires_grad_()
    y = f(x)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y.detach()


def nth_forward_each_time(f, x, n):
    nth_by_passes(f, x, n)
    return nth_by_passes(f, x, n)


def nth_after_clearing(f, x, n):
    """With backward, clearing .grad of x itself."""
    x.requires_grad_()
    y = f(x)
    for _ in range(n):
        if not y.requires_grad:
            return torch.zeros_like(x)
        x.grad = None
        y.sum().backward(create_graph=True)
        y = x.grad
    x.grad = None
    return y.detach()


# hvp


def hvp_by_seed(f, x, v):
    own = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    if not gradient.requires_grad:
        return torch.zeros_like(x)
    return torch.autograd.grad(gradient, own, v, materialize_grads=True)[0]


def hvp_forward_over_reverse(f, x, v):
    return torch.func.jvp(torch.func.grad(f), (x.detach(),), (v,))[1].detach()


def hvp_by_scalar(f, x, v):
    own = x.detach().clone().requires_grad_(True)
    own.grad = None
    f(own).backward(create_graph=True, inputs=[own])
    along = (own.grad * v).sum()
    own.grad = None
    if not along.requires_grad:
        return v * 0
    return torch.autograd.grad(along, own, materialize_grads=True)[0]


def hvp_into_parameters(f, x, v):
    """The second pass also writes to .grad of f's own parameters."""
    own = x.detach().clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    if not gradient.requires_grad:
        return torch.zeros_like(x)
    (gradient * v).sum().backward()
    return own.grad if own.grad is not None else torch.zeros_like(x)


def hvp_measured_at_once(f, x, v):
    """Differences of gradients, with one call of f for all points."""
    h, shape = 1e-3, (-1, *[1] * x.dim())
    shifts = torch.tensor([1.0, -1.0, 2.0, -2.0], dtype=x.dtype) * h
    near, far, further, furthest = torch.func.vmap(torch.func.grad(f))(x.detach() + shifts.reshape(shape) * v)
    return ((8 * (near - far) - (further - furthest)) / (12 * h)).detach()


def hvp_reverse_over_forward(f, x, v):
    slope = torch.func.grad(lambda t: torch.func.jvp(f, (t,), (v,))[1])
    return slope(x.detach()).detach()


def hvp_by_library(f, x, v):
    return torch.autograd.functional.hvp(f, x.detach(), v)[1]


def hvp_gradient_times_v(f, x, v):
    return torch.func.grad(f)(x.detach()) * v


def hvp_row_sums(f, x, v):
    return hvp_by_seed(f, x, torch.ones_like(v)) * v


def hvp_whole(f, x, v):
    hessian = torch.func.hessian(f)(x.detach()).reshape(x.numel(), x.numel())
    return (hessian @ v.reshape(-1)).reshape(x.shape)


def hvp_rows(f, x, v):
    """Row by row: no large matrix, but a pass for each row."""
    own = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    if not gradient.requires_grad:
        return torch.zeros_like(x)
    rows = [torch.autograd.grad(g, own, retain_graph=True)[0] for g in gradient.reshape(-1)]
    return torch.stack([(row * v).sum() for row in rows]).reshape(x.shape)


def hvp_differences(f, x, v):
    gradient, h = torch.func.grad(f), 1e-4
    return (gradient(x.detach() + h * v) - gradient(x.detach() - h * v)) / (2 * h)


def hvp_on_x(f, x, v):
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(f(x), x, create_graph=True)
    return torch.autograd.grad(gradient, x, v)[0] if gradient.requires_grad else torch.zeros_like(x)


def hvp_recorded(f, x, v):
    own = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(own), own, create_graph=True)
    return torch.autograd.grad(gradient, own, v, create_graph=True)[0] if gradient.requires_grad else x * 0


def hvp_retained(f, x, v):
    own = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(own), own, retain_graph=True)
    return torch.autograd.grad(gradient, own, v)[0] if gradient.requires_grad else torch.zeros_like(x)


# loss_hessian


def hessian_by_rows(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    joined = torch.cat([gradient.reshape(-1) for gradient in gradients])
    if not joined.requires_grad:
        return joined.new_zeros(len(joined), len(joined))
    rows = []
    for number in joined:
        parts = torch.autograd.grad(number, parameters, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([part.reshape(-1) for part in parts]))
    return torch.stack(rows)


def hessian_straight_forgotten(loss, parameters):
    """Raises where no gradient has a graph."""
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    joined = torch.cat([gradient.reshape(-1) for gradient in gradients])
    rows = []
    for number in joined:
        parts = torch.autograd.grad(number, parameters, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([part.reshape(-1) for part in parts]))
    return torch.stack(rows)


def hessian_batched(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, allow_unused=True)
    gradients = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, gradients, strict=True)]
    joined = torch.cat([gradient.reshape(-1) for gradient in gradients])
    seeds = torch.eye(len(joined), dtype=joined.dtype)
    if not joined.requires_grad:
        return torch.zeros_like(seeds)
    parts = torch.autograd.grad(joined, parameters, seeds, is_grads_batched=True, allow_unused=True)
    filled = [
        torch.zeros(len(joined), p.numel(), dtype=p.dtype) if part is None else part.reshape(len(joined), -1)
        for p, part in zip(parameters, parts, strict=True)
    ]
    return torch.cat(filled, dim=1)


def hessian_block_by_block(loss, parameters):
    total = sum(p.numel() for p in parameters)
    matrix = torch.zeros(total, total, dtype=parameters[0].dtype)
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, allow_unused=True)
    row = 0
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is None or not gradient.requires_grad:
            row += parameter.numel()
            continue
        for element in gradient.reshape(-1):
            parts = torch.autograd.grad(element, parameters, retain_graph=True, allow_unused=True)
            column = 0
            for other, part in zip(parameters, parts, strict=True):
                if part is not None:
                    matrix[row, column : column + other.numel()] = part.reshape(-1)
                column += other.numel()
            row += 1
    return matrix


def hessian_diagonal_blocks(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    blocks = []
    for parameter, gradient in zip(parameters, gradients, strict=True):
        rows = []
        for element in gradient.reshape(-1):
            if element.requires_grad:
                row = torch.autograd.grad(element, parameter, retain_graph=True, materialize_grads=True)[0]
                rows.append(row.reshape(-1))
            else:
                rows.append(torch.zeros(parameter.numel(), dtype=parameter.dtype))
        blocks.append(torch.stack(rows))
    return torch.block_diag(*blocks)


def hessian_outer(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
    joined = torch.cat([gradient.reshape(-1) for gradient in gradients])
    return torch.outer(joined, joined)


def hessian_of_sums(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    total = sum(gradient.sum() for gradient in gradients)
    if not total.requires_grad:
        return torch.zeros(sum(p.numel() for p in parameters)).double().diag()
    parts = torch.autograd.grad(total, parameters, materialize_grads=True)
    return torch.cat([part.reshape(-1) for part in parts]).diag()


def hessian_unguarded(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    joined = torch.cat([gradient.reshape(-1) for gradient in gradients])
    rows = [torch.autograd.grad(number, parameters, retain_graph=True) for number in joined]
    return torch.stack([torch.cat([part.reshape(-1) for part in parts]) for parts in rows])


def hessian_leaves_gradients(loss, parameters):
    result = hessian_by_rows(loss, parameters)
    for parameter in parameters:
        parameter.grad = None
    return result


def hessian_recorded(loss, parameters):
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    joined = torch.cat([gradient.reshape(-1) for gradient in gradients])
    rows = []
    for number in joined:
        parts = torch.autograd.grad(number, parameters, create_graph=True, materialize_grads=True)
        rows.append(torch.cat([part.reshape(-1) for part in parts]))
    return torch.stack(rows)


def hessian_one_pass_an_entry(loss, parameters):
    hessian_by_rows(loss, parameters)
    return hessian_by_rows(loss, parameters)


def hessian_transposed_parts(loss, parameters):
    """Flattens matrices column by column."""
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    joined = torch.cat(
        [gradient.T.reshape(-1) if gradient.dim() == 2 else gradient.reshape(-1) for gradient in gradients]
    )
    rows = []
    for number in joined:
        parts = torch.autograd.grad(number, parameters, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([part.T.reshape(-1) if part.dim() == 2 else part.reshape(-1) for part in parts]))
    return torch.stack(rows)


# penalised_step


def step_by_grad(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


def step_by_assigning(model, optimizer, inputs, targets, weight):
    parameters = list(model.parameters())
    loss = (model(inputs) - targets).pow(2).mean()
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    penalty = weight * torch.cat([gradient.reshape(-1) for gradient in gradients]).pow(2).sum()
    extra = torch.autograd.grad(penalty, parameters, materialize_grads=True)
    for parameter, first, second in zip(parameters, gradients, extra, strict=True):
        parameter.grad = first.detach() + second
    optimizer.step()
    return float(loss + penalty)


def step_cleared_between(model, optimizer, inputs, targets, weight):
    """The given code with the gradients set to None before the second pass: no sum, and no cycle is left."""
    optimizer.zero_grad()
    loss = mse_loss(model(inputs), targets)
    loss.backward(create_graph=True)
    penalty = sum(parameter.grad.square().sum() for parameter in model.parameters())
    total = loss + weight * penalty
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


def step_given(model, optimizer, inputs, targets, weight):
    optimizer.zero_grad()
    loss = mse_loss(model(inputs), targets)
    loss.backward(create_graph=True)
    penalty = sum(parameter.grad.square().sum() for parameter in model.parameters())
    total = loss + weight * penalty
    total.backward()
    optimizer.step()
    return total.item()


def step_cleared_after(model, optimizer, inputs, targets, weight):
    total = step_given(model, optimizer, inputs, targets, weight)
    optimizer.zero_grad()
    return total


def step_retained(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    total = loss + weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


def step_penalty_only(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    penalty = weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    penalty.backward()
    optimizer.step()
    return (loss + penalty).item()


def step_never_cleared(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + weight * sum(gradient.square().sum() for gradient in gradients)
    total.backward()
    optimizer.step()
    return total.item()


def step_norm(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + weight * sum(gradient.norm() for gradient in gradients)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


def step_returning_a_graph(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total


def step_recorded_twice(model, optimizer, inputs, targets, weight):
    loss = mse_loss(model(inputs), targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    total.backward(create_graph=True)
    optimizer.step()
    return total.item()


def step_two_forwards(model, optimizer, inputs, targets, weight):
    gradients = torch.autograd.grad(mse_loss(model(inputs), targets), list(model.parameters()), create_graph=True)
    total = mse_loss(model(inputs), targets) + weight * sum(gradient.square().sum() for gradient in gradients)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


# gradient_penalty


def penalty_by_sum(critic, real, fake, mix):
    points = (mix * real + (1 - mix) * fake).detach().requires_grad_()
    (gradients,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    return (gradients.flatten(1).norm(dim=1) - 1).square().mean()


def penalty_by_seed(critic, real, fake, mix):
    with torch.no_grad():
        points = torch.lerp(fake, real, mix.expand_as(real).contiguous())
    points.requires_grad_(True)
    scores = critic(points)
    gradients = torch.autograd.grad(scores, points, torch.ones_like(scores), create_graph=True, retain_graph=True)[0]
    norms = (gradients.reshape(len(real), -1) ** 2).sum(1) ** 0.5
    return ((norms - 1) ** 2).sum() / len(norms)


def penalty_by_func(critic, real, fake, mix):
    points = mix * real + (1 - mix) * fake.detach()
    gradients = torch.func.grad(lambda x: critic(x).sum())(points)
    return torch.stack([(gradient.norm() - 1) ** 2 for gradient in gradients]).mean()


def penaliser(
    points=lambda real, fake, mix: (mix * real + (1 - mix) * fake).detach(),
    score=torch.sum,
    norm=lambda gradients: gradients.flatten(1).norm(dim=1),
    distance=lambda norms: (norms - 1).square().mean(),
    **options,
):
    """A penalty with one thing wrong."""

    def penalty(critic, real, fake, mix):
        at = points(real, fake, mix)
        at = at if at.requires_grad else at.requires_grad_()
        (gradients,) = torch.autograd.grad(score(critic(at)), at, **{"create_graph": True, **options})
        return distance(norm(gradients))

    return penalty


def penalty_in_eval(critic, real, fake, mix):
    critic.eval()
    result = penalty_by_sum(critic, real, fake, mix)
    critic.train()
    return result


def penalty_by_backward(critic, real, fake, mix):
    points = (mix * real + (1 - mix) * fake).detach().requires_grad_()
    critic(points).sum().backward(create_graph=True)
    return (points.grad.flatten(1).norm(dim=1) - 1).square().mean()


def penalty_in_a_loop(critic, real, fake, mix):
    return torch.stack(
        [penalty_by_sum(critic, *(t[n : n + 1] for t in (real, fake, mix))) for n in range(len(real))]
    ).mean()


def penalty_spent(critic, real, fake, mix):
    result = penalty_by_sum(critic, real, fake, mix)
    parameters = [p for p in critic.parameters() if p.requires_grad]
    torch.autograd.grad(result, parameters, allow_unused=True)
    return result


# meta_gradient


def meta_by_hand(model, support, query, lr, steps):
    start = {name: p for name, p in model.named_parameters() if p.requires_grad}
    values = dict(start)
    for _ in range(steps):
        loss = mse_loss(functional_call(model, values, (support[0],)), support[1])
        gradients = torch.autograd.grad(loss, list(values.values()), create_graph=True)
        pairs = zip(values.items(), gradients, strict=True)
        values = {name: value - lr * gradient for (name, value), gradient in pairs}
    loss = mse_loss(functional_call(model, values, (query[0],)), query[1])
    return dict(zip(start, torch.autograd.grad(loss, list(start.values())), strict=True))


def meta_by_func(model, support, query, lr, steps):
    start = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}

    def loss(values, inputs, targets):
        return mse_loss(functional_call(model, values, (inputs,)), targets)

    def after(values):
        for _ in range(steps):
            gradients = torch.func.grad(loss)(values, *support)
            values = {name: values[name] - lr * gradients[name] for name in values}
        return loss(values, *query)

    return torch.func.grad(after)(start)


def meta_by_vectors(model, support, query, lr, steps):
    """Backwards through the steps by Hessian-vector products: no graph longer than one step."""
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    values = [model.get_parameter(name).detach() for name in names]
    visited = []

    def loss(values, data):
        return mse_loss(functional_call(model, dict(zip(names, values, strict=True)), (data[0],)), data[1])

    for _ in range(steps):
        own = [value.requires_grad_() for value in values]
        visited.append(own)
        gradients = torch.autograd.grad(loss(own, support), own)
        values = [(value - lr * gradient).detach() for value, gradient in zip(own, gradients, strict=True)]
    own = [value.clone().requires_grad_() for value in values]
    vector = torch.autograd.grad(loss(own, query), own)
    for own in reversed(visited):
        gradients = torch.autograd.grad(loss(own, support), own, create_graph=True)
        products = torch.autograd.grad(gradients, own, vector)
        vector = [v - lr * product for v, product in zip(vector, products, strict=True)]
    return dict(zip(names, (v.detach() for v in vector), strict=True))


def meta_first_order(model, support, query, lr, steps):
    start = {name: p for name, p in model.named_parameters() if p.requires_grad}
    values = dict(start)
    for _ in range(steps):
        loss = mse_loss(functional_call(model, values, (support[0],)), support[1])
        gradients = torch.autograd.grad(loss, list(values.values()))
        pairs = zip(values.items(), gradients, strict=True)
        values = {name: value - lr * gradient for (name, value), gradient in pairs}
    loss = mse_loss(functional_call(model, values, (query[0],)), query[1])
    return dict(zip(start, torch.autograd.grad(loss, list(start.values())), strict=True))


def meta_no_step(model, support, query, lr, steps):
    return meta_by_hand(model, support, query, lr, 0)


def meta_one_step(model, support, query, lr, steps):
    return meta_by_hand(model, support, query, lr, min(steps, 1))


def meta_trained(model, support, query, lr, steps):
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=lr)
    for _ in range(steps):
        own = dict(model.named_parameters())
        learning = [p for p in own.values() if p.requires_grad]
        gradients = torch.autograd.grad(mse_loss(model(support[0]), support[1]), learning)
        with torch.no_grad():
            for parameter, gradient in zip(learning, gradients, strict=True):
                parameter -= optimizer.param_groups[0]["lr"] * gradient
    return meta_by_hand(model, support, query, lr, 0)


def meta_on_a_copy(model, support, query, lr, steps):
    """First order, by training a copy."""
    twin = copy.deepcopy(model)
    meta = meta_trained(twin, support, query, lr, steps)
    return {name: gradient.clone() for name, gradient in meta.items()}


def meta_last_step_recorded(model, support, query, lr, steps):
    start = {name: p for name, p in model.named_parameters() if p.requires_grad}
    values = dict(start)
    for step in range(steps):
        loss = mse_loss(functional_call(model, values, (support[0],)), support[1])
        gradients = torch.autograd.grad(loss, list(values.values()), create_graph=step == steps - 1, retain_graph=True)
        pairs = zip(values.items(), gradients, strict=True)
        values = {name: value - lr * gradient for (name, value), gradient in pairs}
    loss = mse_loss(functional_call(model, values, (query[0],)), query[1])
    return dict(zip(start, torch.autograd.grad(loss, list(start.values())), strict=True))


def meta_into_grad(model, support, query, lr, steps):
    gradients = meta_by_hand(model, support, query, lr, steps)
    for name, gradient in gradients.items():
        model.get_parameter(name).grad = gradient
    return gradients


def meta_recorded(model, support, query, lr, steps):
    return {
        name: gradient.requires_grad_() for name, gradient in meta_by_hand(model, support, query, lr, steps).items()
    }


def meta_all_names(model, support, query, lr, steps):
    gradients = meta_by_hand(model, support, query, lr, steps)
    return {name: gradients.get(name, torch.zeros_like(p)) for name, p in model.named_parameters()}


def meta_on_support(model, support, query, lr, steps):
    return meta_by_hand(model, support, support, lr, steps)


def meta_in_eval(model, support, query, lr, steps):
    model.eval()
    return meta_by_hand(model, support, query, lr, steps)


def meta_measured(model, support, query, lr, steps):
    """Central differences of training: right to many digits, and a training run for each number."""
    start = {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}

    def after(values):
        for _ in range(steps):
            gradients = torch.func.grad(lambda v: mse_loss(functional_call(model, v, (support[0],)), support[1]))(
                values
            )
            values = {name: values[name] - lr * gradients[name] for name in values}
        return mse_loss(functional_call(model, values, (query[0],)), query[1]).item()

    slopes = {name: torch.zeros_like(value) for name, value in start.items()}
    for name, value in start.items():
        for index in range(value.numel()):
            move = torch.zeros(value.numel(), dtype=value.dtype)
            move[index] = 1e-4
            up, down = ({**start, name: value + sign * move.reshape(value.shape)} for sign in (1, -1))
            slopes[name].view(-1)[index] = (after(up) - after(down)) / 2e-4
    return slopes


def meta_measured_at_once(model, support, query, lr, steps):
    """Differences of training, with one run of the model for all of them."""
    start = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    sizes = [value.numel() for value in start.values()]

    def loss(values, data):
        return mse_loss(functional_call(model, values, (data[0],)), data[1])

    def after(flat):
        pairs = zip(start.items(), flat.split(sizes), strict=True)
        values = {name: part.reshape(value.shape) for (name, value), part in pairs}
        for _ in range(steps):
            gradients = torch.func.grad(loss)(values, support)
            values = {name: values[name] - lr * gradients[name] for name in values}
        return loss(values, query)

    flat = torch.cat([value.reshape(-1) for value in start.values()])
    moves = 1e-3 * torch.eye(len(flat), dtype=flat.dtype)
    many = torch.cat([flat + times * moves for times in (1, -1, 2, -2)])
    near, far, further, furthest = torch.func.vmap(after)(many).reshape(4, -1)
    slopes = ((8 * (near - far) - (further - furthest)) / 12e-3).split(sizes)
    return {name: part.reshape(value.shape) for (name, value), part in zip(start.items(), slopes, strict=True)}


def meta_by_forward_mode(model, support, query, lr, steps):
    """One column of the derivative at a time, all in one run: right, if wasteful."""
    start = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}

    def loss(values, data):
        return (functional_call(model, values, (data[0],)) - data[1]).square().mean()

    def after(values):
        for _ in range(steps):
            gradients = torch.func.grad(loss)(values, support)
            values = {name: values[name] - lr * gradients[name] for name in values}
        return loss(values, query)

    return {name: slope.detach() for name, slope in torch.func.jacfwd(after)(start).items()}


def meta_unfrozen(model, support, query, lr, steps):
    result = meta_by_hand(model, support, query, lr, steps)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return result


RIGHT = {
    "predict_second_order": [SECOND, {**SECOND, "product": torch.tensor(54.0), "relu": 0}],
    "nth_derivative": [nth_by_passes, nth_by_func, nth_by_ones, nth_forward_mode],
    "hvp": [hvp_by_seed, hvp_forward_over_reverse, hvp_by_scalar, hvp_reverse_over_forward, hvp_by_library],
    "loss_hessian": [hessian_by_rows, hessian_batched, hessian_block_by_block],
    "penalised_step": [step_by_grad, step_by_assigning, step_cleared_between],
    "gradient_penalty": [penalty_by_sum, penalty_by_seed, penalty_by_func],
    "meta_gradient": [meta_by_hand, meta_by_func, meta_by_vectors, meta_by_forward_mode],
}

MISCONCEIVED = {
    ("predict_second_order", "retaining records"): {**SECOND, "retained": 40.5},
    ("predict_second_order", "nothing is added"): {**SECOND, "two_backwards": 27},
    ("predict_second_order", "a constant has a graph"): {**SECOND, "line": 0},
    ("predict_second_order", "a recorded gradient is a constant"): {**SECOND, "product": 13.5},
    ("nth_derivative", "all derivatives added up"): nth_accumulated,
    ("nth_derivative", "one pass too many"): nth_one_more,
    ("nth_derivative", "retained, not recorded"): nth_retained,
    ("hvp", "the gradient times v"): hvp_gradient_times_v,
    ("hvp", "row sums times v"): hvp_row_sums,
    ("hvp", "the whole Hessian"): hvp_whole,
    ("loss_hessian", "blocks on the diagonal only"): hessian_diagonal_blocks,
    ("loss_hessian", "gradients multiplied"): hessian_outer,
    ("loss_hessian", "row sums on the diagonal"): hessian_of_sums,
    ("penalised_step", "the loss counted twice"): step_given,
    ("penalised_step", "a penalty that is a constant"): step_retained,
    ("penalised_step", "the penalty alone"): step_penalty_only,
    ("gradient_penalty", "not recorded"): penaliser(create_graph=False),
    ("gradient_penalty", "one norm for the batch"): penaliser(norm=lambda gradients: gradients.norm()),
    ("gradient_penalty", "scores averaged"): penaliser(score=torch.mean),
    ("gradient_penalty", "a norm for each pixel"): penaliser(norm=lambda gradients: gradients.norm(2, dim=1)),
    ("meta_gradient", "first order only"): meta_first_order,
    ("meta_gradient", "no inner step"): meta_no_step,
    ("meta_gradient", "the model itself was trained"): meta_trained,
}

WRONG = {
    "predict_second_order": [
        {**SECOND, "retained": 27.0},
        {**SECOND, "relu": "error"},
        {**SECOND, "same_pass_twice": "error"},
        dict.fromkeys(SECOND, "error"),
        dict.fromkeys(SECOND, 27.0),
        list(SECOND.values()),
    ],
    "nth_derivative": [
        nth_unguarded,
        nth_without_zeros,
        nth_into_parameters,
        leaving(nth_by_passes, gradients_off),
        leaving(nth_by_passes, lambda f, x, n: hook_on(x)),
        lambda f, x, n: nth_by_passes(f, x.double(), n),
        nth_recorded,
        nth_by_differences,
        nth_on_x,
        nth_forward_each_time,
        nth_after_clearing,
        lambda f, x, n: torch.func.grad(lambda t: f(t).sum())(x.detach()) ** n,
        lambda f, x, n: nth_by_passes(f, x.clone(), min(n, 4)) * (n < 5),
        lambda f, x, n: nth_by_passes(f, x.flatten(), n),
        lambda f, x, n: nth_by_passes(f, x, n).sum(),
        lambda f, x, n: [[None], "x", {}],
    ],
    "hvp": [
        hvp_rows,
        hvp_into_parameters,
        hvp_measured_at_once,
        leaving(hvp_by_seed, gradients_off),
        leaving(hvp_by_seed, lambda f, x, v: hook_on(x)),
        lambda f, x, v: hvp_by_seed(f, x.double(), v.double()),
        hvp_differences,
        hvp_on_x,
        hvp_recorded,
        hvp_retained,
        lambda f, x, v: torch.func.grad(f)(x.detach()),
        lambda f, x, v: (v * hvp_by_seed(f, x, v)).sum(),
        lambda f, x, v: hvp_by_seed(f, x, v) / v.norm(),
        lambda f, x, v: hvp_by_seed(f, x, v).reshape(-1),
        lambda f, x, v: (f(x), hvp_by_seed(f, x, v)),
        lambda f, x, v: torch.zeros_like(x),
        lambda f, x, v: hvp_by_seed(f, x.view(-1), v.view(-1)).view(x.shape),
        lambda f, x, v: hvp_by_seed(f, x, v) + 1e-3 * v,
    ],
    "loss_hessian": [
        hessian_unguarded,
        hessian_straight_forgotten,
        leaving(hessian_by_rows, gradients_off),
        leaving(hessian_by_rows, lambda loss, parameters: hook_on(loss)),
        leaving(hessian_by_rows, lambda loss, parameters: hook_on(parameters[0])),
        lambda loss, parameters: hessian_by_rows(loss, parameters).double(),
        hessian_leaves_gradients,
        hessian_recorded,
        hessian_one_pass_an_entry,
        hessian_transposed_parts,
        lambda loss, parameters: hessian_by_rows(loss, parameters[::-1]),
        lambda loss, parameters: hessian_by_rows(loss, parameters).triu(),
        lambda loss, parameters: list(hessian_by_rows(loss, parameters)),
        lambda loss, parameters: hessian_by_rows(loss, parameters[:1]),
        lambda loss, parameters: hessian_by_rows(loss, [p for p in parameters if p.numel() > 2]),
    ],
    "penalised_step": [
        step_cleared_after,
        leaving(step_by_grad, lambda model, *given: model.eval()),
        leaving(step_by_grad, lambda model, *given: hook_on(model[0].weight)),
        leaving(step_by_grad, lambda model, *given: model.append(torch.nn.Linear(2, 2).double())),
        step_never_cleared,
        step_norm,
        step_returning_a_graph,
        step_recorded_twice,
        step_two_forwards,
        lambda model, optimizer, inputs, targets, weight: 1.0,
        lambda model, optimizer, inputs, targets, weight: step_by_grad(model, optimizer, inputs, targets, 0.0),
        lambda model, optimizer, inputs, targets, weight: step_by_grad(model, optimizer, inputs, targets, 2 * weight),
    ],
    "gradient_penalty": [
        penalty_in_eval,
        leaving(penalty_by_sum, gradients_off),
        leaving(penalty_by_sum, lambda critic, *given: critic[0].eval()),
        leaving(penalty_by_sum, lambda critic, *given: critic.requires_grad_(False)),
        leaving(penalty_by_sum, lambda critic, *given: critic.register_forward_hook(lambda *run: None)),
        penalty_by_backward,
        penalty_in_a_loop,
        penalty_spent,
        penaliser(points=lambda real, fake, mix: real.clone()),
        penaliser(points=lambda real, fake, mix: fake.detach()),
        penaliser(points=lambda real, fake, mix: ((1 - mix) * real + mix * fake).detach()),
        penaliser(points=lambda real, fake, mix: mix * real + (1 - mix) * fake),
        penaliser(points=lambda real, fake, mix: real),
        penaliser(distance=lambda norms: norms.mean()),
        penaliser(distance=lambda norms: (norms - 1).square().sum()),
        penaliser(distance=lambda norms: (norms - 1).clamp(min=0).square().mean()),
        penaliser(distance=lambda norms: (norms.square() - 1).square().mean()),
        penaliser(distance=lambda norms: (norms.mean() - 1).square()),
        penaliser(norm=lambda gradients: gradients.flatten(1).norm(dim=1).detach().requires_grad_()),
        penaliser(norm=lambda gradients: gradients.flatten(1).norm(1, dim=1)),
        penaliser(distance=lambda norms: (norms - 1).square()),
        lambda critic, real, fake, mix: penalty_by_sum(critic, real, fake, mix)[None],
        lambda critic, real, fake, mix: penalty_by_sum(critic, real, fake, mix).detach().requires_grad_(),
        lambda critic, real, fake, mix: 10 * penalty_by_sum(critic, real, fake, mix),
        lambda critic, real, fake, mix: (critic(mix * real + (1 - mix) * fake.detach()) - 1).square().mean(),
        lambda critic, real, fake, mix: penalty_by_sum(critic, real, fake, mix).item(),
    ],
    "meta_gradient": [
        meta_one_step,
        meta_measured_at_once,
        leaving(meta_by_hand, gradients_off),
        leaving(meta_by_hand, lambda model, *given: model.first.eval()),
        leaving(meta_by_hand, lambda model, *given: model.shift.zero_()),
        leaving(meta_by_hand, lambda model, *given: hook_on(model.last.weight)),
        meta_on_a_copy,
        meta_last_step_recorded,
        meta_into_grad,
        meta_recorded,
        meta_all_names,
        meta_on_support,
        meta_in_eval,
        meta_unfrozen,
        meta_measured,
        lambda *given: list(meta_by_hand(*given).values()),
        lambda *given: {"first.weight": None, "x": "y"},
        lambda *given: dict.fromkeys(meta_by_hand(*given), 1.0),
        lambda model, support, query, lr, steps: meta_by_hand(model, query, support, lr, steps),
        lambda model, support, query, lr, steps: {
            n: -lr * g for n, g in meta_by_hand(model, support, query, lr, steps).items()
        },
    ],
}

# What these keep goes with the function's own tensors, or the caller's loss.
STILL_RIGHT = {
    ("penalised_step", "keeps every graph"),
    ("hvp", "keeps every graph"),
    ("gradient_penalty", "keeps every graph"),
    ("meta_gradient", "keeps every graph"),
}
