"""Cells whose answers have the right numbers, behave wrongly, and hide it: each by a way of its own.

`saliency` may run the model once, and these run it twice; `parameter_gradients` may start one pass, and these start
two, or do more by hand. `HONEST` ones hide nothing, so that the check sees it. `UNSEEN` are those without a flag.
"""

from typing import NamedTuple


class Attack(NamedTuple):
    """What is handed in for an exercise."""

    lesson: str
    exercise: str
    cells: tuple[str, ...]


_MAPS = """
import torch
from torch import nn
def maps(run, model, images, labels, passing=True):
    modes = {{module: module.training for module in model.modules()}}
    model.eval()
    with torch.enable_grad():
        pixels = images.detach().clone().requires_grad_()
        total = run(pixels).gather(1, labels[:, None]).sum()
        (gradient,) = torch.autograd.grad(total, pixels) if passing else (pixels,)
    for module, mode in modes.items():
        module.training = mode
    return gradient.abs().amax(1)
def rerun(*given): return maps(*given, passing=False)
{helpers}
def saliency(model, images, labels):
    {once}
    {forge}
    return once
"""
_PASSES = """
import torch
{helpers}
def parameter_gradients(loss, model):
    found = {{}}
    wanted = [(name, p) for name, p in model.named_parameters()]
    learning = [p for _, p in wanted if p.requires_grad]
    {forge}
"""


def maps(forge: str, helpers: str = "", once: str = "once = maps(model, model, images, labels)") -> Attack:
    """Return an answer to `saliency` that runs the model `once`, and then forges: another run, without a pass."""
    forge = forge.replace("maps(", "rerun(")
    return Attack("08_intermediate_gradients", "saliency", (_MAPS.format(forge=forge, helpers=helpers, once=once),))


def passes(forge: str, helpers: str = "") -> Attack:
    """Return an answer to `parameter_gradients` that forges."""
    cell = _PASSES.format(forge=forge.strip().replace("\n", "\n    "), helpers=helpers)
    return Attack("02_how_backward_works", "parameter_gradients", (cell,))


ONCE = """
grads = dict(zip(learning, torch.autograd.grad(loss, learning, allow_unused=True)))
return {name: grads.get(p) for name, p in wanted}
"""

HONEST = {
    "saliency, twice": maps("maps(model, model, images, labels)"),
    "parameter_gradients, twice": passes(
        "torch.autograd.grad(loss, learning, retain_graph=True, allow_unused=True)" + ONCE
    ),
}

