"""A right engine of integers: a result knows the number of its row in a ledger, and rows count who refers to them.

A pass takes the highest number that waits first.
"""

import heapq
import types
import weakref

import numpy as np

from tests.answers.lesson_11_build_your_own.numbered import (
    AddOp,
    CustomOp,
    ExpOp,
    IndexOp,
    LogOp,
    MatmulOp,
    MultiplyOp,
    ReluOp,
    ReshapeOp,
    SubtractOp,
    SumOp,
)


def numbering():
    """Return a new engine as a namespace. The ledger is in this function's variables."""
    rows = {}  # what is recorded and still referred to, by number
    nodes = weakref.WeakValueDictionary()  # the handles that were asked for, so that a number has one
    now = types.SimpleNamespace(last=0, recording=True)

    def refer(number):
        if number:
            rows[number].uses += 1

    def leave(number):
        """Take a reference back. Rows that nobody refers to any more go at once, however long their chain."""
        waiting = [number] if number else []
        while waiting:
            row = rows[one := waiting.pop()]
            row.uses -= 1
            if not row.uses:
                del rows[one]
                waiting += [to for to in row.inputs if isinstance(to, int)]

    class Node:
        """What `grad_fn` gives: a handle of a row, which refers to it as a tensor does."""

        def __init__(self, number):
            self.number = number
            refer(number)

        def __del__(self):
            leave(self.number)

        name = property(lambda self: type(rows[self.number].op).__name__)
        inputs = property(lambda self: [node_of(to) if isinstance(to, int) else to for to in rows[self.number].inputs])

    def node_of(number):
        node = nodes.get(number)
        if node is None:
            node = nodes[number] = Node(number)
        return node

    class Tensor:
        __array_ufunc__ = None

        def __init__(self, array, needs=False, number=0):
            self.array, self.needs, self.number, self.grad, self.hooks = array, needs, number, None, []
            refer(number)

        def __del__(self):
            leave(self.number)

        shape = property(lambda self: self.array.shape)
        requires_grad = property(lambda self: self.needs)
        grad_fn = property(lambda self: node_of(self.number) if self.number else None)
        lifted = staticmethod(lambda value: lift(value))

        def numpy(self):
            return self.array

        def detach(self):
            return Tensor(self.array)

        def by(self, op):
            return done(op, self)

        def __add__(self, other):
            return done(AddOp(), self, other)

        def __sub__(self, other):
            return done(SubtractOp(), self, other)

        def __rsub__(self, other):
            return done(SubtractOp(), other, self)

        def __mul__(self, other):
            return done(MultiplyOp(), self, other)

        def __matmul__(self, other):
            return done(MatmulOp(), self, other)

        __radd__, __rmul__ = __add__, __mul__

        def exp(self):
            return done(ExpOp(), self)

        def log(self):
            return done(LogOp(), self)

        def relu(self):
            return done(ReluOp(), self)

        def sum(self, axis=None, keepdims=False):
            return done(SumOp(axis, keepdims), self)

        def reshape(self, shape):
            return done(ReshapeOp(shape), self)

        def __getitem__(self, index):
            return done(IndexOp(index), self)

        def retain_grad(self):
            if self.number:
                rows[self.number].retained = weakref.ref(self)

        def register_hook(self, hook):
            hooks, entry = (rows[self.number] if self.number else self).hooks, (object(), hook)
            hooks.append(entry)
            return types.SimpleNamespace(remove=lambda: hooks.remove(entry) if entry in hooks else None)

        def backward(self, gradient=None, retain_graph=False):
            for leaf, g in run(self, gradient, retain_graph, False)[1].values():
                leaf.grad = Tensor(g.array.copy() if leaf.grad is None else leaf.grad.array + g.array)

    def lift(value):
        return value if isinstance(value, Tensor) else Tensor(np.asarray(value, dtype=np.float64))

    def done(op, *given):
        """Run an operation forward, and write a row where a gradient will be needed."""
        operands = [lift(one) for one in given]
        op.shapes, op.needs = [one.shape for one in operands], [one.needs for one in operands]
        array = np.asarray(op.forward(*(one.array for one in operands)), dtype=np.float64)
        if not now.recording or not any(op.needs):
            return Tensor(array)
        now.last += 1
        row = rows[now.last] = types.SimpleNamespace(op=op, uses=0, hooks=[], retained=None)
        row.inputs = [(one.number or one) if one.needs else None for one in operands]
        for to in row.inputs:
            refer(to if isinstance(to, int) else 0)
        # A number stands for what has a row: so one that keeps its own result is no circle.
        kept = [one if one.needs and not one.number else (one.array, one.number) for one in operands]
        kept.append((array, now.last))
        row.saved = [one if keep else None for one, keep in zip(kept, op.keeps(*op.needs), strict=False)]
        return Tensor(array, True, now.last)

    def unpacked(saved):
        if not isinstance(saved, tuple):
            return saved
        array, number = saved
        return Tensor(array, number > 0, number)

    def begun(output, gradient):
        if not output.needs:
            raise RuntimeError("nothing was recorded for this tensor: it needs no gradient")
        if gradient is None and output.array.size != 1:
            raise RuntimeError(f"a gradient belongs to one number, and this result has {output.array.size}")
        start = lift(np.ones(output.shape) if gradient is None else gradient)
        if start.shape != output.shape:
            raise RuntimeError(f"a gradient of shape {start.shape} for a result of shape {output.shape}")
        return start

    def heard(place, g):
        for _, hook in list(place.hooks):
            changed = hook(g)
            g = g if changed is None else changed
        return g

    def run(output, gradient, retain, create):
        """Return what arrived at rows, by number, and at leaves, by id (the leaf, its gradient)."""
        at_rows, at_leaves, heap = {}, {}, []
        arrive(output.number or output, begun(output, gradient), at_rows, at_leaves, heap)
        before, now.recording = now.recording, create
        try:
            while heap:
                number = -heapq.heappop(heap)
                row = rows[number]
                g = at_rows[number] = heard(row, at_rows[number])
                holder = row.retained and row.retained()
                if holder is not None:
                    holder.grad = g if holder.grad is None else holder.grad + g
                if row.saved is None:
                    raise RuntimeError("a pass has been here already and freed the row; retain_graph=True keeps it")
                parts = row.op.vjp(g, *map(unpacked, row.saved))
                for to, part in zip(row.inputs, parts, strict=True):
                    if to is not None and part is not None:
                        arrive(to, part, at_rows, at_leaves, heap)
                if not retain:
                    row.saved = None
            return at_rows, {key: (leaf, heard(leaf, g)) for key, (leaf, g) in at_leaves.items()}
        finally:
            now.recording = before

    def arrive(to, g, at_rows, at_leaves, heap):
        if not isinstance(to, int):
            at_leaves[id(to)] = to, at_leaves[id(to)][1] + g if id(to) in at_leaves else g
        elif to in at_rows:
            at_rows[to] = at_rows[to] + g
        else:
            at_rows[to] = g
            heapq.heappush(heap, -to)

    def tensor(array, requires_grad=False):
        return Tensor(np.array(array, dtype=np.float64), requires_grad)

    def grad(output, inputs, gradient=None, retain_graph=None, create_graph=False):
        retain = create_graph if retain_graph is None else retain_graph
        at_rows, at_leaves = run(output, gradient, retain, create_graph)
        return [at_rows.get(one.number) if one.number else at_leaves.get(id(one), (0, None))[1] for one in inputs]

    class Off:
        def __enter__(self):
            self.before, now.recording = now.recording, False

        def __exit__(self, *raised):
            now.recording = self.before

    class Function:
        @classmethod
        def apply(cls, *given):
            is_tensor = [isinstance(one, Tensor) for one in given]
            places = [one if own else Tensor(np.zeros(())) for one, own in zip(given, is_tensor, strict=True)]
            return done(
                CustomOp(cls, [None if own else one for one, own in zip(given, is_tensor, strict=True)], is_tensor),
                *places,
            )

    class SGD:
        def __init__(self, parameters, lr):
            self.parameters, self.lr = list(parameters), lr

        def step(self):
            for one in self.parameters:
                if one.grad is not None:
                    one.array -= self.lr * one.grad.array

        def zero_grad(self):
            for one in self.parameters:
                one.grad = None

    def train(images, labels, start, epochs, rate, batch):
        w1, b1, w2, b2 = parameters = [tensor(array, requires_grad=True) for array in start]
        optimizer, after = SGD(parameters, rate), []
        for _ in range(epochs):
            for n in range(0, len(images), batch):
                y = labels[n : n + batch]
                scores = (tensor(images[n : n + batch]) @ w1 + b1).relu() @ w2 + b2
                losses = scores.exp().sum(axis=1).log() - scores[np.arange(len(y)), y]
                optimizer.zero_grad()
                (losses.sum() * (1.0 / len(y))).backward()
                optimizer.step()
            after.append([one.array.copy() for one in parameters])
        return after

    return types.SimpleNamespace(tensor=tensor, grad=grad, no_grad=Off, Function=Function, SGD=SGD, train=train)
