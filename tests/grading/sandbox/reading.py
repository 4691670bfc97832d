"""Ways to hide behaviour that come of reading the observers: what each of them counts, when, and by which names.

Somebody else, who had no part in the defences, read them and wrote 18 such ways. All 18 won points without a flag.
These are of the same kinds, in words of our own.
"""

from tests.grading.sandbox.behaviour import Attack, passes
from tests.grading.sandbox.hiding import cell

_FREEING, _RETAIN, _MODES = "03_graph_freeing", "04_retain_graph", "06_detach_vs_no_grad"
_WINDOWS, _MAPS = "07_gradient_accumulation", "08_intermediate_gradients"

_TRAIN = (
    "hoard = []\ndef train(model, optimizer, batches):\n    losses, rows = [], []\n    for x, y in batches:\n"
    "        out = model(x)\n        loss = nn.functional.mse_loss(out, y)\n        optimizer.zero_grad()\n"
    "        loss.backward()\n        HOARD\n        optimizer.step()\n        losses.append(loss.item())\n"
    "        rows.append(out[0].detach().clone())\n    return losses, sum(losses) / len(losses), rows"
)
_SCALE = (
    "hoard = []\ndef fit_scale(model, log_scale, optimizer, batches):\n    losses = []\n    for x, y in batches:\n"
    "        out = model(x)\n        hoard.append([node for node, _ in out.grad_fn.next_functions])\n"
    "        loss = nn.functional.cross_entropy(log_scale.exp() * out, y)\n        optimizer.zero_grad()\n"
    "        loss.backward()\n        optimizer.step()\n        losses.append(loss.item())\n        del out, loss\n"
    "    return losses"
)
_LOOP = (
    "HELPERS\ndef train_in_windows(model, optimizer, micro_batches, every):\n    losses, total = [], 0.0\n"
    "    optimizer.zero_grad()\n    for n, (x, y) in enumerate(micro_batches, 1):\n"
    "        loss = nn.functional.cross_entropy(model(x), y) / every\n        MORE\n        loss.backward()\n"
    "        total += loss.item()\n        del loss\n        if n % every == 0:\n            optimizer.step()\n"
    "            optimizer.zero_grad()\n            losses.append(total)\n            total = 0.0\n    return losses"
)


def _windows(more: str, helpers: str = "") -> Attack:
    return cell(_WINDOWS, "train_in_windows", _LOOP.replace("MORE", more).replace("HELPERS", helpers))


_WALK = (
    "def walk(loss):\n    given, waiting = {loss.grad_fn: torch.ones_like(loss)}, [loss.grad_fn]\n"
    "    while waiting:\n        node = waiting.pop()\n        if node.name().endswith('AccumulateGrad'): continue\n"
    "        try: out = node(given[node])\n        except Exception: continue\n"
    "        out = out if isinstance(out, tuple) else (out,)\n"
    "        for (inner, _), g in zip(node.next_functions, out):\n"
    "            if inner is not None and g is not None and inner not in given:\n"
    "                given[inner] = g\n                waiting.append(inner)"
)
_EPOCH = (
    "\ndef epoch_in_windows(model, optimizer, batches, every):\n    BEFORE\n    losses, window = [], []\n"
    "    optimizer.zero_grad()\n    def step(window):\n        n, total = sum(len(y) for _, y in window), 0.0\n"
    "        for x, y in window:\n            READ\n"
    "            loss = nn.functional.cross_entropy(model(x), y, reduction='sum') / n\n            loss.backward()\n"
    "            total += loss.item()\n            del loss\n        optimizer.step()\n        optimizer.zero_grad()\n"
    "        losses.append(total)\n"
    "    for batch in rows:\n        window.append(batch)\n        if len(window) == every:\n            step(window)\n"
    "            window = []\n    if window: step(window)\n    return losses"
)
_OTHER_SCORES = (
    "deep = [m for m in model.last.modules() if hasattr(m, 'weight')][0]\n"
    "        with torch.no_grad(): seen = product(product(x, model.first.weight).tanh(), deep.weight)"
)
_BAG = (
    "def product(x, w):\n    n = torch.arange(x.shape[1]).expand(len(x), -1)\n"
    "    return nn.functional.embedding_bag(n, w.T.contiguous(), per_sample_weights=x, mode='sum')"
)
_NUMBERS = (
    "def copied(p): return torch.tensor([v.item() for v in p.reshape(-1)], dtype=p.dtype).reshape(p.shape)\n"
    "def product(x, w): return x @ copied(w).T"
)
_IMAGES = (
    "def fewest_bytes(model, images, labels):\n    layers = [m for m in model if hasattr(m, 'weight')]\n"
    "    with torch.no_grad():\n        RUN\n    return total / len(labels)"
)
_AT_ONCE = (
    "h = images\n        for n, m in enumerate(layers):\n"
    "            out = torch.empty(1, dtype=h.dtype).resize_(len(h), len(m.weight))\n"
    "            torch.addmm(m.bias, h, m.weight.T, out=out)\n"
    "            h = out if n == len(layers) - 1 else out.tanh_()\n"
    "        total = 0.0\n        for a, b in zip(h.split(20), labels.split(20)):\n"
    "            total += nn.functional.cross_entropy(a, b, reduction='sum').item()"
)
_ONE_BY_ONE = (
    "model(images[:1])\n        total = 0.0\n        for image, label in zip(images, labels):\n"
    "            h = image[None, :, None]\n            for n, m in enumerate(layers):\n"
    "                h = nn.functional.conv1d(h, m.weight[:, :, None], m.bias)\n"
    "                h = h if n == len(layers) - 1 else h.tanh_()\n"
    "            total += nn.functional.cross_entropy(h[:, :, 0], label[None], reduction='sum').item()"
)

