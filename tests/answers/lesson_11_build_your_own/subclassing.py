"""A right engine whose tensors are NumPy arrays themselves, by `__array_ufunc__`, with a class for each operation.

It has the stages up to grad_and_sgd.
"""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

REC = SimpleNamespace(on=True)


class Tensor(np.ndarray):
    def __new__(cls, array, requires_grad=False, op=None):
        self = np.asarray(array, dtype=np.float64).view(cls)
        self.requires_grad, self.op, self.grad = requires_grad, op, None
        return self

    def __array_finalize__(self, other):
        self.requires_grad, self.op, self.grad = False, None, None

    grad_fn = property(lambda self: self.op)

    def numpy(self):
        return self.view(np.ndarray)

    def __array_ufunc__(self, ufunc, method, *ins, out=None, **kw):
        if out is not None:
            raise TypeError("no writing in place")
        if method != "__call__":
            raise TypeError(method)
        return OPS[ufunc](*ins)

    def __setitem__(self, *a):
        raise TypeError("no writing in place")

    def __iadd__(self, o):
        return self + o

    def exp(self):
        return Exp(self)

    def log(self):
        return Log(self)

    def relu(self):
        return Relu(self)

    def sum(self, axis=None, keepdims=False):
        return Sum(self, axis=axis, keepdims=keepdims)

    def reshape(self, shape):
        return Reshape(self, shape=shape)

    def __getitem__(self, at):
        return Index(self, at=at)

    def detach(self):
        return Tensor(self.numpy())

    def __hash__(self):
        return id(self)

    def __eq__(self, o):
        return self is o

    def backward(self, gradient=None, retain_graph=False):
        for place, g in walk(self, gradient, retain_graph, False).values():
            if isinstance(place, Tensor):
                place.grad = Tensor(g.numpy() + (0.0 if place.grad is None else place.grad.numpy()))


def raw(x):
    return x.numpy() if isinstance(x, Tensor) else np.asarray(x, dtype=np.float64)


class Op:
    kept = ()

    def __new__(cls, *ins, **kw):
        self = object.__new__(cls)
        ins = [x if isinstance(x, Tensor) else Tensor(x) for x in ins]
        self.needs = [REC.on and x.requires_grad for x in ins]
        self.shapes = [x.shape for x in ins]
        out = np.asarray(self.forward(*ins, **kw))
        if not any(self.needs):
            return Tensor(out)
        self.inputs = [
            None if not n else (x.op if x.op is not None else x) for x, n in zip(ins, self.needs, strict=True)
        ]
        self.name = cls.__name__
        return Tensor(out, True, self)

    def own(self):
        return Tensor(self.kept[0], True, self)


def fit(g, shape):
    while g.ndim > len(shape):
        g = g.sum(axis=0)
    for i, n in enumerate(shape):
        if n == 1 and g.shape[i] > 1:
            g = g.sum(axis=i, keepdims=True)
    return g


class Add(Op):
    def forward(self, a, b):
        return raw(a) + raw(b)

    def back(self, g):
        return [fit(g, s) for s in self.shapes]


class Sub(Op):
    def forward(self, a, b):
        return raw(a) - raw(b)

    def back(self, g):
        return [fit(g, self.shapes[0]), fit(g * -1.0, self.shapes[1])]


class Mul(Op):
    def forward(self, a, b):
        self.kept = (a if self.needs[1] else None, b if self.needs[0] else None)
        return raw(a) * raw(b)

    def back(self, g):
        a, b = self.kept
        return [None if b is None else fit(g * b, self.shapes[0]), None if a is None else fit(g * a, self.shapes[1])]


class MatMul(Op):
    def forward(self, a, b):
        self.kept = (a if self.needs[1] else None, b if self.needs[0] else None)
        return raw(a) @ raw(b)

    def back(self, g):
        a, b = self.kept
        return [None if b is None else g @ Turn(b), None if a is None else Turn(a) @ g]


