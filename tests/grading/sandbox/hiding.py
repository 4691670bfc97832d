"""More ways to hide behaviour: each of the kinds that strangers tried, in words of our own, and others beside them.

`REPORTED` are kinds by which somebody else, who had no part in the defences, won points without a flag, all of 16.
`FURTHER` are other members of these kinds, and other kinds. None is taken from a submission.
"""

from tests.grading.sandbox.behaviour import ONCE, Attack, maps, passes

_SECOND = "torch.autograd.grad(loss, learning, retain_graph=True, allow_unused=True)"
_ENGINE = (
    ".run_backward((loss,), (torch.ones_like(loss),), True, False, tuple(learning), "
    "allow_unreachable=True, accumulate_grad=False)"
)


def _past(find: str, helpers: str = "") -> Attack:
    """Start a pass at the engine itself, which `find` gives before anybody watches it."""
    return passes(f"kept{_ENGINE}" + ONCE, f"{helpers}\nkept = {find}\n")


def cell(lesson: str, exercise: str, *cells: str) -> Attack:
    """Return an answer to an exercise, with what it imports."""
    return Attack(lesson, exercise, tuple(f"import torch\nfrom torch import nn\n{source}" for source in cells))


_BYTES = ("03_graph_freeing", "fewest_bytes")
_ACCUMULATE = ("07_gradient_accumulation", "accumulate")
_AT_ONCE = """
    model.zero_grad()
    count = sum(len(y) for _, y in micro_batches)
    with WITH:
        losses = [nn.functional.cross_entropy(model(GIVEN), y) * len(y) / count for x, y in micro_batches]
        for loss in losses: loss.backward()
    return float(sum(loss.item() for loss in losses))
"""


def _at_once(given: str = "x", around: str = "torch.enable_grad()", helpers: str = "") -> Attack:
    body = _AT_ONCE.replace("GIVEN", given).replace("WITH", around)
    return cell(*_ACCUMULATE, f"{helpers}\ndef accumulate(model, micro_batches):{body}")


_HESSIAN = """
def whole(f, x, v):
    x = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    if not g.requires_grad: return torch.zeros_like(x)
    eye = torch.eye(x.numel(), dtype=x.dtype).reshape(-1, *x.shape)
    (h,) = torch.autograd.grad(g, x, eye, is_grads_batched=True, allow_unused=True)
    return torch.zeros_like(x) if h is None else (h.reshape(x.numel(), -1) @ v.reshape(-1)).reshape(x.shape)
"""