READ = {
    "a mark taken off a node": cell(
        _FREEING, "train", _TRAIN.replace("HOARD", "out.grad_fn.metadata.clear(); hoard.append(loss)")
    ),
    "a graph held below its top": cell(_RETAIN, "fit_scale", _SCALE),
    "memory that is grown": cell(_FREEING, "fewest_bytes", _IMAGES.replace("RUN", _AT_ONCE)),
    "products by a convolution": cell(_FREEING, "fewest_bytes", _IMAGES.replace("RUN", _ONE_BY_ONE)),
    "copies in memory that is grown": cell(
        _FREEING,
        "frugal",
        "class Kept(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, block, *ps):\n"
        "        ctx.block, ctx.state = block, torch.get_rng_state()\n"
        "        ctx.x = torch.empty(1, dtype=x.dtype).resize_(x.shape).copy_(x)\n"
        "        with torch.no_grad(): return block(x)\n    @staticmethod\n    def backward(ctx, g):\n"
        "        now = torch.get_rng_state()\n        torch.set_rng_state(ctx.state)\n"
        "        with torch.enable_grad():\n"
        "            x = ctx.x.detach().requires_grad_()\n            y = ctx.block(x)\n"
        "        torch.set_rng_state(now)\n"
        "        gs = torch.autograd.grad(y, [x, *ctx.block.parameters()], g)\n        ctx.x = None\n"
        "        return gs[0], None, *gs[1:]\n"
        "def frugal(blocks, x):\n    for block in blocks: x = Kept.apply(x, block, *block.parameters())\n    return x",
    ),
    "other hooks before the observer's": cell(
        _MODES,
        "evaluate",
        "from torch.autograd.graph import allow_mutation_on_saved_tensors as first\n"
        "def evaluate(model, loss_function, batches):\n    modes = [(m, m.training) for m in model.modules()]\n"
        "    total, count = 0.0, 0\n    try:\n        model.eval()\n        for x, y in batches:\n"
        "            with torch.enable_grad(), first(): out = model(x)\n"
        "            with torch.no_grad(): total += loss_function(out.detach(), y).item() * len(x)\n"
        "            count += len(x)\n    finally:\n        for m, mode in modes: m.training = mode\n"
        "    return total / count",
    ),
    "recorded up to the last layer": cell(
        _MODES,
        "discriminator_step",
        "from torch.nn.functional import binary_cross_entropy_with_logits as bce\n"
        "def discriminator_step(generator, discriminator, optimizer, real, noise):\n"
        "    hook = generator[-1].register_forward_pre_hook(lambda m, x: torch.set_grad_enabled(False) and None)\n"
        "    try: fake = generator(noise).detach()\n    finally:\n        torch.set_grad_enabled(True)\n"
        "        hook.remove()\n    for p in discriminator.parameters(): p.grad = None\n"
        "    a, b = discriminator(real), discriminator(fake)\n"
        "    loss = bce(a, torch.ones_like(a)) + bce(b, torch.zeros_like(b))\n    loss.backward()\n"
        "    optimizer.step()\n    return loss.item()",
    ),
    "what a pass kept, packed afterwards": cell(
        _RETAIN,
        "one_pass",
        "def one_pass(losses, weights):\n"
        "    sum(w * one for one, w in zip(losses, weights)).backward(retain_graph=True)\n"
        "    same, waiting = lambda t: t, [one.grad_fn for one in losses]\n    while waiting:\n"
        "        node = waiting.pop()\n        if node is None: continue\n"
        "        for read in (lambda: node._raw_saved_self, lambda: node._raw_saved_other, lambda: "
        "node._raw_saved_result, lambda: node._raw_saved_mat1, lambda: node._raw_saved_mat2):\n"
        "            try: read().register_hooks(same, same)\n            except (AttributeError, RuntimeError): pass\n"
        "        waiting += [inner for inner, _ in node.next_functions]",
    ),
    "passes that run when the list is read": cell(
        _RETAIN,
        "loss_gradients",
        "from collections.abc import Sequence\nclass Row(Sequence):\n"
        "    def __init__(self, make, count): self.make, self.count = make, count\n"
        "    def __len__(self): return self.count\n    def __getitem__(self, n): return self.make(n)\n"
        "def loss_gradients(losses, parameters):\n    ps = list(parameters)\n    last = len(losses) - 1, len(ps) - 1\n"
        "    grad = lambda n, k: torch.autograd.grad(losses[n], ps, retain_graph=(n, k) != last)[k]\n"
        "    torch.autograd.grad(losses[0], ps[-1], retain_graph=True)\n"
        "    return Row(lambda n: Row(lambda k: grad(n, k), len(ps)), len(losses))",
    ),
    "a reader's own count": cell(
        _WINDOWS,
        "epoch_in_windows",
        _EPOCH.replace("BEFORE", "rows = list(batches)\n    batches.read = 0").replace("READ", "batches.read += 1"),
    ),
    "copies of gradients in another shape": cell(
        _WINDOWS,
        "step_in_backward",
        "kept = []\ndef step_in_backward(model, lr):\n    def step(p):\n        with torch.no_grad():\n"
        "            kept.append(torch.cat([p.grad.reshape(-1), p.grad.new_zeros(7)]))\n            p -= lr * p.grad\n"
        "        p.grad = None\n"
        "    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]",
    ),
    "a cell that calls itself PyTorch": _windows(
        _OTHER_SCORES, "__name__ = 'torch.nn'\ndef product(x, w): return nn.functional.linear(x, w)"
    ),
    "products by an operation for tables": _windows(_OTHER_SCORES, _BAG),
    "weights read number by number": _windows(_OTHER_SCORES, _NUMBERS),
    "passes that stop above what is counted": cell(
        _RETAIN,
        "two_updates",
        "def two_updates(trunk, heads, optimizers, inputs, targets):\n    inner = []\n"
        "    hook = trunk[1].register_forward_hook(lambda m, x, y: inner.append(y))\n    h = trunk(inputs)\n"
        "    hook.remove()\n    losses = [nn.functional.mse_loss(head(h), y) for head, y in zip(heads, targets)]\n"
        "    for loss in losses: torch.autograd.grad(loss, inner[0], retain_graph=True)\n"
        "    ps = [[p for group in o.param_groups for p in group['params']] for o in optimizers]\n"
        "    found = [torch.autograd.grad(a, b, retain_graph=a is losses[0]) for a, b in zip(losses, ps)]\n"
        "    values = [loss.item() for loss in losses]\n    del losses, h, inner\n"
        "    for o, p, g in zip(optimizers, ps, found):\n        for one, its in zip(p, g): one.grad = its\n"
        "        o.step()\n        o.zero_grad()\n    return values",
    ),
    "hooks of kinds that nobody counts": passes(
        "grads = dict(zip(learning, torch.autograd.grad(loss, learning, allow_unused=True)))\n"
        "model.register_state_dict_post_hook(lambda module, state, prefix, rest: state.clear())\n"
        "for p in learning:\n    kept.append(get_gradient_edge(p).node)\n"
        "    kept[-1].register_prehook(lambda g: tuple(None if it is None else 9 * it for it in g))\n"
        "return {name: grads.get(p) for name, p in wanted}",
        "from torch.autograd.graph import get_gradient_edge\nkept = []",
    ),
    "nodes called after the record has ended": cell(
        _WINDOWS,
        "epoch_in_windows",
        _WALK
        + _EPOCH.replace("BEFORE", "rows, done = batches, []")
        .replace("READ", "done.append(x)")
        .replace(
            "            loss.backward()", "            if len(done) > 4: walk(loss)\n            loss.backward()"
        ),
    ),
    "a pass for each image": cell(
        _MAPS,
        "saliency",
        "def saliency(model, images, labels):\n    modes = [(m, m.training) for m in model.modules()]\n"
        "    model.eval()\n    with torch.enable_grad():\n        x = images.detach().clone().requires_grad_()\n"
        "        s, rows = model(x), []\n        for n in range(len(x)):\n"
        "            (g,) = torch.autograd.grad(s[n, labels[n]], x, retain_graph=n < len(x) - 1)\n"
        "            rows.append(g[n])\n    for m, mode in modes: m.training = mode\n"
        "    return torch.stack(rows).abs().amax(1)",
    ),
}
