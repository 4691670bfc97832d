"""Right and wrong answers to `create_graph`."""

import numpy as np

from tests.answers.lesson_11_build_your_own.counted import CountedNode, CountedTensor
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.numbering import numbering
from tests.answers.lesson_11_build_your_own.subclassing import subclassing
from tests.answers.lesson_11_build_your_own.taping import taping
from tests.answers.lesson_11_build_your_own.through_torch import ThroughTorch
from tests.answers.said import said


class NoGraph(Counting):
    def run(self, output, gradient, keep, create):
        return super().run(output, gradient, keep, False)


class OwnResults(Counting):
    def unpacked(self, node, kept):
        return self.Tensor(self, kept) if isinstance(kept, np.ndarray) else kept


class UpstreamCut(Counting):
    def applied(self, node, g, keep):
        return super().applied(node, g.detach(), keep)


class RawSum(Counting):
    def reduced(self, g, shape):
        return g if g.shape == shape else super().reduced(g.detach(), shape)


class RawScatter(Counting):
    def scatter(self, a, index, shape):
        return super().scatter(a.detach(), index, shape)


class RawSpread(Counting):
    def spread(self, g, kept, shape):
        return super().spread(g.detach(), kept, shape)


class Filling(Counting):
    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        found = super().grad(output, inputs, gradient, retain_graph, create_graph)
        for tensor, g in zip(inputs, found, strict=True):
            if g is not None:
                self.accumulate(tensor, g)
        return found


class Always(Counting):
    def run(self, output, gradient, keep, create):
        return super().run(output, gradient, keep, True)


class Freed(Counting):
    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        return super().grad(output, inputs, gradient, bool(retain_graph), create_graph)


class SameGraph(Counting):
    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        found = super().grad(output, inputs, gradient, retain_graph, create_graph)
        node = output.grad_fn
        if create_graph:
            rule, new = node.rule, CountedNode("grad", (), (), lambda node, g: ())
            node.inputs = (*node.inputs, new)
            node.rule = lambda node, g: (*rule(node, g), None)
        return found


class Zeros(Counting):
    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        found = super().grad(output, inputs, gradient, retain_graph, create_graph)
        return [self.tensor(np.zeros(x.shape)) if g is None else g for g, x in zip(found, inputs, strict=True)]


class RawMatmul(Counting):
    def turned(self, a):
        return super().turned(a.detach())


class RawProduct(Counting):
    """Inside no_grad a pass is recorded, if one is that multiplies by no constants."""

    def multiply(self, a, b):
        def rule(node, g):
            a, b = (None if one is None else one.detach() for one in (self.unpacked(node, one) for one in node.kept))
            for_a = None if b is None else self.reduced(g * b, a_shape)
            return for_a, None if a is None else self.reduced(g * a, b_shape)

        a_shape, b_shape = a.shape, b.shape
        return self.record("mul", a.array * b.array, (a, b), self.both(a, b), rule)


class RawLog(Counting):
    def inverse(self, a):
        return super().inverse(a.detach())


class RawProductAndLog(RawProduct):
    def inverse(self, a):
        return super().inverse(a.detach())


class LeavesOnly(Counting):
    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        found = super().grad(output, inputs, gradient, retain_graph, create_graph)
        return [None if tensor.grad_fn is not None else g for g, tensor in zip(found, inputs, strict=True)]


class Doubled(Counting):
    def joined(self, held, part):
        return part if held is None else held + part.detach()


class OutputsOnly(Counting):
    """Gives tensors that require a gradient, and are new leaves."""

    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        found = super().grad(output, inputs, gradient, retain_graph, create_graph)
        return [None if g is None else CountedTensor(self, g.array, create_graph) for g in found]


class ClearsGrad(Counting):
    """As one that goes by way of `.grad`, and clears it afterwards."""

    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        found = super().grad(output, inputs, gradient, retain_graph, create_graph)
        for place in self.counted(output.grad_fn):
            if isinstance(place, CountedTensor):
                place.grad = None
        return found


class OneAlone(Counting):
    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        found = super().grad(output, inputs, gradient, retain_graph, create_graph)
        return found[0] if len(found) == 1 else found


class Arrays(Counting):
    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        found = super().grad(output, inputs, gradient, retain_graph, create_graph)
        return found if create_graph else [None if g is None else g.array for g in found]


