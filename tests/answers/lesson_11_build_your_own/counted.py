"""Tensors and nodes of the counting engine."""


class CountedNode:
    """One operation: what it kept, its rule, and where its gradients go (a node, a leaf, or None)."""

    def __init__(self, name, inputs, kept, rule):
        self.name, self.inputs, self.kept, self.rule, self.hooks = name, inputs, kept, rule, {}


class CountedTensor:
    """An array, and the node that made it."""

    __array_ufunc__ = __bool__ = None  # NumPy leaves `array * tensor` to us, and no tensor is true or false
    grad = None

    def __init__(self, engine, array, requires_grad=False, grad_fn=None):
        self.engine, self.array, self.requires_grad, self.grad_fn, self.hooks = (
            engine,
            array,
            requires_grad,
            grad_fn,
            {},
        )

    shape = property(lambda self: self.array.shape)

    def numpy(self):
        return self.array

    def __add__(self, other):
        return self.engine.add(self, self.engine.lift(other))

    def __sub__(self, other):
        return self.engine.subtract(self, self.engine.lift(other))

    def __rsub__(self, other):
        return self.engine.subtract(self.engine.lift(other), self)

    def __mul__(self, other):
        return self.engine.multiply(self, self.engine.lift(other))

    __radd__, __rmul__ = __add__, __mul__

    def __matmul__(self, other):
        return self.engine.matmul(self, self.engine.lift(other))

    def exp(self):
        return self.engine.exp(self)

    def log(self):
        return self.engine.log(self)

    def relu(self):
        return self.engine.relu(self)

    def sum(self, axis=None, keepdims=False):
        return self.engine.sum(self, axis, keepdims)

    def reshape(self, shape):
        return self.engine.reshape(self, shape)

    def __getitem__(self, index):
        return self.engine.pick(self, index)

    def backward(self, gradient=None, retain_graph=False):
        self.engine.backward(self, gradient, retain_graph)

    def detach(self):
        return self.engine.detach(self)

    def retain_grad(self):
        self.engine.retain_grad(self)

    def register_hook(self, hook):
        return self.engine.register_hook(self, hook)