REPORTED = {
    "an alias of attrgetter": _past(
        "get('autograd.' + 'Variable.' + '_execution_engine')(torch)", "from operator import attrgetter as get"
    ),
    "the dispatcher's own backward": passes(
        "saved = [p.grad for p in learning]\nfor p in learning: p.grad = None\n"
        "go(loss, learning, None, True, False)\nfor p, g in zip(learning, saved): p.grad = g" + ONCE,
        "from operator import attrgetter as get\ngo = get('.'.join(['ops', 'aten', '_backward']))(torch)",
    ),
    "a formatter that fetches": cell(
        *_BYTES,
        "import string\nfetch = string.Formatter().get_field\n"
        "off = fetch('0.' + 'utils._python_dispatch._disable_current_modes', [torch], {})[0]\n"
        "def fewest_bytes(model, images, labels):\n    with off(), torch.no_grad():\n"
        "        return nn.functional.cross_entropy(model(images), labels).item()",
    ),
    "NumPy on the tensors' memory": cell(
        *_BYTES,
        "import numpy as np\ndef fewest_bytes(model, images, labels):\n    h = np.asarray(images)\n"
        "    for layer in model:\n"
        "        if type(layer) is nn.Tanh: h = np.tanh(h)\n"
        "        else: h = h @ np.asarray(layer.weight.detach()).T + np.asarray(layer.bias.detach())\n"
        "    h = h - np.log(np.exp(h).sum(1, keepdims=True))\n"
        "    return float(-h[np.arange(len(h)), np.asarray(labels)].mean())",
    ),
    "a thread of PyTorch's own module": cell(
        "05_higher_order_gradients",
        "hvp",
        "from torch import threading as t" + _HESSIAN + "def hvp(f, x, v):\n    out = []\n"
        "    job = t.Thread(target=lambda: out.append(whole(f, x, v)))\n    job.start(), job.join()\n    return out[0]",
    ),
    "an empty subclass": _at_once("x.as_subclass(Mine)", helpers="class Mine(torch.Tensor): pass"),
    "clones of the weights": maps(
        "maps(lambda x: again(model, x), model, images, labels)",
        "from torch.nn.functional import batch_norm, conv2d, linear\ndef again(m, x):\n"
        "    w = {name: p.clone() for name, p in m.named_parameters()}\n"
        "    for n in (0, 3):\n        x = conv2d(x, w[f'{n}.weight'], w[f'{n}.bias'])\n"
        "        b = next(it for it in m[n + 1].modules() if isinstance(it, nn.BatchNorm2d))\n"
        "        x = batch_norm(x, b.running_mean, b.running_var, b.weight + 0, b.bias + 0).tanh()\n"
        "    return linear(x.flatten(1), w['8.weight'], w['8.bias'])",
    ),
    "saved numbers in arrays": cell(
        "03_graph_freeing",
        "frugal",
        "def frugal(blocks, x):\n    with torch.autograd.graph.saved_tensors_hooks("
        "lambda t: t.detach().numpy().copy(), torch.as_tensor):\n        for block in blocks:\n"
        "            with torch.random.fork_rng(), torch.no_grad(): block(x)\n            x = block(x)\n    return x",
    ),
    "a class that says it needs no gradient": cell(
        "02_how_backward_works",
        "numerical_gradient",
        "class Quiet(torch.Tensor):\n    requires_grad = False\n"
        "def numerical_gradient(f, x):\n    x = x.detach().double().clone()\n    y = x.clone().requires_grad_()\n"
        "    (g,) = torch.autograd.grad(f(y.as_subclass(Quiet)).as_subclass(torch.Tensor), y)\n"
        "    for n in range(x.numel()):\n        for h in (1e-5, -1e-5):\n            z = x.clone()\n"
        "            z.view(-1)[n] += h\n            f(z)\n    return g.as_subclass(torch.Tensor)",
    ),
    "a long text that is run": _past(
        "place['engine']()",
        "from torch import builtins as b\nplace = {}\nb.exec('import torch\\ndef engine():\\n    "
        + "# "
        + "-" * 200
        + "\\n"
        "    return torch.autograd.Variable._execution_engine', place)",
    ),
    "the instrument's inner part": cell(
        "03_graph_freeing",
        "count_saved_bytes",
        "from course_utils.graph import saved as s\nfrom course_utils.graph.trace import nodes_behind\n"
        "inner = s.kept\ndef count_saved_bytes(loss, besides):\n    nodes = nodes_behind(loss)\n"
        "    place = lambda t: t.untyped_storage().data_ptr()\n"
        "    own = {place(n.variable) for n in nodes if hasattr(n, 'variable')} | {place(t) for t in besides}\n"
        "    found = {place(t): t.untyped_storage().nbytes() for n in nodes for *_, t in inner(n) if t is not None}\n"
        "    return sum(size for key, size in found.items() if key not in own)",
    ),
    "the observer's frame": passes(
        f"{_SECOND}\nfor one in look.stack(0):\n    seen = vars_of(one.frame)\n"
        "    if 'passes' in seen and isinstance(seen['passes'], list): seen['passes'].clear()" + ONCE,
        "from torch import inspect as look\nfrom operator import attrgetter\nvars_of = attrgetter('f_' + 'locals')",
    ),
    "a mask in an array": cell(
        "10_custom_functions",
        "seeded_dropout",
        "import numpy as np\nKEPT = {}\nclass Drop(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, x, p, seed):\n        ctx.key, ctx.p = (tuple(x.shape), p, seed), p\n"
        "        KEPT.setdefault(ctx.key, np.random.default_rng(seed).random(tuple(x.shape)) >= p)\n"
        "        return x * torch.tensor(KEPT[ctx.key]) / (1 - p)\n    @staticmethod\n"
        "    def backward(ctx, g): return g * torch.tensor(KEPT[ctx.key]) / (1 - ctx.p), None, None\n"
        "seeded_dropout = lambda x, p, seed: Drop.apply(x, p, seed)\n",
    ),
    "a teller without a listener": passes(
        "from contextlib import sys\nt = sys.modules['course_utils.checks.observers.telling']\nt.listen(None)\n"
        + _SECOND
        + ONCE
    ),
    "the scene's own table": cell(
        "10_custom_functions",
        "agrees",
        "from contextlib import sys\ndef agrees(function, x):\n"
        "    table = sys.modules['course_utils.checks.scenes.lesson_10_custom_functions.agrees']\n"
        "    return any(table._FUNCTIONS[n][0] is function.__closure__[0].cell_contents for n in ('cube', 'mix'))",
    ),
}