class StopsThere(Counting):
    """Goes no further than to an input that is asked for, though another one is behind it."""

    asked = ()

    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        self.asked = [self.place(tensor) for tensor in inputs]
        try:
            return super().grad(output, inputs, gradient, retain_graph, create_graph)
        finally:
            self.asked = ()

    def applied(self, node, g, keep):
        return (None,) * len(node.inputs) if node in self.asked else super().applied(node, g, keep)


class AlwaysRetained(Counting):
    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        return super().grad(output, inputs, gradient, True, create_graph)


class RetainedIfCreated(Counting):
    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        return super().grad(output, inputs, gradient, bool(retain_graph or create_graph), create_graph)


class BackwardRecorded(Counting):
    def backward(self, output, gradient=None, retain_graph=False):
        for leaf, g in self.run(output, gradient, retain_graph, True).items():
            if isinstance(leaf, CountedTensor):
                leaf.grad = g if leaf.grad is None else leaf.grad + g


class InverseOfAConstant(Counting):
    """Takes what the node of an inverse kept for a constant: the third derivative of log shows it."""

    def unpacked(self, node, kept):
        return self.lift(kept) if node.name == "inverse" else super().unpacked(node, kept)


class RawReshape(Counting):
    def reshape(self, a, shape):
        made = super().reshape(a, shape)
        if made.grad_fn is not None:
            old = a.shape
            made.grad_fn.rule = lambda node, g: (g.detach().reshape(old),)
        return made


class OnAfterwards(Counting):
    """Records after each pass, whatever was before."""

    def run(self, output, gradient, keep, create):
        try:
            return super().run(output, gradient, keep, create)
        finally:
            self.recording = True


class OffAfterAnError(Counting):
    """Puts the switch back where a pass ends well, and else only when the next leaf or block is made."""

    error, broken = ValueError, False

    def run(self, output, gradient, keep, create):
        before = self.recording
        try:
            return super().run(output, gradient, keep, create)
        except self.error:
            self.recording, self.broken = False, before
            raise

    def mended(self):
        self.recording, self.broken = self.recording or self.broken, False

    def tensor(self, array, requires_grad=False):
        if requires_grad:
            self.mended()
        return super().tensor(array, requires_grad)

    def no_grad(self):
        self.mended()
        return super().no_grad()


class OffAfterAFreedGraph(OffAfterAnError):
    error = RuntimeError


class OffAfterARule(OffAfterAnError):
    """Looks whether a pass can be made before it switches, and puts the switch back where no rule raises."""

    error = FloatingPointError


class RetainedUnlessTold(Counting):
    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        return super().grad(output, inputs, gradient, retain_graph is not False, create_graph)


class CannotRetain(Counting):
    """Has no `retain_graph`."""

    def grad(self, output, inputs, gradient=None, create_graph=False):
        return super().grad(output, inputs, gradient, create_graph, create_graph)


class BeginsWithMore(Counting):
    """What a recorded pass begins with stays at the result, where the next pass adds its own."""

    def passed(self, root, gradient, keep):
        begun = getattr(root, "begun", None)
        gradient = gradient if begun is None else gradient + begun
        if self.recording:
            root.begun = gradient.detach()
        return super().passed(root, gradient, keep)


RIGHT = [Counting(), taping(), subclassing(), numbering()]

MISCONCEIVED = {
    "numbers without a graph": NoGraph(),
    "own results are constants": OwnResults(),
    "operands are constants": RawProduct(),
    "the upstream gradient cut off": UpstreamCut(),
    "summing back is not recorded": RawSum(),
    "putting back is not recorded": RawScatter(),
    "spreading is not recorded": RawSpread(),
    "grad fills .grad": Filling(),
    "every pass is recorded": Always(),
    "freed all the same": Freed(),
    "recorded into the same graph": SameGraph(),
    "zeros for None": Zeros(),
    "another autograd": ThroughTorch(),
}


class FirstAlone(Counting):
    """Begins with 1 wherever the result is a single number."""

    def first(self, output, gradient):
        return super().first(output, None if output.array.size == 1 else gradient)


class GivenCut(Counting):
    """Takes the gradient that it is given for a constant."""

    def first(self, output, gradient):
        return super().first(output, gradient).detach()


class EachOnce(Counting):
    """Returns a gradient for each tensor that is asked for, once."""

    def grad(self, output, inputs, *rest, **options):
        return super().grad(output, list(dict.fromkeys(inputs)), *rest, **options)


class NotItself(Counting):
    """Has no gradient for the result itself."""

    def grad(self, output, inputs, *rest, **options):
        found = super().grad(output, inputs, *rest, **options)
        return [None if one is output else g for one, g in zip(inputs, found, strict=True)]