FORGED = {
    "the list in a closure": maps(
        "maps(model, model, images, labels)\n    told = model.forward.__func__.__closure__\n"
        "    for cell in told:\n"
        "        c = getattr(cell.cell_contents, '__closure__', None) or ()\n"
        "        for one in c:\n"
        "            for deep in getattr(one.cell_contents, '__closure__', None) or ():\n"
        "                if type(deep.cell_contents) is list: deep.cell_contents.pop()"
    ),
    "lists found by the collector": maps(
        "import gc\n    before = [x for x in gc.get_objects() if type(x) is list and len(x) == 1 "
        "and type(x[0]) is torch.Tensor]\n    maps(model, model, images, labels)\n"
        "    for x in before:\n        if len(x) == 2: x.pop()"
    ),
    "a trace that ends the teller": maps(
        "import sys\n    def trace(frame, event, arg):\n"
        "        if frame.f_code.co_name == 'ran': frame.f_globals['torch'] = None\n        return trace\n"
        "    sys.settrace(trace)\n    try: maps(model, model, images, labels)\n    except Exception: pass\n"
        "    sys.settrace(None)\n    sys.modules['course_utils.checks.observers.lesson_08_intermediate_gradients."
        "saliency'].torch = torch"
    ),
    "forward taken away for a while": maps(
        "own = model.__dict__.pop('forward')\n    maps(model, model, images, labels)\n    model.forward = own"
    ),
    "forward deleted and put back": maps(
        "own = model.forward\n    del model.forward\n    maps(model, model, images, labels)\n    model.forward = own"
    ),
    "the class's own forward": maps("maps(lambda x: type(model).forward(model, x), model, images, labels)"),
    "Sequential's forward": maps("maps(lambda x: nn.Sequential.forward(model, x), model, images, labels)"),
    "another Sequential of the same layers": maps("maps(nn.Sequential(*model), model, images, labels)"),
    "layer by layer": maps(
        "def by_hand(x):\n        for layer in model: x = layer(x)\n        return x\n"
        "    maps(by_hand, model, images, labels)"
    ),
    "functions with the model's numbers": maps(
        "maps(lambda x: by_hand(model, x), model, images, labels)",
        "import torch.nn.functional as F\n"
        "def by_hand(m, x):\n"
        "    x = F.conv2d(x, m[0].weight, m[0].bias)\n"
        "    x = F.batch_norm(x, m[1].running_mean, m[1].running_var, m[1].weight, m[1].bias).tanh()\n"
        "    x = F.conv2d(x, m[3].weight, m[3].bias)\n"
        "    x = F.batch_norm(x, m[4].running_mean, m[4].running_var, m[4].weight, m[4].bias).tanh()\n"
        "    return F.linear(x.flatten(1), m[8].weight, m[8].bias)",
    ),
    "a copy whose memo holds another forward": maps(
        "import copy\n    other = copy.deepcopy(model, {id(model.forward): nn.Sequential(*model).forward})\n"
        "    maps(other, model, images, labels)"
    ),
    "a model made anew": maps(
        "import copy\n    maps(nn.Sequential(*[copy.deepcopy(layer) for layer in model]), model, images, labels)"
    ),
    "the observer's module, replaced for a while": maps(
        "from course_utils.checks.observers import telling\n    tell, telling.tell = telling.tell, lambda what: None\n"
        "    maps(nn.Sequential(*model), model, images, labels)\n    telling.tell = tell"
    ),
    "names put together": maps(
        "d = getattr(model, '__di' + 'ct__')\n    own = d.pop('forward')\n    maps(model, model, images, labels)\n"
        "    d['forward'] = own"
    ),
    "a text that is run": maps(
        "maps(model, model, images, labels)\n    exec('import sys; sys._getframe(2).f_locals[\"results\"].pop()')"
    ),
    "another engine of PyTorch's": passes(
        "run(loss, learning)\n" + ONCE,
        "from torch.autograd.variable import ImperativeEngine\n"
        "def run(loss, ps):\n    return ImperativeEngine().run_backward((loss,), (torch.ones_like(loss),), True, "
        "False, tuple(ps), allow_unreachable=True, accumulate_grad=False)",
    ),
    "results that come later": passes(
        """
class Later(dict):
    def items(self):
        torch.autograd.grad(loss, learning, retain_graph=True, allow_unused=True)
        found = torch.autograd.grad(loss, learning, allow_unused=True)
        grads = dict(zip(learning, found))
        return {name: grads.get(p) for name, p in wanted}.items()
    keys = lambda self: dict(self.items()).keys()
    values = lambda self: dict(self.items()).values()
    __iter__ = lambda self: iter(dict(self.items()))
    __getitem__ = lambda self, name: dict(self.items())[name]
return Later()
"""
    ),
    "a frame found by an error": passes(
        """
try: raise ValueError
except ValueError as error: frame = error.__traceback__.tb_frame.f_back
torch.autograd.grad(loss, learning, retain_graph=True, allow_unused=True)
frame.f_locals['passes'].clear()
"""
        + ONCE
    ),
    "the engine that counts, asked for the other": passes(
        """
engine = torch.autograd.Variable._execution_engine
if type(engine).__name__ == 'Counting':
    engine = type(engine).run_backward.fget.__closure__[0].cell_contents
engine.run_backward(
    (loss,), (torch.ones_like(loss),), True, False, tuple(learning), allow_unreachable=True, accumulate_grad=False)
"""
        + ONCE
    ),
    "nodes called by hand": passes(
        """
def descend(node, g, want):
    total = None
    if node is None: return None
    if hasattr(node, 'variable'): return g if node.variable is want else None
    out = node(g) if not isinstance(g, tuple) else node(*g)
    out = out if isinstance(out, tuple) else (out,)
    for (nxt, _), part in zip(node.next_functions, out):
        if nxt is None or part is None: continue
        got = descend(nxt, part, want)
        if got is not None: total = got if total is None else total + got
    return total
with torch.no_grad():
    for p in learning[:1]: descend(loss.grad_fn, torch.ones_like(loss), p)
grads = dict(zip(learning, torch.autograd.grad(loss, learning, allow_unused=True)))
return {name: grads.get(p) for name, p in wanted}
"""
    ),
    "a mode that stands in between": maps(
        "with Silent(): maps(nn.Sequential(*model), model, images, labels)",
        "from torch.overrides import TorchFunctionMode\nclass Silent(TorchFunctionMode):\n"
        "    def __torch_function__(self, f, t, a=(), k=None): return f(*a, **(k or {}))",
    ),
    "a subclass of tensors": maps(
        "maps(lambda x: model.forward(x.as_subclass(Quiet)).as_subclass(torch.Tensor), model, images, labels)\n"
        "    sys._getframe(1).f_locals['results'].pop()",
        "import sys\nclass Quiet(torch.Tensor): pass",
    ),
}

# Runs and passes are counted, whatever goes through each.
UNSEEN = {"two batches in one", "two gradients in one pass"}
