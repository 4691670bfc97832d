"""What the counting engine hands out besides tensors: handles, modes, optimizers and custom functions."""

import numpy as np

from tests.answers.lesson_11_build_your_own.counted import CountedTensor


class CountedHandle:
    def __init__(self, place):
        self.place = place

    def remove(self):
        self.place.hooks.pop(self, None)


class CountedNoGrad:
    def __init__(self, engine):
        self.engine, self.before = engine, []

    def __enter__(self):
        self.before.append(self.engine.recording)
        self.engine.recording = False

    def __exit__(self, *error):
        self.engine.recording = self.before.pop()


class CountedSGD:
    def __init__(self, engine, parameters, lr):
        self.engine, self.parameters, self.lr = engine, parameters, lr

    def step(self):
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.array -= self.lr * parameter.grad.array

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None


class CountedContext:
    saved_tensors = ()

    def save_for_backward(self, *arrays):
        self.saved_tensors = arrays


class CountedFunction:
    """What custom functions derive from. Their forward and backward get arrays and return arrays."""

    engine = None

    @classmethod
    def apply(cls, *given):
        engine, ctx = cls.engine, CountedContext()
        operands = tuple(one if isinstance(one, CountedTensor) else CountedTensor(engine, None) for one in given)
        ctx.needs_input_grad = tuple(operand.requires_grad for operand in operands)
        array = cls.forward(ctx, *(one.array if isinstance(one, CountedTensor) else one for one in given))

        def rule(node, g):
            parts = cls.backward(node.kept[0], g.array)
            parts = parts if isinstance(parts, tuple) else (parts,)
            if len(parts) != len(node.inputs):
                raise RuntimeError(f"{cls.__name__}.backward returned {len(parts)} gradients for {len(given)} inputs")
            return tuple(None if part is None else engine.lift(part) for part in parts)

        return engine.record(cls.__name__, np.asarray(array), operands, (ctx,), rule)
