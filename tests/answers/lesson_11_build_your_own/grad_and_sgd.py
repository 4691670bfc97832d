"""Right and wrong answers to `grad_and_sgd`."""

import numpy as np

from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.generating import generating
from tests.answers.lesson_11_build_your_own.handed_out import CountedSGD
from tests.answers.lesson_11_build_your_own.numbering import numbering
from tests.answers.lesson_11_build_your_own.subclassing import subclassing
from tests.answers.lesson_11_build_your_own.taping import taping
from tests.answers.lesson_11_build_your_own.through_torch import ThroughTorch
from tests.answers.said import said


class Overwriting(Counting):
    def accumulate(self, tensor, g):
        tensor.grad = self.fresh(g)


class InPlace(Counting):
    """Adds into the array that is there, which may be another leaf's, but never the one that was given."""

    def first(self, output, gradient):
        return super().first(output, gradient) * 1.0

    def accumulate(self, tensor, g):
        if tensor.grad is None:
            tensor.grad = self.Tensor(self, g.array)
        else:
            tensor.grad.array += g.array


class IntoTheGiven(InPlace):
    def first(self, output, gradient):
        return Counting.first(self, output, gradient)


class IntoTheGivenAlone(IntoTheGiven):
    """The rule of + hands the first operand a copy, and the second what arrives."""

    def add(self, a, b):
        made = super().add(a, b)
        if made.grad_fn is not None:
            rule = made.grad_fn.rule
            made.grad_fn.rule = lambda node, g: (rule(node, g * 1.0)[0], rule(node, g)[1])
        return made


class SharedAtFirst(Counting):
    def fresh(self, g):
        return g


class WithSGD(Counting):
    Optimizer = CountedSGD

    def SGD(self, parameters, lr):
        return self.Optimizer(self, list(parameters), lr)


class RebindingSGD(CountedSGD):
    def step(self):
        self.parameters = [
            one if one.grad is None else self.engine.tensor(one.array - self.lr * one.grad.array, True)
            for one in self.parameters
        ]

    def zero_grad(self):
        self.first = getattr(self, "first", None) or list(self.parameters)
        for one in self.first:
            one.grad = None


class Rebinding(WithSGD):
    Optimizer = RebindingSGD


class NewArraysSGD(CountedSGD):
    """Gives each tensor a new array, and leaves the old one to whoever holds it."""

    def step(self):
        for one in self.parameters:
            if one.grad is not None:
                one.array = one.array - self.lr * one.grad.array


class NewArrays(WithSGD):
    Optimizer = NewArraysSGD


class UphillSGD(CountedSGD):
    def step(self):
        self.lr = -self.lr
        super().step()
        self.lr = -self.lr


class Uphill(WithSGD):
    Optimizer = UphillSGD


class ClearingSGD(CountedSGD):
    def step(self):
        super().step()
        self.zero_grad()


class Clearing(WithSGD):
    Optimizer = ClearingSGD


class IdleSGD(CountedSGD):
    def zero_grad(self):
        pass


class Idle(WithSGD):
    Optimizer = IdleSGD


class UncheckedSGD(CountedSGD):
    def step(self):
        for one in self.parameters:
            one.array -= self.lr * one.grad.array


class Unchecked(WithSGD):
    Optimizer = UncheckedSGD


class EveryResult(Counting):
    """Keeps the last gradient of every result for whoever asks."""

    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        if made.grad_fn is not None:
            self.retain_grad(made)
        return made


class RecordedSGD(CountedSGD):
    def step(self):
        for one in self.parameters:
            if one.grad is not None:
                new = one - self.lr * one.grad
                one.array[...], one.grad_fn = new.array, new.grad_fn

    def zero_grad(self):
        super().zero_grad()
        for one in self.parameters:
            one.grad_fn = None


class Recorded(WithSGD):
    Optimizer = RecordedSGD


class UsedUp(Counting):
    def SGD(self, parameters, lr):
        return CountedSGD(self, parameters, lr)


class FirstAloneSGD(CountedSGD):
    def __init__(self, engine, parameters, lr):
        super().__init__(engine, parameters[:1], lr)


class FirstAlone(WithSGD):
    Optimizer = FirstAloneSGD


class Averaging(Counting):
    def accumulate(self, tensor, g):
        tensor.grad = self.fresh(g) if tensor.grad is None else (tensor.grad + g) * 0.5


class ZeroFirst(Counting):
    def tensor(self, array, requires_grad=False):
        made = super().tensor(array, requires_grad)
        if requires_grad:
            made.grad = self.Tensor(self, np.zeros(made.shape))
        return made


class MomentumSGD(CountedSGD):
    def step(self):
        for one in self.parameters:
            if one.grad is not None:
                one.speed = 0.9 * getattr(one, "speed", 0.0) + one.grad.array
                one.array -= self.lr * one.speed


class Momentum(WithSGD):
    Optimizer = MomentumSGD


class GoneThrough(Counting):
    """Keeps the iterator that it is given, which zero_grad() goes through before step()."""

    def SGD(self, parameters, lr):
        return CountedSGD(self, parameters, lr)


class ScalingSGD(CountedSGD):
    def step(self):
        for one in self.parameters:
            if one.grad is not None:
                one.grad.array *= self.lr
                one.array -= one.grad.array


