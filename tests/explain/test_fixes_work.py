"""A fix that is code works: put in place of the line that the card marks, the script runs to its end."""

import ast
import linecache

import pytest

from course_utils.explain.explaining import explain
from tests.explain.test_explain import raised

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

# Each with the line that is replaced marked `#!`; a line that is to stand before it, `#<`, or behind it, `#>`.
# `#!!` and `#<<` are for a fix whose statements belong together.
SCRIPTS = {
    "a leaf written into": "w = torch.ones(3, requires_grad=True)\nw.sum().backward()\nw -= 0.1 * w.grad  #!",
    "a part of a leaf": "w = torch.ones(3, requires_grad=True)\nw[0] = 0.0  #!",
    "a gradient that came in": "class Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
    "        return x * 2\n    @staticmethod\n    def backward(ctx, g):\n        return g.mul_(2)  #<\n"
    "x, seed = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)\n"
    "torch.autograd.grad(Double.apply(x), x, seed, create_graph=True)",
    "a saved result": "v = torch.ones(3, requires_grad=True)\ne = v.exp()\ne += 1  #!\ne.sum().backward()",
    "a chain": "v = torch.ones(3, requires_grad=True)\ne = v.exp()\ne.mul_(2).add_(1)  #!\ne.sum().backward()",
    "a result that is kept": "v = torch.ones(3, requires_grad=True)\ne = v.exp()\nc = e.clamp_(0, 1)  #!\n"
    "c.sum().backward()",
    "a functional call": "v = torch.ones(3, requires_grad=True)\ne = v.sigmoid()\ne = F.dropout(e, inplace=True)  #!\n"
    "e.sum().backward()",
    "an element": "v = torch.ones(3, requires_grad=True)\ne = v.exp()\ne[0] = 0.0  #<\ne.sum().backward()",
    "a view": "v = torch.ones(4, requires_grad=True)\ne = v.exp()\nhalf = e[:2]  #<\nhalf.zero_()\ne.sum().backward()",
    "one view of several": "x = torch.ones(2, 4, requires_grad=True)\na, b = x.exp().chunk(2, 1)\nb += 1  #!\n"
    "(a * b).sum().backward()",
    "an expanded tensor": "x = torch.ones(1, 3).expand(2, 3)\nx += 1  #<",
    "a vector": "w = torch.ones(3, requires_grad=True)\nloss = w.exp()\nloss.backward()  #!",
    "a seed of another shape": "w = torch.ones(3, 1, requires_grad=True)\ny = w * 2\ny.backward(torch.ones(3))  #!",
    "labels that are floats": "logits, y = torch.zeros(2, 3), torch.tensor([0.0, 1.0])\nF.cross_entropy(logits, y)  #<",
    "targets of another shape": "p, t = torch.rand(4, 1), torch.ones(4)\nF.binary_cross_entropy(p, t)  #<",
    "integers for BCE": "p, y = torch.rand(3), torch.ones(3).long()\nF.binary_cross_entropy(p, y)  #<",
    "a product of two dtypes": "a, b = torch.ones(2, 3), torch.ones(3, 2).double()\n"
    "torch.addmm(torch.zeros(2, 2), a, b)  #<",
    "a model on meta": "net = nn.Linear(2, 1, device='meta')\nnet.to('cpu')  #!\nnet(torch.ones(1, 2))",
    "a tensor replaced after its use": "t = torch.ones(2, requires_grad=True)\nu = t.exp()  #<\nt = t.clone()  #-\n"
    "torch.autograd.grad(u.sum(), t)",
    "integers that are to learn": "k = torch.arange(3)\nk.requires_grad_()  #!",
    "an input of float64": "x = torch.ones(2, 3).double()\nnn.Linear(3, 1)(x)  #<",
    "an input without grad": "x = torch.ones(2, 3)\ny = nn.Linear(3, 1)(x)  #<\ntorch.autograd.grad(y.sum(), x)",
    "an array of a graph": "y = torch.ones(3, requires_grad=True).exp()\ny.numpy()  #!",
    "one tensor for an optimizer": "w = torch.ones(3, requires_grad=True)\ntorch.optim.SGD(w, lr=0.1)  #=w",
    "modules for an optimizer": "a, b = nn.Linear(2, 1), nn.Linear(2, 1)\ntorch.optim.SGD([a, b], lr=0.1)  #=[a, b]",
    "a state dict for an optimizer": "a = nn.Linear(2, 1)\ntorch.optim.SGD(a.state_dict(), lr=0.1)  #=a.state_dict()",
    "a product that is no leaf": "z = 0.1 * torch.ones(3, requires_grad=True)  #!\ntorch.optim.SGD([z], lr=0.1)",
    "views that are no leaves": "ps = {k: torch.ones(4, requires_grad=True).view(2, 2) for k in 'ab'}\n"
    "torch.optim.SGD(ps.values(), lr=0.1)  #<",
    "a module for a state": "a, b = nn.Linear(2, 1), nn.Linear(2, 1)\na.load_state_dict(b)  #=b",
    "names with a prefix": "a = nn.Linear(2, 1)\ns = {'module.' + k: v for k, v in a.state_dict().items()}\n"
    "a.load_state_dict(s)  #!",
    "a head of another size": "a, b = nn.Linear(2, 3), nn.Linear(2, 4)\na.load_state_dict(b.state_dict())  #!",
    "a gradient of another dtype": "w = torch.ones(3, requires_grad=True)\nw.grad = torch.ones(3).double()  #!",
    "negative scales": "spread = torch.tensor([-1.0])\ntorch.distributions.Normal(0.0, spread)  #=spread",
    "logits for probabilities": "s = torch.tensor([-1.0, 2.0])\ntorch.distributions.Bernoulli(s)  #!",
    "an inference tensor": "with torch.inference_mode():\n    x = torch.ones(3)\n"
    "w = torch.ones(3, requires_grad=True)\ny = w * x  #<",
    "a jacobian by rows": "x = torch.ones(3, requires_grad=True)\no = x.exp()\nrows = []\n"
    "for i in range(3):\n    rows.append(torch.autograd.grad(o[i], x))  #=torch.autograd.grad(o[i], x)",
    "a derivative in the loss": "x = torch.ones(3, requires_grad=True)\nu = x.exp()\n"
    "d = torch.autograd.grad(u.sum(), x)  #=torch.autograd.grad(u.sum(), x)\n(d[0] + u).sum().backward()",
    "a carried state": "cell = nn.GRU(2, 3)\nh = torch.zeros(1, 1, 3)\nfor _ in range(3):\n"
    "    y, h = cell(torch.ones(4, 1, 2), h)  #<\n    loss = y.pow(2).sum()\n    loss.backward()",
    "a loss made once": "w = torch.ones(3, requires_grad=True)\nloss = w.exp().sum()\nfor _ in range(2):\n"
    "    loss.backward()  #<",
    "two losses with one trunk": "w = torch.ones(3, requires_grad=True)\nh = w.exp()\na, b = h.sum(), h.pow(2).sum()\n"
    "a.backward()  #-\nb.backward()  #!",
    "heads in a loop over a list": "w = torch.ones(3, requires_grad=True)\nh = w.exp()\nlosses = [h.sum(), h.prod()]\n"
    "for one in losses:\n    one.backward()  #!",
    "retained by value": "w = torch.ones(3, requires_grad=True)\nh = w.exp()\nlosses = [h.sum(), h.prod(), h.sum()]\n"
    "for one in losses:\n    one.backward(retain_graph=one != losses[-1])  #!",
    "an argument without grad": "def rows(f, x):\n    y = f(x)  #<\n"
    "    return [torch.autograd.grad(one, x) for one in y]\nx = torch.ones(1)\n"
    "rows(torch.exp, x)\nassert not x.requires_grad",
    "two arguments without grad": "def both(a, b):\n    return torch.autograd.grad(a @ b, (a, b))  #<<\n"
    "both(torch.ones(2), torch.ones(2))",
    "frozen parameters asked about": "net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))\n"
    "net[0].requires_grad_(False)\nps = list(net.parameters())\n"
    "torch.autograd.grad(net(torch.ones(1, 2)).sum(), ps)  #=ps",
    "a scheduler of parameters": "a = nn.Linear(2, 1)\nopt = torch.optim.SGD(a.parameters(), lr=0.1)\n"
    "torch.optim.lr_scheduler.StepLR(a.parameters(), 2)  #!",
    "a result by out=": "w = torch.ones(2, 2, requires_grad=True)\no = torch.ones(2, 2)\ntorch.matmul(w, w, out=o)  #!",
    "an update that makes a new tensor": "w = torch.ones(3, requires_grad=True)\nw.sum().backward()\n"
    "with torch.no_grad():\n    w = w - 0.1 * w.grad  #!\nw.grad.zero_()",
    "an update that is recorded": "w = torch.ones(3, requires_grad=True)\nw.sum().backward()\n"
    "w = w - 0.1 * w.grad  #!\nw.grad.zero_()",
    "a parameter that was converted": "w = torch.ones(3, requires_grad=True).double()  #>\nw.sum().backward()\n"
    "with torch.no_grad():\n    w -= 0.1 * w.grad",
    "states in one tensor": "a, p = torch.tensor(2.0, requires_grad=True), torch.ones(4)\nfor t in range(3):\n"
    "    p[t + 1] = p[t] * a  #!!\np.sum().backward()",
    "keys of a dict": "g = {'a': torch.ones(1, requires_grad=True)}\ntorch.optim.SGD(list(g), lr=0.1)  #=list(g)",
    "max of an item in vmap": "f = lambda w: max(w.item(), 0.1)  #=max(w.item(), 0.1)\ntorch.vmap(f)(torch.ones(3))",
    "a complex loss": "d = torch.fft.rfft(torch.ones(8, requires_grad=True))\nloss = (d ** 2).mean()  #=d ** 2\n"
    "loss.backward()",
    "a gradient taken before": "w = torch.ones(3, requires_grad=True)\nloss = w.exp().sum()\n"
    "torch.autograd.grad(loss, w)  #!\nloss.backward()",
    "half times double": "a, b = torch.ones(2, 2).half(), torch.ones(2, 2).double()\na @ b  #<",
    "two products to optimize": "class F:\n    pass\nf = F()\nf.a = 2 * torch.ones(1, requires_grad=True)\n"
    "f.b = 2 * torch.ones(1, requires_grad=True)\ntorch.optim.SGD([f.a, f.b], lr=0.1)  #<<",
    "item inside vmap": "f = lambda r: r * r.max().item()  #=r.max().item()\ntorch.vmap(f)(torch.ones(2, 3))",
}


