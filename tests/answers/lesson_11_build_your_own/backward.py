"""Right and wrong answers to `backward`."""

import math
import weakref

import numpy as np
import torch

from tests.answers.lesson_11_build_your_own.counted import CountedTensor
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.generating import generating
from tests.answers.lesson_11_build_your_own.numbering import numbering
from tests.answers.lesson_11_build_your_own.subclassing import subclassing
from tests.answers.lesson_11_build_your_own.taping import taping
from tests.answers.said import said


def in_order(engine, order, arrived, keep):
    """Run nodes in an order that is given, each once."""
    for place in order:
        if isinstance(place, CountedTensor) or place not in arrived:
            continue
        for to, part in zip(place.inputs, engine.applied(place, arrived[place], keep), strict=True):
            if to is not None and part is not None:
                arrived[to] = engine.joined(arrived.get(to), part)
    return arrived


class LastOne(Counting):
    def joined(self, held, part):
        return part


class FirstOne(Counting):
    def joined(self, held, part):
        return part if held is None else held


class EachPath(Counting):
    """Runs a node whenever a gradient arrives, with that gradient alone, and adds up at the leaves."""

    def passed(self, root, gradient, keep):
        found, ready, nodes = {}, [(root, gradient)], {}
        while ready:
            place, g = ready.pop()
            if isinstance(place, CountedTensor):
                found[place] = self.joined(found.get(place), g)
                continue
            nodes[place] = True
            parts = self.applied(place, g, True)
            ready += [(to, part) for to, part in zip(place.inputs, parts, strict=True) if to is not None]
        for node in () if keep else nodes:
            self.free(node)
        return found


class EachLeaf(Counting):
    """Makes a pass for each leaf."""

    def backward(self, output, gradient, retain_graph):
        leaves = [to for to in self.counted(self.place(output)) if isinstance(to, CountedTensor)]
        if not leaves:
            super().backward(output, gradient, retain_graph)
        for number, leaf in enumerate(leaves, 1):
            keep = retain_graph or number < len(leaves)
            self.accumulate(leaf, self.run(output, gradient, keep, False)[leaf])


class TooEarly(Counting):
    """Runs nodes in the order in which a walk from the result first meets them."""

    def counted(self, root):
        return dict.fromkeys(super().counted(root), 1)

    def passed(self, root, gradient, keep):
        return in_order(self, [root, *self.counted(root)], {root: gradient}, keep)


class TwiceSorted(EachPath):
    """Runs each node again for all that has arrived so far whenever more arrives: values grow too large."""

    def passed(self, root, gradient, keep):
        arrived, ready = {root: gradient}, [root]
        while ready:
            place = ready.pop(0)
            if isinstance(place, CountedTensor):
                continue
            for to, part in zip(place.inputs, self.applied(place, arrived[place], True), strict=True):
                if to is not None and part is not None:
                    arrived[to] = self.joined(arrived.get(to), part)
                    ready.append(to)
        return arrived


class NotReduced(Counting):
    def reduced(self, g, shape):
        return g


class ReducedByCount(Counting):
    """Takes a gradient of as many numbers for one of the operand's shape."""

    def reduced(self, g, shape):
        return g if g.array.size == math.prod(shape) else super().reduced(g, shape)


class Written(Counting):
    def scatter(self, a, index, shape):
        array = np.zeros(shape)
        array[index] = a.array
        return self.Tensor(self, array)


class Recursive(Counting):
    def passed(self, root, gradient, keep):
        order, seen = [], set()

        def visit(place):
            if place in seen:
                return
            seen.add(place)
            for to in getattr(place, "inputs", ()):
                if to is not None:
                    visit(to)
            order.append(place)

        visit(root)
        return in_order(self, order[::-1], {root: gradient}, keep)


class Ones(Counting):
    def first(self, output, gradient):
        return super().first(output, None if gradient is None else np.ones(output.shape))


class OneUse(Counting):
    def applied(self, node, g, keep):
        parts, seen = list(super().applied(node, g, keep)), set()
        for n, to in enumerate(node.inputs):
            if to in seen:
                parts[n] = None
            seen.add(to)
        return parts


class MaskOfGradient(Counting):
    def relu(self, a):
        array = np.maximum(a.array, 0.0)
        return self.record("relu", array, (a,), (), lambda node, g: (g * (g.array > 0),))


