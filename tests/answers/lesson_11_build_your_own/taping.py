"""Another right engine: closures that pull a gradient back, run in the reverse order of their recording."""

import contextlib
import heapq
import itertools
import types
import weakref

import numpy as np


def taping():
    """Return a new engine as a namespace of functions. Its state is in this function's variables."""
    clock = itertools.count()
    state = {"on": True}

    class Var:
        __array_ufunc__ = __bool__ = None  # no tensor is true or false
        grad = None

        def __init__(self, array, requires_grad=False, grad_fn=None):
            hooks = grad_fn.hooks if grad_fn else []
            self._array, self.requires_grad, self.grad_fn, self._hooks = array, requires_grad, grad_fn, hooks

        @property
        def shape(self):
            return np.shape(self._array)

        def numpy(self):
            return self._array

        def detach(self):
            return Var(self._array)

        def __add__(self, other):
            return plus(self, of(other))

        def __sub__(self, other):
            return plus(self, times(of(other), of(-1.0)))

        def __rsub__(self, other):
            return plus(of(other), times(self, of(-1.0)))

        def __mul__(self, other):
            return times(self, of(other))

        def __matmul__(self, other):
            return dot(self, of(other))

        __radd__, __rmul__ = __add__, __mul__

        def exp(self):
            return exp(self)

        def log(self):
            return log(self)

        def relu(self):
            return relu(self)

        def sum(self, axis=None, keepdims=False):
            return total(self, axis, keepdims)

        def reshape(self, shape):
            return shaped(self, shape)

        def __getitem__(self, index):
            return picked(self, index)

        def backward(self, gradient=None, retain_graph=False):
            leaves, sums = pull_back(self, gradient, retain_graph, False)
            for key, leaf in leaves.items():
                leaf.grad = Var(np.array(sums[key]._array)) if leaf.grad is None else leaf.grad + sums[key]

        def retain_grad(self):
            if self.grad_fn:
                self.grad_fn.watcher = weakref.ref(self)

        def register_hook(self, hook):
            entry = [hook]  # a list of its own, so that two registrations of one hook are two
            self._hooks.append(entry)
            return types.SimpleNamespace(remove=lambda: self._hooks.remove(entry))

    def of(value):
        return value if isinstance(value, Var) else Var(np.asarray(value, dtype=float))

    def made(name, array, pulls):
        """Return a result; `pulls` has for each operand how a gradient is pulled back to it."""
        if not (state["on"] and any(operand.requires_grad for operand, _ in pulls)):
            return Var(array)
        entry = types.SimpleNamespace(
            name=name,
            place=-next(clock),  # the later, the smaller
            inputs=[(one.grad_fn or one) if one.requires_grad else None for one, _ in pulls],
            pulls=[pull if one.requires_grad else None for one, pull in pulls],
            hooks=[],
            watcher=None,
        )
        return Var(array, True, entry)

    def fitted(g, shape):
        while len(g.shape) > len(shape):
            g = g.sum(axis=0)
        for axis, size in enumerate(shape):
            if size == 1:
                g = g.sum(axis=axis, keepdims=True)
        return g

    def scaled(by, shape):
        return lambda g: fitted(g * by, shape)

    def same(shape):
        return lambda g: fitted(g, shape)

    def plus(a, b):
        return made("plus", a._array + b._array, [(a, same(a.shape)), (b, same(b.shape))])

    def times(a, b):
        return made("times", a._array * b._array, [(a, scaled(b, a.shape)), (b, scaled(a, b.shape))])

    def dot(a, b):
        pulls = [(a, lambda g: dot(g, flipped(b))), (b, lambda g: dot(flipped(a), g))]
        return made("dot", a._array @ b._array, pulls)

    def flipped(a):
        return made("flipped", a._array.T, [(a, flipped)])

    def exp(a):
        return made("exp", np.exp(a._array), [(a, lambda g: g * exp(a))])

    def log(a):
        return made("log", np.log(a._array), [(a, lambda g: g * one_over(a))])

    def one_over(a):
        return made("one over", 1 / a._array, [(a, lambda g: g * one_over(a) * one_over(a) * -1.0)])

    def relu(a):
        mask = np.where(a._array > 0, 1.0, 0.0)
        return made("relu", a._array * mask, [(a, lambda g: g * mask)])

    def total(a, axis, keepdims):
        array = np.sum(a._array, axis=axis, keepdims=True)
        ones, shape = array.shape, a.shape
        array = array if keepdims else np.squeeze(array, axis)
        return made("sum", array, [(a, lambda g: np.ones(shape) * shaped(g, ones))])

    def shaped(a, shape):
        old = a.shape
        return made("reshape", np.reshape(a._array, shape), [(a, lambda g: shaped(g, old))])

    def picked(a, index):
        shape = a.shape
        return made("pick", np.array(a._array[index]), [(a, lambda g: put(g, index, shape))])

    def put(a, index, shape):
        array = np.zeros(shape)
        np.add.at(array, index, a._array)
        return made("put", array, [(a, lambda g: picked(g, index))])

    def pull_back(output, gradient, retain, create):
        """Run the entries behind `output`, the last recorded first. Return leaves, and all that arrived, by id."""
        queue, leaves, sums = started(output, gradient)
        was, state["on"] = state["on"], create
        try:
            while queue:
                _, entry = heapq.heappop(queue)
                g = sums[id(entry)] = hooked(entry.hooks, sums[id(entry)], entry.watcher)
                for to, pull in zip(entry.inputs, unfreed(entry), strict=True):
                    if to is None or (part := pull(g)) is None:
                        continue
                    if id(to) in sums:
                        part = plus(sums[id(to)], part)
                    elif isinstance(to, Var):
                        leaves[id(to)] = to
                    else:
                        heapq.heappush(queue, (to.place, to))
                    sums[id(to)] = part
                if not retain:
                    entry.pulls = None
            for key, leaf in leaves.items():
                sums[key] = hooked(leaf._hooks, sums[key])
        finally:
            state["on"] = was
        return leaves, sums

    def started(output, gradient):
        entry = output.grad_fn
        if not entry or (gradient is None and np.size(output._array) != 1):
            raise RuntimeError("a pass begins at a result with a graph: at one number, or with a gradient")
        return [(entry.place, entry)], {}, {id(entry): Var(np.ones(output.shape)) if gradient is None else of(gradient)}

    def unfreed(entry):
        if not entry.pulls:
            raise RuntimeError("backward a second time: what this graph saved is freed. Retain the graph.")
        return entry.pulls

    def hooked(hooks, g, watcher=None):
        for (hook,) in list(hooks):
            returned = hook(g)
            g = g if returned is None else returned
        if watcher and watcher() is not None:
            watcher().grad = g
        return g

    def grad(output, inputs, gradient=None, retain_graph=None, create_graph=False):
        retain = create_graph if retain_graph is None else retain_graph
        _, sums = pull_back(output, gradient, retain, create_graph)
        return tuple(sums.get(id(one.grad_fn or one)) for one in inputs)

    @contextlib.contextmanager
    def no_grad():
        was, state["on"] = state["on"], False
        try:
            yield
        finally:
            state["on"] = was

    class Context:
        saved_tensors = ()

        def save_for_backward(self, *arrays):
            self.saved_tensors = arrays

    class Function:
        @classmethod
        def apply(cls, *given):
            ctx = Context()
            ctx.needs_input_grad = tuple(isinstance(one, Var) and one.requires_grad for one in given)
            array = cls.forward(ctx, *(one._array if isinstance(one, Var) else one for one in given))
            answers = {}

            def pull(position):
                def pulled(g):
                    if answers.get("to") is not g:  # the first operand that asks has backward run
                        parts = cls.backward(ctx, g._array)
                        parts = parts if isinstance(parts, tuple | list) else (parts,)
                        if len(parts) != len(given):
                            raise RuntimeError(f"{len(parts)} gradients came back for {len(given)} inputs")
                        answers.update(to=g, parts=parts)
                    part = answers["parts"][position]
                    return None if part is None else of(part)

                return pulled

            pulls = [(one if isinstance(one, Var) else Var(None), pull(n)) for n, one in enumerate(given)]
            return made(cls.__name__, np.asarray(array, dtype=float), pulls)

    def SGD(parameters, lr):
        parameters = tuple(parameters)

        def step():
            for one in parameters:
                if one.grad is not None:
                    one._array[...] = one._array - lr * one.grad._array

        def zero_grad():
            for one in parameters:
                one.grad = None

        return types.SimpleNamespace(step=step, zero_grad=zero_grad)

    def train(images, labels, start, epochs, rate, batch):
        parameters, rows = [tensor(array, True) for array in start], []
        optimizer = SGD(parameters, rate)
        for _ in range(epochs):
            for n in range(0, len(images), batch):
                optimizer.zero_grad()
                loss(images[n : n + batch], labels[n : n + batch], *parameters).backward()
                optimizer.step()
            rows.append([np.array(one._array) for one in parameters])
        return rows

    def loss(x, y, w, b, v, c):
        scores = relu(of(x) @ w + b) @ v + c
        return (scores.exp().sum(1).log() - scores[range(len(y)), y]).sum() * (1.0 / len(y))

    def tensor(array, requires_grad=False):
        return Var(np.array(array, dtype=float), requires_grad)

    return types.SimpleNamespace(tensor=tensor, grad=grad, no_grad=no_grad, Function=Function, SGD=SGD, train=train)