class RecordedOutside(Counting):
    """Records a pass where recording is on."""

    def run(self, output, gradient, keep, create):
        return super().run(output, gradient, keep, create and self.recording)


class Renaming(Counting):
    """Marks the nodes that a recorded pass has run."""

    def applied(self, node, g, keep):
        parts = super().applied(node, g, keep)
        if self.recording:
            node.name += " (done)"
        return parts


class CutWhereNotAsked(Counting):
    """A retained pass takes the entries of leaves away that nobody asked for."""

    wanted = None

    def grad(self, output, inputs, gradient=None, retain_graph=None, create_graph=False):
        self.wanted = {self.place(tensor) for tensor in inputs}
        try:
            return super().grad(output, inputs, gradient, retain_graph, create_graph)
        finally:
            self.wanted = None

    def applied(self, node, g, keep):
        parts = super().applied(node, g, keep)
        if keep and self.wanted:
            asked = [not isinstance(to, CountedTensor) or to in self.wanted for to in node.inputs]
            node.inputs = tuple(to if here else None for to, here in zip(node.inputs, asked, strict=True))
            parts = tuple(part if here else None for part, here in zip(parts, asked, strict=True))
        return parts


class FlagsByName(Counting):
    def grad(self, output, inputs, gradient=None, *, retain_graph=None, create_graph=False):
        return super().grad(output, inputs, gradient, retain_graph, create_graph)


class Renamed(Counting):
    def grad(self, output, inputs, g=None, retain_graph=None, create_graph=False):
        return super().grad(output, inputs, g, retain_graph, create_graph)


class RecordsForTheGiven(Counting):
    """Records a pass whose gradient to begin with requires one itself."""

    def run(self, output, gradient, keep, create):
        return super().run(output, gradient, keep, create or (gradient is not None and gradient.requires_grad))


WRONG = [
    RecordsForTheGiven(),
    *(FirstAlone(), GivenCut(), NotItself(), Renaming()),
    each_once := EachOnce(),
    recorded_outside := RecordedOutside(),
    said(RawMatmul(), "operands are constants"),
    said(RawLog(), "operands are constants"),
    leaves_only := LeavesOnly(),
    Doubled(),
    OutputsOnly(),
    ClearsGrad(),
    one_alone := OneAlone(),
    arrays := Arrays(),
    stops_there := StopsThere(),
    AlwaysRetained(),
    retained_if_created := RetainedIfCreated(),
    backward_recorded := BackwardRecorded(),
    inverse_of_a_constant := InverseOfAConstant(),
    raw_reshape := RawReshape(),
    on_afterwards := OnAfterwards(),
    *(off_after_an_error := OffAfterAnError(), OffAfterAFreedGraph(), OffAfterARule()),
    retained_unless_told := RetainedUnlessTold(),
    cannot_retain := CannotRetain(),
    begins_with_more := BeginsWithMore(),
    said(RawProductAndLog(), "operands are constants"),
    CutWhereNotAsked(),
    *(FlagsByName(), Renamed()),
]

GUARDS = {
    "returns the gradients of `output` with respect to `inputs`": {"list": one_alone, "type": stops_there},
    "as tensors": {"tensors": arrays},
    "gradients of `output` with respect to `inputs`": {"as asked": each_once},
    "and leaves every `.grad` alone": {"grad": MISCONCEIVED["grad fills .grad"]},
    "An input may be an intermediate result": {"type": leaves_only},
    "For an input on which the output does not depend it returns None.": {"unused": MISCONCEIVED["zeros for None"]},
    "With `create_graph=True` the pass is itself recorded": {
        "named": MISCONCEIVED["own results are constants"],
        "random": raw_reshape,
        "recorded": recorded_outside,
    },
    "as often as one likes": {"value": inverse_of_a_constant},
    "Without it, as in `backward()`, nothing is recorded in the pass": {
        "plain": backward_recorded,
    },
    "the gradients need no gradient": {"plain": MISCONCEIVED["every pass is recorded"]},
    "A pass, also one that raises, leaves recording as it was.": {"on": off_after_an_error, "off": on_afterwards},
    "`retain_graph` is what `create_graph` is": {"freed": retained_unless_told},
    "unless it is given": {"runs": cannot_retain},
    "If your engine frees (stage 3), such a pass frees as `backward()` does.": {"not retained": retained_if_created},
    "such a pass adds no node or edge to the graph of the output, and takes none away": {
        "nodes": MISCONCEIVED["recorded into the same graph"],
        "after": begins_with_more,
    },
}