class NoSign(Counting):
    def subtract(self, a, b):
        made = super().subtract(a, b)
        if made.grad_fn is not None:
            made.grad_fn.rule = lambda node, g: (self.reduced(g, a.shape), self.reduced(g, b.shape))
        return made


class NotTurned(Counting):
    def turned(self, a):
        return self.reshape(a, a.shape[::-1])


class Constants(Counting):
    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        if made.grad_fn is not None and name == "mul":
            self.constant = [one for one in operands if not one.requires_grad]
        return made

    def backward(self, output, gradient=None, retain_graph=False):
        super().backward(output, gradient, retain_graph)
        for one in getattr(self, "constant", ()):
            one.grad = self.tensor(np.zeros(one.shape))


class AnyResult(Counting):
    def first(self, output, gradient):
        return super().first(output, np.ones(output.shape) if gradient is None else gradient)


class ByTorch(Counting):
    def exp(self, a):
        made = super().exp(a)
        if made.grad_fn is not None:
            made.grad_fn.rule = lambda node, g: (self.lift(torch.from_numpy(g.array * made.array).clone().numpy()),)
        return made


class WeaklyKept(Counting):
    """Nodes refer to what they need by weak references: it is there as long as somebody else holds it."""

    def record(self, name, array, operands, kept, rule):
        held = tuple(weakref.ref(one) if isinstance(one, CountedTensor | np.ndarray) else one for one in kept)
        return super().record(name, array, operands, held, rule)

    def applied(self, node, g, keep):
        if node.kept is not None:
            node.kept = tuple(one() if isinstance(one, weakref.ref) else one for one in node.kept)
            if node.kept and all(one is None for one in node.kept):
                raise RuntimeError("the arrays are gone")
        return super().applied(node, g, keep)


class FromZero(Counting):
    def spread(self, g, kept, shape):
        return g.reshape(kept) * 0.0 + np.ones(shape)


class WrongKind(Counting):
    def run(self, output, gradient, keep, create):
        if not output.requires_grad:
            raise ValueError("no graph")
        return super().run(output, gradient, keep, create)


class Nothing(Counting):
    def accumulate(self, tensor, g):
        pass


class Twice(Counting):
    """Runs each rule twice."""

    def applied(self, node, g, keep):
        node.rule(node, g)
        return super().applied(node, g, keep)


class WrongAxis(Counting):
    def spread(self, g, kept, shape):
        return super().spread(g, kept[::-1] if kept[::-1] != kept and shape == shape[::-1] else kept, shape)


class SharedRow(Counting):
    def reduced(self, g, shape):
        return g if g.shape == shape else g[(0,) * (len(g.shape) - len(shape))] if len(g.shape) > len(shape) else g


class OnesForANumber(Counting):
    """Takes a gradient only for results of several numbers."""

    def first(self, output, gradient):
        return super().first(output, None if output.array.size == 1 else gradient)


class IntoTheFirst(Counting):
    """Adds what arrives second into the array of what arrived first, which may be another place's too."""

    def first(self, output, gradient):
        return self.fresh(super().first(output, gradient))

    def joined(self, held, part):
        if held is None:
            return part
        held.array += part.array
        return held


class PassesAtZero(Counting):
    def relu(self, a):
        mask = a.array >= 0.0
        return self.record("relu", np.maximum(a.array, 0.0), (a,), (mask,), lambda node, g: (g * mask,))


class WithoutShape(Counting):
    """Takes a result of shape (1, 1) for several numbers."""

    def first(self, output, gradient):
        if gradient is None and output.shape:
            raise RuntimeError("a result that is no single number needs a gradient")
        return super().first(output, gradient)


class FromTheFront(Counting):
    """Spreads a sum's gradient back for an axis that is counted from the front alone."""

    def sum(self, a, axis, keepdims):
        made = super().sum(a, axis, keepdims)
        kept = tuple(1 if axis in (None, n) else size for n, size in enumerate(a.shape))
        shape = a.shape
        if made.grad_fn is not None:
            made.grad_fn.rule = lambda node, g: (self.spread(g, kept, shape),)
        return made


class ArrayNotTurned(Counting):
    """Does not turn an array that stood on the right of @."""

    def lift(self, value):
        lifted = super().lift(value)
        lifted.given = isinstance(value, np.ndarray)
        return lifted

    def turned(self, a):
        return a if getattr(a, "given", False) else super().turned(a)


class GrowsOnTheWay(Counting):
    """Gradients grow where a pass is long."""

    def passed(self, root, gradient, keep):
        self.ran = 0
        return super().passed(root, gradient, keep)

    def applied(self, node, g, keep):
        self.ran += 1
        return super().applied(node, g * 2.0 if self.ran == 1000 else g, keep)