class Scaling(WithSGD):
    Optimizer = ScalingSGD


class EndsAtNoneSGD(CountedSGD):
    def step(self):
        for one in self.parameters:
            if one.grad is None:
                return
            one.array -= self.lr * one.grad.array


class EndsAtNone(WithSGD):
    Optimizer = EndsAtNoneSGD


class WithGradientSGD(CountedSGD):
    """Takes the parameters that have a gradient when it is made: none."""

    def __init__(self, engine, parameters, lr):
        super().__init__(engine, [one for one in parameters if one.grad is not None], lr)


class WithGradient(WithSGD):
    Optimizer = WithGradientSGD


class OnCopiesSGD(CountedSGD):
    def __init__(self, engine, parameters, lr):
        super().__init__(engine, parameters, lr)
        self.arrays = [one.array.copy() for one in parameters]

    def step(self):
        for array, one in zip(self.arrays, self.parameters, strict=True):
            if one.grad is not None:
                array -= self.lr * one.grad.array


class OnCopies(WithSGD):
    Optimizer = OnCopiesSGD


class Renamed(Counting):
    """Its rate has another name."""

    def SGD(self, parameters, rate):
        return CountedSGD(self, list(parameters), rate)


class EmptiedSGD(CountedSGD):
    def zero_grad(self):
        for one in self.parameters:
            one.grad.array[...] = 0.0


class Emptied(WithSGD):
    """Clears what is not there yet."""

    Optimizer = EmptiedSGD


class AfterStepsSGD(CountedSGD):
    stepped = False

    def step(self):
        super().step()
        self.stepped = True

    def zero_grad(self):
        if self.stepped:
            super().zero_grad()
        self.stepped = False


class AfterSteps(WithSGD):
    """Clears what a step has used, and nothing else."""

    Optimizer = AfterStepsSGD


RIGHT = [Counting(), taping(), generating(), subclassing(), numbering()]

MISCONCEIVED = {
    "written, not added": Overwriting(),
    "one array for two": InPlace(),
    "added into the given gradient": IntoTheGiven(),
    "new tensors": Rebinding(),
    "uphill": Uphill(),
    "step clears": Clearing(),
    "zero_grad does nothing": Idle(),
    "None is an error": Unchecked(),
    "intermediate results have one": EveryResult(),
    "the step is recorded": Recorded(),
    "another autograd": ThroughTorch(),
}


class FlatSGD(CountedSGD):
    """Steps in what ravel() gives: a copy, where rows do not lie one after the other."""

    def step(self):
        for parameter in self.parameters:
            if parameter.grad is not None:
                flat = parameter.array.ravel()
                flat -= self.lr * parameter.grad.array.ravel()


class Flat(WithSGD):
    Optimizer = FlatSGD


class KeepsAtTheResult(Counting):
    def backward(self, output, gradient, retain_graph):
        super().backward(output, gradient, retain_graph)
        if output.grad_fn is not None:
            output.grad = self.first(output, gradient)


WRONG = [
    *(Flat(), KeepsAtTheResult()),
    said(used_up := UsedUp(), "new tensors"),
    said(FirstAlone(), "ends at None"),
    averaging := Averaging(),
    zero_first := ZeroFirst(),
    Momentum(),
    said(GoneThrough(), "new tensors"),
    scaling := Scaling(),
    said(ends_at_none := EndsAtNone(), "ends at None"),
    said(WithGradient(), "new tensors"),
    said(OnCopies(), "new tensors"),
    said(into_the_given_alone := IntoTheGivenAlone(), "added into the given gradient"),
    shared_at_first := SharedAtFirst(),
    new_arrays := NewArrays(),
    Renamed(),
    said(Emptied(), "None is an error"),
    AfterSteps(),
]

EQUIVALENT = {
    "Counting.fresh: return g + 0.0 -> return g - 0.0": "Adding and taking away zero both give a new array.",
}

GUARDS = {
    "`backward()` **adds** to the `grad` of a leaf": {"second": averaging},
    "which is None before the first pass": {"needs backward": zero_first},
    "Only leaves keep one.": {"between": MISCONCEIVED["intermediate results have one"]},
    "The arrays are each leaf's own": {"own": shared_at_first},
    "a pass changes neither the `grad` of another leaf": {"apart": MISCONCEIVED["one array for two"]},
    "nor the gradient that somebody gave to an earlier pass": {"given": into_the_given_alone},
    "for any iterable of parameters": {"steps": used_up},
    "`optimizer.step()` subtracts `lr` times the gradient": {"steps": MISCONCEIVED["uphill"]},
    "in the tensors' own arrays, which `numpy()` gives": {"steps": MISCONCEIVED["new tensors"], "in place": new_arrays},
    "they stay leaves": {"leaves": MISCONCEIVED["the step is recorded"]},
    "It skips parameters whose `grad` is None": {"runs": MISCONCEIVED["None is an error"], "steps": ends_at_none},
    "and leaves every `grad` as it is": {"left": scaling},
    "`optimizer.zero_grad()` makes them None (or zero)": {"cleared": MISCONCEIVED["zero_grad does nothing"]},
}

MISCONCEIVED["ends at None"] = ends_at_none
