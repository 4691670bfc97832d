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
        __array_ufunc__ = None

        def __init__(self, array, requires_grad=False, grad_fn=None):
            self._array, self.requires_grad, self.grad_fn, self.grad = array, requires_grad, grad_fn, None
            self._hooks = grad_fn.hooks if grad_fn else []

        shape = property(lambda self: np.shape(self._array))
        numpy = lambda self: self._array  # noqa: E731
        detach = lambda self: Var(self._array)  # noqa: E731
        __add__ = __radd__ = lambda self, other: plus(self, of(other))
        __sub__ = lambda self, other: plus(self, times(of(other), of(-1.0)))  # noqa: E731
        __rsub__ = lambda self, other: plus(of(other), times(self, of(-1.0)))  # noqa: E731
        __mul__ = __rmul__ = lambda self, other: times(self, of(other))
        __matmul__ = lambda self, other: dot(self, of(other))  # noqa: E731
        exp, log, relu = (lambda self: exp(self)), (lambda self: log(self)), (lambda self: relu(self))

        def sum(self, axis=None, keepdims=False):
            return total(self, axis, keepdims)

        def reshape(self, *shape):
            return shaped(self, shape[0] if len(shape) == 1 else shape)

        def __getitem__(self, index):
            return picked(self, index)

        def backward(self, gradient=None, retain_graph=None, create_graph=False):
            retain_graph = create_graph if retain_graph is None else retain_graph
            for leaf, found in pull_back(self, gradient, retain_graph, create_graph)[0].values():
                leaf.grad = (
                    Var(np.array(found._array)) if leaf.grad is None and not create_graph else add_to(leaf, found)
                )

        def retain_grad(self):
            if self.grad_fn:
                self.grad_fn.watcher = weakref.ref(self)

        def register_hook(self, hook):
            entry = [hook]  # a list of its own, so that two registrations of one hook are two
            self._hooks.append(entry)
            return types.SimpleNamespace(remove=lambda: self._hooks.remove(entry) if entry in self._hooks else None)

    def add_to(leaf, found):
        return found + 0.0 if leaf.grad is None else leaf.grad + found

    def of(value):
        return value if isinstance(value, Var) else Var(np.asarray(value, dtype=float))

    def made(name, array, pulls):
        """Return a result; `pulls` has for each operand how a gradient is pulled back to it."""
        if not (state["on"] and any(operand.requires_grad for operand, _ in pulls)):
            return Var(array)
        entry = types.SimpleNamespace(name=name, number=next(clock), hooks=[], watcher=None)
        entry.inputs = [(one.grad_fn or one) if one.requires_grad else None for one, _ in pulls]
        entry.pulls = [pull if one.requires_grad else None for one, pull in pulls]
        return Var(array, True, entry)

    def fitted(shape):
        def fit(g):
            while len(g.shape) > len(shape):
                g = g.sum(axis=0)
            for axis, size in enumerate(shape):
                if size == 1 and g.shape[axis] != 1:
                    g = g.sum(axis=axis, keepdims=True)
            return g

        return fit

    def plus(a, b):
        return made("plus", a._array + b._array, [(a, fitted(a.shape)), (b, fitted(b.shape))])

    def times(a, b):
        fit_a, fit_b = fitted(a.shape), fitted(b.shape)
        pulls = [(a, lambda g: fit_a(g * b)), (b, lambda g: fit_b(g * a))]
        return made("times", a._array * b._array, pulls)

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
        shape, ones = a.shape, np.sum(a._array, axis=axis, keepdims=True).shape
        spread = lambda g: plus(shaped(g, ones), of(np.zeros(shape)))  # noqa: E731
        return made("sum", np.sum(a._array, axis=axis, keepdims=keepdims), [(a, spread)])

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

    def pull_back(output, gradient, retain, create, asked=()):
        """Run the entries behind `output`, the last recorded first. Return what leaves got, and `asked` entries."""
        if not output.requires_grad:
            raise RuntimeError("no graph: the result does not require grad")
        if gradient is None and np.size(output._array) != 1:
            raise RuntimeError("only a single number has a gradient to start from; give one")
        start = Var(np.ones(output.shape)) if gradient is None else of(gradient)
        if start.shape != output.shape:
            raise RuntimeError("gradient and result have different shapes")
        root = output.grad_fn or output
        sums, leaves, at_asked, queue = {id(root): (root, start)}, {}, {}, []
        if root is not output:
            queue.append((-root.number, root))
        was, state["on"] = state["on"], create
        try:
            while queue:
                _, entry = heapq.heappop(queue)
                g = hooked(entry.hooks, sums.pop(id(entry))[1])
                if any(entry is one for one in asked):
                    at_asked[id(entry)] = g
                watching = entry.watcher and entry.watcher()
                if watching:
                    watching.grad = g if watching.grad is None else watching.grad + g
                if entry.pulls is None:
                    raise RuntimeError("backward a second time: what this graph saved is freed. Retain the graph.")
                for to, pull in zip(entry.inputs, entry.pulls, strict=True):
                    if to is None or (part := pull(g)) is None:
                        continue
                    if id(to) in sums:
                        part = plus(sums[id(to)][1], part)
                    elif not isinstance(to, Var):
                        heapq.heappush(queue, (-to.number, to))
                    sums[id(to)] = (to, part)
                if not retain:
                    entry.pulls = None
            for key, (leaf, g) in sums.items():
                leaves[key] = (leaf, hooked(leaf._hooks, g))
        finally:
            state["on"] = was
        return leaves, at_asked

    def hooked(hooks, g):
        for (hook,) in list(hooks):
            returned = hook(g)
            g = g if returned is None else returned
        return g

    def grad(output, inputs, gradient=None, retain_graph=None, create_graph=False):
        if any(not one.requires_grad for one in inputs):
            raise RuntimeError("an input requires no gradient")
        retain = create_graph if retain_graph is None else retain_graph
        leaves, asked = pull_back(
            output, gradient, retain, create_graph, [one.grad_fn for one in inputs if one.grad_fn]
        )
        return tuple(
            asked.get(id(one.grad_fn)) if one.grad_fn else leaves.get(id(one), (one, None))[1] for one in inputs
        )

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
        w, b, v, c = parameters = [tensor(array, True) for array in start]
        optimizer, rows = SGD(parameters, rate), []
        starts = range(0, len(images), batch)
        for _ in range(epochs):
            for x, y in ((images[n : n + batch], labels[n : n + batch]) for n in starts):
                scores = relu(of(x) @ w + b) @ v + c
                scores = scores - np.max(scores._array, axis=1)[:, None]
                losses = scores.exp().sum(1).log() - scores[range(len(y)), y]
                optimizer.zero_grad()
                (losses.sum() * (1.0 / len(y))).backward()
                optimizer.step()
            rows.append([np.array(one._array) for one in parameters])
        return rows

    def tensor(array, requires_grad=False):
        return Var(np.array(array, dtype=float), requires_grad)

    return types.SimpleNamespace(tensor=tensor, grad=grad, no_grad=no_grad, Function=Function, SGD=SGD, train=train)