class FactorsExchanged(Counting):
    """Multiplies by a factor's own numbers, where both need a gradient: a square does not show it."""

    def multiply(self, a, b):
        made, a_shape, b_shape = super().multiply(a, b), a.shape, b.shape
        if made.grad_fn is not None and a.requires_grad and b.requires_grad:
            made.grad_fn.rule = lambda node, g: (
                self.reduced(g * node.kept[0], a_shape),
                self.reduced(g * node.kept[1], b_shape),
            )
        return made


class ExpAlone(Counting):
    """Leaves out what comes in, in the rule of exp."""

    def exp(self, a):
        made = super().exp(a)
        if made.grad_fn is not None:
            made.grad_fn.rule = lambda node, g: (self.unpacked(node, node.kept[0]) + g * 0.0,)
        return made


class LastAtResults(Counting):
    """Adds up at leaves, and keeps of what arrives at a result the last alone."""

    def passed(self, root, gradient, keep):
        waiting, arrived, ready = self.counted(root), {root: gradient}, [root]
        while ready:
            place = ready.pop()
            if isinstance(place, CountedTensor):
                continue
            for to, part in zip(place.inputs, self.applied(place, arrived[place], keep), strict=True):
                if to is not None:
                    held = arrived.get(to) if isinstance(to, CountedTensor) else None
                    arrived[to] = self.joined(held, part)
                    waiting[to] -= 1
                    if not waiting[to]:
                        ready.append(to)
        return arrived


class SilentWithout(Counting):
    """Does nothing where it is given no gradient and a result has several numbers."""

    def backward(self, output, gradient=None, retain_graph=False):
        if gradient is not None or output.array.size == 1:
            super().backward(output, gradient, retain_graph)


RIGHT = [Counting(), taping(), generating(), subclassing(), numbering()]

MISCONCEIVED = {
    "the last one, not the sum": LastOne(),
    "once for each path": EachPath(),
    "once for each leaf": EachLeaf(),
    "run before all has arrived": TooEarly(),
    "broadcasting not reduced": NotReduced(),
    "an index written, not added": Written(),
    "recursion": Recursive(),
    "the upstream gradient left out": Ones(),
    "one use of two": OneUse(),
    "relu by the gradient's sign": MaskOfGradient(),
    "a sign lost": NoSign(),
    "the rule of matmul": NotTurned(),
    "constants have gradients": Constants(),
    "any result will do": AnyResult(),
    "relu passes at zero": PassesAtZero(),
    "as many numbers, another shape": ReducedByCount(),
    "another autograd": ByTorch(),
}


class SumByTheWrongAxis(Counting):
    """Spreads a sum over the rows of a square along the columns, where the shapes fit either way."""

    def spread(self, g, kept, shape):
        return super().spread(g, kept[::-1] if len(set(shape)) == 1 and kept[0] == 1 else kept, shape)


class PlainSum(Counting):
    """Sums what arrives at one number to shape (), whatever shape the number has."""

    def reduced(self, g, shape):
        return g.sum(axis=None) if g.shape != shape and np.prod(shape) == 1 else super().reduced(g, shape)


class ScalesWhatArrives(Counting):
    """Multiplies what arrives in its own array, where a factor is a constant of the same shape."""

    def multiply(self, a, b):
        def rule(node, g):
            parts = [None, None]
            parts[b.requires_grad] = self.scaled(g, (a if b.requires_grad else b).array)
            return parts

        made = super().multiply(a, b)
        if made.grad_fn is not None and a.requires_grad != b.requires_grad and a.shape == b.shape:
            made.grad_fn.rule = rule
        return made

    def scaled(self, g, factor):
        g.array *= factor
        return g


class ScalesOnTheWay(ScalesWhatArrives):
    """Leaves the gradient alone that a pass is given, and scales others in their own arrays."""

    def first(self, output, gradient):
        return super().first(output, gradient) + 0.0


class EmptiesWhatIsGiven(Counting):
    """Sets the gradient that a pass is given to zero, after the pass."""

    def backward(self, output, gradient=None, retain_graph=False):
        super().backward(output, gradient, retain_graph)
        if gradient is not None:
            gradient.array[...] = 0.0


