"""The operations of the engine of integers: each a class with a forward on arrays and a `vjp` on tensors."""

import numpy as np


def summed(g, shape):
    """Return a gradient, summed over what broadcasting had repeated."""
    for _ in range(len(g.shape) - len(shape)):
        g = g.sum(axis=0)
    for axis, size in enumerate(shape):
        if size == 1 != g.shape[axis]:
            g = g.sum(axis=axis, keepdims=True)
    return g


class BaseOp:
    """`shapes` of the operands are set before forward runs."""

    def keeps(self, *needs):
        """Return which operands, and then whether the result, the rule will read."""
        return ()


class AddOp(BaseOp):
    def forward(self, a, b):
        return a + b

    def vjp(self, g):
        return summed(g, self.shapes[0]), summed(g, self.shapes[1])


class SubtractOp(BaseOp):
    def forward(self, a, b):
        return a - b

    def vjp(self, g):
        return summed(g, self.shapes[0]), summed(-1.0 * g, self.shapes[1])


class MultiplyOp(BaseOp):
    def forward(self, a, b):
        return a * b

    def keeps(self, a, b):
        return b, a

    def vjp(self, g, a, b):
        for_a = None if b is None else summed(g * b, self.shapes[0])
        return for_a, None if a is None else summed(g * a, self.shapes[1])


class MatmulOp(BaseOp):
    def forward(self, a, b):
        return a @ b

    def keeps(self, a, b):
        return b, a

    def vjp(self, g, a, b):
        return None if b is None else g @ b.by(TurnOp()), None if a is None else a.by(TurnOp()) @ g


class TurnOp(BaseOp):
    def forward(self, a):
        return a.T

    def vjp(self, g):
        return (g.by(TurnOp()),)


class ExpOp(BaseOp):
    def forward(self, a):
        return np.exp(a)

    def keeps(self, a):
        return False, True

    def vjp(self, g, a, y):
        return (g * y,)


class LogOp(BaseOp):
    def forward(self, a):
        return np.log(a)

    def keeps(self, a):
        return (True,)

    def vjp(self, g, a):
        return (g * a.by(InverseOp()),)


class InverseOp(ExpOp):
    def forward(self, a):
        return 1.0 / a

    def vjp(self, g, a, y):
        return (-1.0 * g * y * y,)


class ReluOp(ExpOp):
    def forward(self, a):
        return np.maximum(a, 0.0)

    def vjp(self, g, a, y):
        return (g * (y.array > 0.0),)


class SumOp(BaseOp):
    def __init__(self, axis, keepdims):
        self.axis, self.keepdims = axis, keepdims

    def forward(self, a):
        self.ones = a.sum(axis=self.axis, keepdims=True).shape
        return a.sum(axis=self.axis, keepdims=self.keepdims)

    def vjp(self, g):
        return (g.reshape(self.ones).by(SpreadOp(self.shapes[0])),)


class SpreadOp(BaseOp):
    def __init__(self, shape):
        self.shape = shape

    def forward(self, a):
        return np.broadcast_to(a, self.shape).copy()

    def vjp(self, g):
        return (summed(g, self.shapes[0]),)


class ReshapeOp(BaseOp):
    def __init__(self, shape):
        self.shape = shape

    def forward(self, a):
        return a.reshape(self.shape)

    def vjp(self, g):
        return (g.reshape(self.shapes[0]),)


class IndexOp(BaseOp):
    def __init__(self, index):
        self.index = index

    def forward(self, a):
        return a[self.index]

    def vjp(self, g):
        return (g.by(PutOp(self.index, self.shapes[0])),)


class PutOp(BaseOp):
    def __init__(self, index, shape):
        self.index, self.shape = index, shape

    def forward(self, a):
        array = np.zeros(self.shape)
        np.add.at(array, self.index, a)
        return array

    def vjp(self, g):
        return (g[self.index],)


class CustomOp(BaseOp):
    """Somebody else's operation. Its forward has the arguments that are no tensors in their places."""

    def __init__(self, function, given, is_tensor):
        self.function, self.given, self.is_tensor = function, given, is_tensor

    def forward(self, *arrays):
        self.ctx = NumberedContext(self.needs)
        pairs = zip(arrays, self.given, self.is_tensor, strict=True)
        return self.function.forward(self.ctx, *(array if own else one for array, one, own in pairs))

    def vjp(self, g):
        parts = self.function.backward(self.ctx, g.numpy())
        parts = parts if isinstance(parts, tuple | list) else (parts,)
        if len(parts) != len(self.given):
            raise RuntimeError(f"backward gave {len(parts)} gradients, and forward had {len(self.given)} inputs")
        return [part if part is None else g.lifted(part) for part in parts]


class NumberedContext:
    def __init__(self, needs):
        self.needs_input_grad, self.saved_tensors = tuple(needs), ()

    def save_for_backward(self, *arrays):
        self.saved_tensors = arrays