def error_of(source, name):
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    error = raised(lambda: exec(compile(source, name, "exec"), {}))
    step = error.__traceback__
    while step.tb_frame.f_code.co_filename != name:
        step = step.tb_next
    return error.with_traceback(step)


def first_statement(fix):
    """Return the first statement of a fix: of alternatives, the one to try first; two lines that belong together."""
    lines = [line for line in fix.splitlines() if not line.startswith("#")]
    body = ast.parse("\n".join(lines)).body
    whole = (
        isinstance(body[0], ast.Assign) and len(body) > 1 and ast.unparse(body[0].targets[0]) in ast.unparse(body[1])
    )
    return "\n".join(ast.unparse(it) for it in body[: 2 if whole else 1])


def with_fix(script, fix, whole):
    out = []
    for line in script.splitlines():
        code, _, mark = line.partition("  #")
        room = code[: len(code) - len(code.lstrip())]
        new = [room + it for it in fix.splitlines()]
        if mark.startswith("!!"):
            out += [room + it for it in whole.splitlines()]
        elif mark.startswith("<<"):
            out += [*(room + it for it in whole.splitlines()), code]
        elif mark.startswith(">"):
            out += [code, *new]
        elif mark.startswith("!"):
            out += new
        elif mark.startswith("<"):
            out += [*new, code]
        elif mark.startswith("="):
            assert mark[1:] in code
            out.append(code.replace(mark[1:], fix))
        elif not mark.startswith("-"):
            out.append(line)
    return HEAD + "\n".join(out) + "\n"


@pytest.mark.parametrize("name", SCRIPTS)
def test_with_its_fix_the_script_runs(name):
    number = list(SCRIPTS).index(name)
    card = explain(error_of(HEAD + SCRIPTS[name] + "\n", f"/tmp/ipykernel_9{number}/0.py"))
    fixed = with_fix(SCRIPTS[name], first_statement(card.fix), card.fix)
    assert "in place of" not in card.fix.partition("\n")[0]
    exec(compile(fixed, f"/tmp/ipykernel_9{number}/1.py", "exec"), {})