class MasksWhatArrives(ScalesWhatArrives):
    """Sets what arrives at relu to zero in its own array."""

    multiply = Counting.multiply

    def relu(self, a):
        mask = a.array > 0.0
        return self.record("relu", a.array * mask, (a,), (mask,), lambda node, g: (self.scaled(g, mask),))


class MasksOnTheWay(MasksWhatArrives):
    def first(self, output, gradient):
        return super().first(output, gradient) + 0.0


class NegatesWhatArrives(ScalesWhatArrives):
    """Turns the sign of what arrives in its own array, for the second operand of a difference."""

    multiply = Counting.multiply

    def subtract(self, a, b):
        made = super().subtract(a, b)
        if made.grad_fn is not None and a.shape == b.shape:
            made.grad_fn.rule = lambda node, g: (g + 0.0, self.scaled(g, -1.0))
        return made


class NegatesOnTheWay(NegatesWhatArrives):
    def first(self, output, gradient):
        return super().first(output, gradient) + 0.0


class IntoTheGiven(IntoTheFirst):
    """Adds up in place. Of the two parts of a sum, the first is what arrived itself, the second has its own memory."""

    first = Counting.first

    def add(self, a, b):
        def rule(node, g):
            return self.reduced(g, a_shape), self.fresh(self.reduced(g, b_shape))

        a_shape, b_shape = a.shape, b.shape
        return self.record("add", a.array + b.array, (a, b), (), rule)


WRONG = [
    WeaklyKept(),
    said(FirstOne(), "the last one, not the sum"),
    said(TwiceSorted(), "run before all has arrived"),
    FromZero(),
    wrong_kind := WrongKind(),
    nothing := Nothing(),
    said(Twice(), "once for each path"),
    WrongAxis(),
    SharedRow(),
    ones_for_a_number := OnesForANumber(),
    into_the_first := IntoTheFirst(),
    said(passes_at_zero := PassesAtZero(), "relu passes at zero"),
    without_shape := WithoutShape(),
    FromTheFront(),
    array_not_turned := ArrayNotTurned(),
    grows_on_the_way := GrowsOnTheWay(),
    FactorsExchanged(),
    ExpAlone(),
    said(SilentWithout(), "any result will do"),
    said(LastAtResults(), "the last one, not the sum"),
    SumByTheWrongAxis(),
    PlainSum(),
    ScalesWhatArrives(),
    empties_what_is_given := EmptiesWhatIsGiven(),
    *(MasksWhatArrives(), NegatesWhatArrives()),
    *(ScalesOnTheWay(), MasksOnTheWay(), NegatesOnTheWay()),
    IntoTheGiven(),
    said(ReducedByCount(), "as many numbers, another shape"),
]

EQUIVALENT = {
    "Counting.multiply.rule: None if b is None else self.reduced(g * b, a_shape) -> None if False else self.reduced(g * b, a_shape)": "It computes with NaN for a constant, and what it gives there goes nowhere.",
    "Counting.multiply.rule: None if a is None else self.reduced(g * a, b_shape) -> None if False else self.reduced(g * a, b_shape)": "It computes with NaN for a constant, and what it gives there goes nowhere.",
    "Counting.reduced: if g.shape == shape: ... -> (dropped)": "It saves work where nothing was broadcast: a sum over no axis is the same.",
    "Counting.reduced: if g.shape == shape: ... | extra = len(g.shape) - len(shape) -> (swapped)": "It saves work where nothing was broadcast: a sum over no axis is the same.",
    "Counting.passed: if part is not None: ... | waiting[to] -= 1 -> (swapped)": "The two lines do not depend on one another.",
}

GUARDS = {
    "puts the gradient of each leaf that needs one into its `grad`": {
        "named": passes_at_zero,
        "random": into_the_first,
    },
    "`gradient` is a tensor of the shape of t": {"value": ones_for_a_number},
    "and stays as it was": {"given": empties_what_is_given},
    "a number or an array may stand on the right": {"beside": array_not_turned},
    "in whatever shape": {"single": without_shape},
    "A value that is used several times gets the **sum** of what arrives.": {"random": into_the_first},
    "Its node runs **once**, when all has arrived.": {"counted": MISCONCEIVED["once for each path"]},
    "A result of more than one number without a gradient": {"without": MISCONCEIVED["any result will do"]},
    "and a result without a graph, raise a RuntimeError": {"constant": wrong_kind},
    "No recursion: a chain of ten thousand operations is ordinary.": {
        "long": MISCONCEIVED["recursion"],
        "long value": grows_on_the_way,
    },
}