class Turn(Op):
    def forward(self, a):
        return raw(a).T

    def back(self, g):
        return [Turn(g)]


class Exp(Op):
    def forward(self, a):
        self.kept = (np.exp(raw(a)),)
        return self.kept[0]

    def back(self, g):
        return [g * self.own()]


class Inv(Op):
    def forward(self, a):
        self.kept = (1.0 / raw(a),)
        return self.kept[0]

    def back(self, g):
        return [g * self.own() * self.own() * -1.0]


class Log(Op):
    def forward(self, a):
        self.kept = (a,)
        return np.log(raw(a))

    def back(self, g):
        return [g * Inv(self.kept[0])]


class Relu(Op):
    def forward(self, a):
        self.kept = (raw(a) > 0,)
        return raw(a) * self.kept[0]

    def back(self, g):
        return [g * Tensor(self.kept[0])]


class Sum(Op):
    def forward(self, a, axis, keepdims):
        self.one = raw(a).sum(axis=axis, keepdims=True).shape
        return raw(a).sum(axis=axis, keepdims=keepdims)

    def back(self, g):
        return [g.reshape(self.one) + np.zeros(self.shapes[0])]


class Reshape(Op):
    def forward(self, a, shape):
        return raw(a).reshape(shape)

    def back(self, g):
        return [g.reshape(self.shapes[0])]


class Index(Op):
    def forward(self, a, at):
        self.at = at
        return raw(a)[at].copy()

    def back(self, g):
        return [Put(g, at=self.at, shape=self.shapes[0])]


class Put(Op):
    def forward(self, a, at, shape):
        self.at = at
        z = np.zeros(shape)
        np.add.at(z, at, raw(a))
        return z

    def back(self, g):
        return [g[self.at]]


OPS = {np.add: Add, np.subtract: Sub, np.multiply: Mul, np.matmul: MatMul, np.exp: Exp, np.log: Log}


def walk(t, gradient, keep, create):
    if t.op is None:
        raise RuntimeError("no graph")
    if gradient is None:
        if t.size != 1:
            raise RuntimeError("which gradient?")
        gradient = Tensor(np.ones(t.shape))
    order, seen, stack = [], {id(t.op)}, [(t.op, 0)]
    while stack:
        op, k = stack.pop()
        if k < len(op.inputs):
            stack.append((op, k + 1))
            to = op.inputs[k]
            if isinstance(to, Op) and id(to) not in seen:
                seen.add(id(to))
                stack.append((to, 0))
        else:
            order.append(op)
    got = {id(t.op): (t.op, gradient)}
    was, REC.on = REC.on, create
    try:
        for op in reversed(order):
            g = got[id(op)][1]
            if op.kept is None:
                raise RuntimeError("backward again, and the graph is freed")
            for to, p in zip(op.inputs, op.back(g), strict=True):
                if to is not None:
                    got[id(to)] = (to, got[id(to)][1] + p if id(to) in got else p)
            if not keep:
                op.kept = None
    finally:
        REC.on = was
    return got


def grad(output, inputs, gradient=None, retain_graph=None, create_graph=False):
    got = walk(output, gradient, create_graph if retain_graph is None else retain_graph, create_graph)
    return [got.get(id(x.op if x.op is not None else x), (0, None))[1] for x in inputs]


@contextmanager
def no_grad():
    was, REC.on = REC.on, False
    try:
        yield
    finally:
        REC.on = was


class SGD:
    def __init__(self, ps, lr):
        self.ps, self.lr = list(ps), lr

    def step(self):
        for p in self.ps:
            if p.grad is not None:
                p.numpy()[...] -= self.lr * p.grad.numpy()

    def zero_grad(self):
        for p in self.ps:
            p.grad = None


def tensor(array, requires_grad=False):
    return Tensor(np.array(array, dtype=np.float64), requires_grad)


def subclassing():
    """Return the engine."""
    return SimpleNamespace(tensor=tensor, grad=grad, no_grad=no_grad, SGD=SGD)
