"""A right engine without a rule: each operation is a generator that yields its result, and then waits for gradients.

It has all stages but create_graph, hooks and custom functions.
"""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

ON = [True]


class Step:
    def __init__(self, name, inputs, make):
        self.name, self.inputs, self.make, self.spent = name, inputs, make, False


class T:
    __array_ufunc__ = None

    def __init__(self, a, requires_grad=False, grad_fn=None):
        self.a = a
        self.requires_grad = requires_grad
        self.grad_fn = grad_fn
        self.grad = None

    @property
    def shape(self):
        return self.a.shape

    def numpy(self):
        return self.a[()]  # of a single number, NumPy's number

    def detach(self):
        return T(self.a)

    def backward(self, gradient=None, retain_graph=False):
        run(self, gradient, retain_graph)


def node_of(t):
    return None if not t.requires_grad else (t.grad_fn if t.grad_fn is not None else t)


def lift(x):
    return x if isinstance(x, T) else T(np.asarray(x, dtype=np.float64))


def fit(g, shape):
    lead = g.ndim - len(shape)
    g = g.sum(axis=tuple(range(lead)))
    return g.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True) if 1 in shape else g


def op(f):
    """f(needs, *arrays, **kw) is a generator: first yields the result, then for every (yield) of a gradient its parts."""

    def call(*args, **kw):
        ts = [lift(x) for x in args]
        ins = [node_of(t) for t in ts] if ON[0] else [None] * len(ts)
        needs = [i is not None for i in ins]
        gen = f(needs, *[t.a for t in ts], **kw)
        out = np.asarray(next(gen))
        del ts
        if not any(needs):
            gen.close()
            return T(out)
        next(gen)  # waits for a gradient
        return T(out, True, Step(f.__name__, tuple(ins), gen))

    return call


def loop(rule):
    while True:
        box = yield
        box[:] = rule(box.pop())


@op
def add(needs, a, b):
    sa, sb = a.shape, b.shape
    yield a + b
    del a, b
    yield from loop(lambda g: (fit(g, sa), fit(g, sb)))


@op
def sub(needs, a, b):
    sa, sb = a.shape, b.shape
    yield a - b
    del a, b
    yield from loop(lambda g: (fit(g, sa), fit(-g, sb)))


@op
def mul(needs, a, b):
    sa, sb = a.shape, b.shape
    yield a * b
    if not needs[0]:
        b = None
    if not needs[1]:
        a = None
    yield from loop(lambda g: (None if b is None else fit(g * b, sa), None if a is None else fit(g * a, sb)))


@op
def matmul(needs, a, b):
    yield a @ b
    if not needs[0]:
        b = None
    if not needs[1]:
        a = None
    yield from loop(lambda g: (None if b is None else g @ b.T, None if a is None else a.T @ g))


@op
def exp(needs, a):
    out = np.exp(a)
    yield out
    del a
    yield from loop(lambda g: (g * out,))


@op
def log(needs, a):
    yield np.log(a)
    yield from loop(lambda g: (g / a,))


@op
def relu(needs, a):
    up = a > 0
    yield np.where(up, a, 0.0)
    del a
    yield from loop(lambda g: (np.where(up, g, 0.0),))


@op
def total(needs, a, axis=None, keepdims=False):
    shape = a.shape
    yield a.sum(axis=axis, keepdims=keepdims)
    del a
    yield from loop(
        lambda g: (np.broadcast_to(g if keepdims or axis is None else np.expand_dims(g, axis), shape).copy(),)
    )


@op
def reshape(needs, a, shape):
    old = a.shape
    yield a.reshape(shape)
    del a
    yield from loop(lambda g: (g.reshape(old),))


@op
def index(needs, a, at):
    shape = a.shape
    yield a[at]
    del a

    def rule(g):
        z = np.zeros(shape)
        np.add.at(z, at, g)
        return (z,)

    yield from loop(rule)


T.__add__ = T.__radd__ = add
T.__sub__ = sub
T.__rsub__ = lambda self, o: sub(o, self)
T.__mul__ = T.__rmul__ = mul
T.__matmul__ = matmul
T.exp, T.log, T.relu = exp, log, relu
T.sum = lambda self, axis=None, keepdims=False: total(self, axis=axis, keepdims=keepdims)
T.reshape = lambda self, shape: reshape(self, shape=shape)
T.__getitem__ = lambda self, at: index(self, at=at)


def run(t, gradient, keep):
    if t.grad_fn is None:
        raise RuntimeError("no graph here")
    if gradient is None:
        if t.a.size != 1:
            raise RuntimeError("give a gradient")
        gradient = T(np.ones(t.shape))
    # depth-first topological order, by generators in place of recursion
    order, seen, stack = [], {t.grad_fn}, [(t.grad_fn, iter(t.grad_fn.inputs))]
    while stack:
        n, it = stack[-1]
        for i in it:
            if isinstance(i, Step) and i not in seen:
                seen.add(i)
                stack.append((i, iter(i.inputs)))
                break
        else:
            order.append(n)
            stack.pop()
    got = {t.grad_fn: gradient.a}
    for n in reversed(order):
        g = got.pop(n)
        if n.make is None:
            raise RuntimeError("this graph was freed by a pass before; a second one needs retain_graph")
        box = [g]
        n.make.send(box)
        parts = tuple(box)
        box.clear()
        if not keep:
            n.make = None
        for i, p in zip(n.inputs, parts, strict=True):
            if i is not None:
                got[i] = got[i] + p if i in got else p
    for leaf, g in got.items():
        leaf.grad = T(np.array(g)) if leaf.grad is None else T(leaf.grad.a + g)


@contextmanager
def no_grad():
    was = ON[0]
    ON[0] = False
    try:
        yield
    finally:
        ON[0] = was


class SGD:
    def __init__(self, ps, lr):
        self.ps, self.lr = [*ps], lr

    def step(self):
        for p in self.ps:
            if p.grad is not None:
                np.subtract(p.a, self.lr * p.grad.a, out=p.a)

    def zero_grad(self):
        for p in self.ps:
            p.grad = None if p.grad is None else T(np.zeros_like(p.a))


def train(images, labels, start, epochs, rate, batch):
    ps = [tensor(a, True) for a in start]
    w, b, v, c = ps
    o = SGD(ps, rate)
    res = []
    for _ in range(epochs):
        for n in range(0, len(images), batch):
            y = labels[n : n + batch]
            s = (lift(images[n : n + batch]) @ w + b).relu() @ v + c
            o.zero_grad()
            ((s.exp().sum(1).log() - s[np.arange(len(y)), y]).sum() * (1 / len(y))).backward()
            o.step()
        res.append([p.a.copy() for p in ps])
    return res


def tensor(array, requires_grad=False):
    return T(np.array(array, dtype=np.float64), requires_grad)


def generating():
    """Return the engine."""
    return SimpleNamespace(tensor=tensor, no_grad=no_grad, SGD=SGD, train=train)