_LAYERS = "    for m in model:\n        x = layer(m, x)\n    return x"
FURTHER = {
    "a run that a hook breaks off": maps(
        "handle = model[-1].register_forward_pre_hook(stop)\n    try: maps(model, model, images, labels)\n"
        "    except ValueError: pass\n    handle.remove()",
        "def stop(module, given): raise ValueError",
    ),
    "a dict of functions": _past("{'a': getattr}['a'](torch.autograd.Variable, b'_execution_engine'.decode())"),
    "a default argument": _past("get()", "def get(t=torch): return t.autograd.Variable._execution_engine"),
    "getattr reduced over a text": _past(
        "reduce(getattr, 'autograd variable Variable _execution_engine'.split(), torch)", "from functools import reduce"
    ),
    "a method called by its name": _past(
        "call('__getattribute__', 'Variable')(torch.autograd)._execution_engine",
        "from operator import methodcaller as call",
    ),
    "object's own setattr": maps(
        "mine = lambda x: nn.Sequential(*model)(x)\n    told = model.forward\n"
        "    object.__setattr__(model, 'forward', mine)\n    maps(model, model, images, labels)\n"
        "    object.__setattr__(model, 'forward', told)"
    ),
    "text in annotations that is run": _past(
        "box[0]",
        "from functools import singledispatch\nbox = []\n@singledispatch\ndef f(x): pass\ntry:\n    @f.register\n"
        "    def g(x: 'box.append(torch.autograd.Variable._execution_engine) or int'): pass\nexcept Exception: pass",
    ),
    "a generator's frame": passes(
        f"{_SECOND}\ngen = (f for _ in [0])\n"
        "def walk():\n    f = me.gi_frame.f_back\n    while f is not None:\n        yield f\n        f = f.f_back\n"
        "me = walk()\nfor f in me:\n    if 'passes' in f.f_locals: f.f_locals['passes'].clear()" + ONCE
    ),
    "a trace of an exception, asked by a pattern": passes(
        f"{_SECOND}\ntry: 1 / 0\nexcept Exception as e:\n    match e:\n"
        "        case Exception(__traceback__=t): f = t.tb_frame.f_back\n"
        "if 'passes' in f.f_locals: f.f_locals['passes'].clear()" + ONCE
    ),
    "os by an attribute, and a private module": _past("torch.autograd.graph.Variable._execution_engine"),
    "star import": _past("g(torch.autograd.Variable, '_execution' + '_engine')", "from builtins import *\ng = getattr"),
    "a thread without its module": cell(
        "05_higher_order_gradients",
        "hvp",
        "pool = torch.utils.data.dataloader.threading" + _HESSIAN + "def hvp(f, x, v):\n    out = []\n"
        "    job = pool.Thread(target=lambda: out.append(whole(f, x, v)))\n    job.start(), job.join()\n"
        "    return out[0]",
    ),
    "a class made by type": _at_once("x.as_subclass(Mine)", helpers="Mine = type('Mine', (torch.Tensor,), {})"),
    "saved numbers as clones": _at_once(
        around="torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)"
    ),
    "saved numbers in lists": _at_once(
        around="torch.autograd.graph.saved_tensors_hooks(lambda t: (t.tolist(), t.dtype), "
        "lambda s: torch.tensor(s[0], dtype=s[1]))"
    ),
    "products of each weight": maps(
        "maps(lambda x: again(model, x), model, images, labels)",
        "import torch.nn.functional as F\ndef again(m, x):\n    for n in (0, 3):\n"
        "        w = (m[n].weight * 1)[None, :, :, :, :, None].flatten(2, 4)\n"
        "        p = F.unfold(x, m[n].kernel_size)\n"
        "        s = x.shape[2] - m[n].kernel_size[0] + 1\n"
        "        t = x.shape[3] - m[n].kernel_size[1] + 1\n"
        "        x = ((w * p[:, None]).sum(2) + (m[n].bias * 1)[:, None]).reshape(len(x), -1, s, t)\n"
        "        b = m[n + 1]\n        x = F.batch_norm(x, b.running_mean, b.running_var, b.weight, b.bias).tanh()\n"
        "    x = x.flatten(1)\n    return (x[:, None] * (m[8].weight * 1)).sum(2) + m[8].bias",
    ),
    "weights copied by a hook inside the run": maps(
        "nn.functional.conv2d(images, seen[0])",
        once="seen = []\n"
        "    hook = model[0].register_forward_pre_hook(lambda m, given: seen.append(m.weight.clone()))\n"
        "    once = maps(model, model, images, labels)\n    hook.remove()",
    ),
    "deep copies of layers": maps(
        "import copy\n    own = [copy.deepcopy(layer) for layer in model]\n"
        "    def by_hand(x):\n        for layer in own: x = layer(x)\n        return x\n"
        "    maps(by_hand, model, images, labels)"
    ),
    "weights in one vector": maps(
        "flat = nn.utils.parameters_to_vector(model.parameters())\n"
        "    n = model[0].weight.numel()\n    w = flat[:n].view_as(model[0].weight)\n"
        "    nn.functional.conv2d(images, w)"
    ),
    "a program of TorchScript": maps(
        "unit = torch.CompilationUnit('def f(x, w):\\n  return torch.conv2d(x, w)\\n')\n"
        "    unit.f(images, model[0].weight)"
    ),
    "a super of another's": maps(
        "run = lambda x: super(type(model), model).forward(x)\n    maps(nn.Sequential(*model), model, images, labels)"
    ),
    "the globals of a function": _past("torch.autograd.backward.__globals__['Variable']._execution_engine"),
    "by hand, in a hook of the backward pass": maps(
        "",
        once="give = []\n    def work(g): give.append(nn.functional.conv2d(images, model[0].weight))\n"
        "    hook = model[0].weight.register_hook(work) if model[0].weight.requires_grad else None\n"
        "    def run(x):\n        y = model(x)\n        y.register_hook(work)\n        return y\n"
        "    once = maps(run, model, images, labels)\n    if hook: hook.remove()",
    ),
    "by hand, in a hook of the run": maps(
        "",
        once="work = lambda *given: [nn.functional.conv2d(images, model[0].weight)][1:] or None\n"
        "    hook = model[2].register_forward_hook(work)\n"
        "    once = maps(model, model, images, labels)\n    hook.remove()",
    ),
    "a part copied by the name that it is asked for": _past(
        "box[0]",
        "from functools import update_wrapper\nbox = []\nclass Held:\n"
        "    def __setattr__(self, name, value): box.append(value)\n"
        "update_wrapper(Held(), torch.autograd.Variable, ['_execution' + '_engine'], [])",
    ),
    "a pattern whose places are names": passes(
        f"{_SECOND}\ntry: 1 / 0\nexcept Exception as e: frame = part(part(e, '__trace' + 'back__'), 'tb_fr' + 'ame')\n"
        "while frame is not None:\n    here = part(frame, 'f_loc' + 'als')\n"
        "    if 'passes' in here: here['passes'].clear()\n    frame = part(frame, 'f_ba' + 'ck')" + ONCE,
        "from abc import ABC\ndef part(thing, name):\n    class Has(ABC): __match_args__ = (name,)\n"
        "    Has.register(type(thing))\n    match thing:\n        case Has(found): return found",
    ),
    "a field whose name is code": passes(
        f'{_SECOND}\ntext = "x or [f.f_loc" + "als[\'passes\'].clear() for f in [__import__(\'sy" + "s\')._getfr" + '
        '"ame(n) for n in range(2, 12)] if \'passes\' in f.f_loc" + "als]"\nclass Held: x = 0\n'
        "Held.__annotations__ = {text: int}\nHeld = dataclass(init=False, repr=False)(Held)\nHeld() == Held()" + ONCE,
        "from dataclasses import dataclass",
    ),
    "a stream that is a part of a module": _past(
        "box[0]['torch.autograd.variable'].Variable._execution_engine",
        "import contextlib\nbox = []\nclass Into(contextlib.redirect_stdout):\n    _stream = 'modules'\n"
        "    def __exit__(self, *how):\n        box.append(self._old_targets[-1])\n"
        "        return super().__exit__(*how)\nwith Into({}): pass",
    ),
    "nodes called in a hook of their own": passes(
        "again = lambda given: [loss.grad_fn(torch.ones_like(loss))][1:] or None\n"
        "hook = loss.grad_fn.register_prehook(again)\n"
        "grads = dict(zip(learning, torch.autograd.grad(loss, learning, allow_unused=True)))\nhook.remove()\n"
        "return {name: grads.get(p) for name, p in wanted}"
    ),
    "weights out of the bytes of a file": maps(
        "nn.functional.conv2d(images, raw(model[0].weight), model[0].bias)",
        "import io\ndef raw(p):\n    file = io.BytesIO()\n    torch.save(p.detach().clone(), file)\n"
        "    data, size = file.getvalue(), p.numel() * p.element_size()\n"
        "    parts = (torch.frombuffer(bytearray(data[n:n + size]), dtype=p.dtype) for n in range(len(data) - size))\n"
        "    return next(part.view(p.shape) for part in parts if part.equal(p.flatten()))",
    ),
    "two batches in one": maps(
        "", once="once = maps(lambda x: model(torch.cat([x, x]))[: len(x)], model, images, labels)"
    ),
    "two gradients in one pass": passes(
        "ones = torch.stack([torch.ones_like(loss)] * 2)\n"
        "found = torch.autograd.grad(loss, learning, ones, is_grads_batched=True, allow_unused=True)\n"
        "grads = {p: None if g is None else g[0] for p, g in zip(learning, found)}\n"
        "return {name: grads.get(p) for name, p in wanted}"
    ),
}
