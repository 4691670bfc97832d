"""A right engine: classes of tensors and nodes, and a pass that counts what each node waits for.

What wrong ideas differ in is a method of its own, so that a wrong engine is a subclass with one method changed.
"""

import weakref

import numpy as np

from tests.answers.lesson_11_build_your_own.counted import CountedNode, CountedTensor
from tests.answers.lesson_11_build_your_own.handed_out import (
    CountedFunction,
    CountedHandle,
    CountedNoGrad,
    CountedSGD,
)


class Counting:
    """The engine. `grad`, `backward` and what they call make one pass; the rest records."""

    Tensor = CountedTensor
    recording = True

    def __init__(self):
        self.Function = type("Function", (CountedFunction,), {"engine": self})

    def tensor(self, array, requires_grad=False):
        return self.Tensor(self, np.array(array, dtype=np.float64), requires_grad)

    def lift(self, value):
        return value if isinstance(value, CountedTensor) else self.Tensor(self, np.asarray(value, dtype=np.float64))

    # Recording

    def needs(self, *operands):
        return self.recording and any(operand.requires_grad for operand in operands)

    def record(self, name, array, operands, kept, rule):
        if not self.needs(*operands):
            return self.Tensor(self, array)
        node = CountedNode(name, tuple(self.place(operand) for operand in operands), kept, rule)
        return self.Tensor(self, array, True, node)

    def place(self, tensor):
        return (tensor.grad_fn or tensor) if tensor.requires_grad else None

    def add(self, a, b):
        def rule(node, g):
            return self.reduced(g, a_shape), self.reduced(g, b_shape)

        a_shape, b_shape = a.shape, b.shape
        return self.record("add", a.array + b.array, (a, b), (), rule)

    def subtract(self, a, b):
        def rule(node, g):
            return self.reduced(g, a_shape), self.reduced(g * -1.0, b_shape)

        a_shape, b_shape = a.shape, b.shape
        return self.record("sub", a.array - b.array, (a, b), (), rule)

    def multiply(self, a, b):
        def rule(node, g):
            a, b = (self.unpacked(node, one) for one in node.kept)
            for_a = None if b is None else self.reduced(g * b, a_shape)
            return for_a, None if a is None else self.reduced(g * a, b_shape)

        a_shape, b_shape = a.shape, b.shape
        return self.record("mul", a.array * b.array, (a, b), self.both(a, b), rule)

    def matmul(self, a, b):
        def rule(node, g):
            a, b = (self.unpacked(node, one) for one in node.kept)
            return None if b is None else g @ self.turned(b), None if a is None else self.turned(a) @ g

        return self.record("matmul", a.array @ b.array, (a, b), self.both(a, b), rule)

    def both(self, a, b):
        """Return of two factors those that the other one's gradient needs."""
        return (a if b.requires_grad else None), (b if a.requires_grad else None)

    def exp(self, a):
        array = np.asarray(np.exp(a.array))
        return self.record("exp", array, (a,), (array,), lambda node, g: (g * self.unpacked(node, node.kept[0]),))

    def log(self, a):
        return self.record("log", np.log(a.array), (a,), (a,), lambda node, g: (g * self.inverse(*node.kept),))

    def inverse(self, a):
        def rule(node, g):
            y = self.unpacked(node, node.kept[0])
            return (g * y * y * -1.0,)

        array = np.asarray(1.0 / a.array)
        return self.record("inverse", array, (a,), (array,), rule)

    def relu(self, a):
        array = np.maximum(a.array, 0.0)
        return self.record("relu", array, (a,), (array,), lambda node, g: (g * (node.kept[0] > 0.0),))

    def sum(self, a, axis, keepdims):
        array = a.array.sum(axis=axis, keepdims=True)
        kept, shape = array.shape, a.shape
        array = array if keepdims else np.squeeze(array, axis)
        return self.record("sum", array, (a,), (), lambda node, g: (self.spread(g, kept, shape),))

    def spread(self, g, kept, shape):
        return np.ones(shape) * g.reshape(kept)

    def reshape(self, a, shape):
        old = a.shape
        return self.record("reshape", a.array.reshape(shape), (a,), (), lambda node, g: (g.reshape(old),))

    def turned(self, a):
        return self.record("turn", a.array.T, (a,), (), lambda node, g: (self.turned(g),))

    def pick(self, a, index):
        shape = a.shape
        return self.record(
            "index", np.asarray(a.array[index]), (a,), (), lambda node, g: (self.scatter(g, index, shape),)
        )

    def scatter(self, a, index, shape):
        array = np.zeros(shape)
        np.add.at(array, index, a.array)
        return self.record("scatter", array, (a,), (), lambda node, g: (g[index],))

    def reduced(self, g, shape):
        """Return a gradient, summed over what broadcasting had repeated."""
        if g.shape == shape:
            return g
        extra = len(g.shape) - len(shape)
        axes = tuple(n for n in range(len(g.shape)) if n < extra or shape[n - extra] == 1)
        return g.sum(axis=axes).reshape(shape)

    def unpacked(self, node, kept):
        """Return what a node kept: an input as it is, its own result with the node as its maker."""
        return self.Tensor(self, kept, True, node) if isinstance(kept, np.ndarray) else kept

    # One pass

    def backward(self, output, gradient, retain_graph):
        for leaf, g in self.run(output, gradient, retain_graph, False).items():
            if isinstance(leaf, CountedTensor):
                self.accumulate(leaf, g)

    def accumulate(self, tensor, g):
        tensor.grad = self.fresh(g) if tensor.grad is None else tensor.grad + g

    def fresh(self, g):
        return g + 0.0  # memory of its own

    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        keep = create_graph if retain_graph is None else retain_graph
        found = self.run(output, gradient, keep, create_graph)
        return [found.get(self.place(tensor)) for tensor in inputs]

    def run(self, output, gradient, keep, create):
        if not output.requires_grad:
            raise RuntimeError("this tensor does not require grad: there is no graph behind it")
        before, self.recording = self.recording, create
        try:
            return self.passed(self.place(output), self.first(output, gradient), keep)
        finally:
            self.recording = before

    def first(self, output, gradient):
        if gradient is None and output.array.size != 1:
            raise RuntimeError(f"a result of shape {output.shape} needs a gradient to start from")
        return self.lift(np.ones(output.shape) if gradient is None else gradient)

    def passed(self, root, gradient, keep):
        """Run each node once, when all its gradients are there. Return what arrived at every place."""
        waiting, arrived, found, ready = self.counted(root), {root: gradient}, {}, [root]
        while ready:
            place = ready.pop()
            g = arrived.pop(place, None)
            if g is not None:
                g = found[place] = self.hooked(place, g)
            if isinstance(place, CountedTensor):
                continue
            parts = (None,) * len(place.inputs) if g is None else self.applied(place, g, keep)
            for to, part in zip(place.inputs, parts, strict=True):
                if to is not None:
                    if part is not None:
                        arrived[to] = self.joined(arrived.get(to), part)
                    waiting[to] -= 1
                    if not waiting[to]:
                        ready.append(to)
        return found

    def counted(self, root):
        waiting, nodes = {}, [root]
        for node in nodes:
            for to in getattr(node, "inputs", ()):
                if to not in waiting:
                    nodes.append(to)
                waiting[to] = waiting.get(to, 0) + 1
        return waiting

    def joined(self, held, part):
        return part if held is None else held + part

    def applied(self, node, g, keep):
        if node.kept is None:
            raise RuntimeError("a second pass through this graph: its saved arrays are freed; use retain_graph=True")
        parts = node.rule(node, g)
        if not keep:
            self.free(node)
        return parts

    def free(self, node):
        node.kept = None

    # Cutting, watching

    def detach(self, tensor):
        return self.Tensor(self, tensor.array)

    def no_grad(self):
        return CountedNoGrad(self)

    def register_hook(self, tensor, hook):
        place = self.place(tensor)
        handle = CountedHandle(place)
        place.hooks[handle] = hook
        return handle

    def retain_grad(self, tensor):
        if tensor.grad_fn is not None:
            tensor.grad_fn.retained = weakref.ref(tensor)

    def hooked(self, place, g):
        for hook in list(place.hooks.values()):
            changed = self.call(hook, g)
            g = g if changed is None else changed
        self.retain(place, g)
        return g

    def call(self, hook, g):
        return hook(g)

    def retain(self, place, g):
        tensor = None if getattr(place, "retained", None) is None else place.retained()
        if tensor is not None:
            self.accumulate(tensor, g)

    # Training

    def SGD(self, parameters, lr):
        return CountedSGD(self, list(parameters), lr)

    def loss(self, images, labels, parameters):
        w1, b1, w2, b2 = parameters
        scores = (self.lift(images) @ w1 + b1).relu() @ w2 + b2
        picked = scores[np.arange(len(labels)), labels]
        return (scores.exp().sum(axis=1).log() - picked).sum() * (1 / len(labels))

    def train(self, images, labels, start, epochs, rate, batch):
        parameters = [self.tensor(array, requires_grad=True) for array in start]
        optimizer = self.SGD(parameters, rate)
        after = []
        for _ in range(epochs):
            for n in range(0, len(images), batch):
                optimizer.zero_grad()
                self.loss(images[n : n + batch], labels[n : n + batch], parameters).backward()
                optimizer.step()
            after.append([parameter.numpy().copy() for parameter in parameters])
        return after
