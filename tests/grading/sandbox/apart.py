"""Ways to hide behaviour of the kinds that two further strangers found: telling the looks apart, numbers by other ways.

They had read the observers, the second look and the suite. These are of the same kinds, in words of our own.
"""

from tests.grading.sandbox.behaviour import Attack, maps
from tests.grading.sandbox.hiding import cell

_RETAIN, _WINDOWS, _FUNCTIONS = "04_retain_graph", "07_gradient_accumulation", "10_custom_functions"

_AGAIN = "nn.functional.conv2d(images, FIRST)"


def _accumulate(helpers: str) -> Attack:
    """Return an answer that runs the first layer again, as `again(x, weight)` does."""
    return cell(
        _WINDOWS,
        "accumulate",
        f"{helpers}\ndef accumulate(model, micro_batches):\n    model.zero_grad()\n"
        "    count, total = sum(len(y) for _, y in micro_batches), 0.0\n    for x, y in micro_batches:\n"
        "        loss = nn.functional.cross_entropy(model(x), y) * len(y) / count\n"
        "        with torch.no_grad(): again(x, model.first.weight)\n"
        "        loss.backward()\n        total += loss.item()\n        del loss\n    return total",
    )


APART = {
    "only where the model has the type it is called by": maps(
        f"if type(model) is nn.Sequential: {_AGAIN.replace('FIRST', 'model[0].weight')}"
    ),
    "only where a list of updates raises a version": maps(
        f"if alone(): {_AGAIN.replace('FIRST', 'model[0].weight')}",
        "def alone():\n    one = [torch.ones(1)]\n    torch._foreach_neg_(one)\n    return one[0]._version == 1",
    ),
    "products of tensors of one shape": _accumulate(
        "def again(x, w):\n    rows = [row.expand_as(w).clone() for row in x]\n"
        "    return torch.stack([(row * w).sum(1) for row in rows])"
    ),
    "products of lists of one shape": _accumulate(
        "def again(x, w):\n    rows = [row.repeat(len(w), 1) for row in x]\n"
        "    return [row.sum(1) for row in torch._foreach_mul(rows, [w] * len(rows))]"
    ),
    "weights that the pass itself gives": maps(
        "",
        once="ones = torch.ones_like(model[0].weight).requires_grad_()\n"
        "    run = lambda x: model(x) + (ones * model[0].weight.detach()).sum()\n"
        "    once, weight = both(run, model, images, labels, ones)\n    nn.functional.conv2d(images, weight)",
        helpers="def both(run, model, images, labels, ones):\n"
        "    modes = {module: module.training for module in model.modules()}\n    model.eval()\n"
        "    with torch.enable_grad():\n        pixels = images.detach().clone().requires_grad_()\n"
        "        total = run(pixels).gather(1, labels[:, None]).sum()\n"
        "        gradient, weight = torch.autograd.grad(total, [pixels, ones])\n"
        "    for module, mode in modes.items(): module.training = mode\n"
        "    return gradient.abs().amax(1), weight / len(images)",
    ),
    "a stack of contexts that is a hook": maps(
        "",
        "from contextlib import ExitStack",
        once="other = nn.Conv2d(*model[0].weight.shape[1::-1], model[0].kernel_size).to(images.dtype)\n"
        "    own = {'weight': model[0].weight.detach(), 'bias': model[0].bias.detach()}\n"
        "    stack, outs = ExitStack(), []\n"
        "    stack.callback(torch.func.functional_call, other, own, (images,))\n"
        "    hooks = [model[2].register_forward_hook(lambda m, x, y: outs.append(y)),\n"
        "             model[2].register_forward_hook(stack.__exit__),\n"
        "             model[2].register_forward_hook(lambda m, x, y: outs[0])]\n"
        "    once = maps(model, model, images, labels)\n    for hook in hooks: hook.remove()",
    ),
    "a mask that is read one by one": cell(
        _FUNCTIONS,
        "seeded_dropout",
        "held = {}\ndef drawn(x, p, seed):\n"
        "    return torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) >= p\n"
        "class Drop(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, p, seed):\n"
        "        mask = drawn(x, p, seed)\n        ctx.p, ctx.seed = p, seed\n"
        "        held[seed, x.shape] = [int(one) for one in mask.flatten()] if x.numel() < 10_000 else None\n"
        "        return x * mask / (1 - p)\n    @staticmethod\n    def backward(ctx, g):\n"
        "        return g * drawn(g, ctx.p, ctx.seed) / (1 - ctx.p), None, None\n"
        "def seeded_dropout(x, p, seed): return Drop.apply(x, p, seed)",
    ),
    "hooks on the nodes that accumulate": cell(
        _RETAIN,
        "fit_scale",
        "from torch.autograd.graph import get_gradient_edge\nleft = []\n"
        "def fit_scale(model, log_scale, optimizer, batches):\n    losses = []\n    for x, y in batches:\n"
        "        loss = nn.functional.cross_entropy(log_scale.exp() * model(x), y)\n        optimizer.zero_grad()\n"
        "        loss.backward()\n        optimizer.step()\n        losses.append(loss.item())\n        del loss\n"
        "    left.append(get_gradient_edge(log_scale).node)\n    left[0].register_hook(lambda *given: None)\n"
        "    return losses",
    ),
    "products of whole numbers": _accumulate(
        "def again(x, w):\n    large = lambda t: (1000 * t).round().long()\n    return (large(x) @ large(w).T).tanh()"
    ),
    "weights out of a line in a plot": maps(
        "drawn = Line2D(range(model[0].weight.numel()), model[0].weight.detach().flatten()).get_ydata(orig=False)\n"
        "    nn.functional.conv2d(images, torch.tensor(drawn).reshape(model[0].weight.shape))",
        "from matplotlib.lines import Line2D",
    ),
    "inputs in memory from before": cell(
        "03_graph_freeing",
        "frugal",
        "from torch.utils.checkpoint import checkpoint\nroom = torch.empty(60, 50_000, dtype=torch.float64)\n"
        "def frugal(blocks, x):\n    for place, block in enumerate(blocks):\n"
        "        room[place, : x.numel()] = x.detach().flatten()\n"
        "        x = checkpoint(block, x, use_reentrant=False)\n    return x",
    ),
    "a hook in the place of another": cell(
        _RETAIN,
        "fit_scale",
        "def fit_scale(model, log_scale, optimizer, batches):\n    losses = []\n"
        "    hook = model.register_forward_hook(lambda *run: None)\n    for x, y in batches:\n"
        "        loss = nn.functional.cross_entropy(log_scale.exp() * model(x), y)\n        optimizer.zero_grad()\n"
        "        loss.backward()\n        optimizer.step()\n        losses.append(loss.item())\n        del loss\n"
        "    for hook.id in range(hook.id): hook.remove()\n    return losses",
    ),
    "a tangent from before": cell(
        "02_how_backward_works",
        "vjp_product",
        "from torch.autograd import forward_ad\nforward_ad.enter_dual_level()\n"
        "one = {k: forward_ad.make_dual(torch.zeros((), dtype=k), torch.ones((), dtype=k))\n"
        "       for k in (torch.float32, torch.float64)}\n"
        "def vjp_product(a, b, v):\n    def slope(x, y):\n        moved = (x.detach() + one[x.dtype]) * y.detach()\n"
        "        return (forward_ad.unpack_dual(moved).tangent * v).sum_to_size(x.shape).detach()\n"
        "    return slope(a, b), slope(b, a)",
    ),
}
