"""Right and wrong answers to `save_and_free`."""

import weakref

import numpy as np

from tests.answers.lesson_11_build_your_own.counted import CountedNode, CountedTensor
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.generating import generating
from tests.answers.lesson_11_build_your_own.numbering import numbering
from tests.answers.lesson_11_build_your_own.subclassing import subclassing
from tests.answers.lesson_11_build_your_own.taping import taping
from tests.answers.lesson_11_build_your_own.through_torch import ThroughTorch
from tests.answers.said import said


class Operands(Counting):
    """Each node keeps all of its operands until it has run, as a sum does not need to."""

    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        if made.grad_fn is not None:
            made.grad_fn.operands = operands
        return made

    def free(self, node):
        super().free(node)
        node.operands = None


class BothFactors(Counting):
    def multiply(self, a, b):
        made = super().multiply(a, b)
        if made.grad_fn is not None:
            made.grad_fn.both = (a, b)
        return made

    def free(self, node):
        super().free(node)
        node.both = None


class NeverFreed(Counting):
    def free(self, node):
        pass


class NothingDone(NeverFreed):
    """As an engine is after stage 2: it neither chooses what to keep nor frees."""

    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        if made.grad_fn is not None:
            made.grad_fn.operands = operands
        return made


class Silent(Counting):
    """After the first pass, nodes whose arrays are gone pass nothing on."""

    def applied(self, node, g, keep):
        return (None,) * len(node.inputs) if node.kept is None else super().applied(node, g, keep)


class OtherKind(Counting):
    def applied(self, node, g, keep):
        parts = node.rule(node, g)
        if not keep:
            node.kept = None
        return parts


class EveryGraph(Counting):
    """Has one list of all nodes, which a pass clears."""

    def __init__(self):
        super().__init__()
        self.nodes = weakref.WeakSet()

    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        if made.grad_fn is not None:
            self.nodes.add(made.grad_fn)
        return made

    def backward(self, output, gradient=None, retain_graph=False):
        super().backward(output, gradient, retain_graph)
        for node in () if retain_graph else list(self.nodes):
            self.free(node)


class Circle(Counting):
    """The closure of exp holds the tensor that it made, until the node has run."""

    def exp(self, a):
        made = super().exp(a)
        if made.grad_fn is not None:
            made.grad_fn.rule = lambda node, g: (g * made,)
        return made

    def free(self, node):
        super().free(node)
        node.rule = None


class GlobalTape(Counting):
    def __init__(self):
        super().__init__()
        self.tape = []

    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        self.tape.append(made)
        return made


class ValuesFreed(Counting):
    """A pass takes the numbers of the intermediate tensors away as well."""

    def passed(self, root, gradient, keep):
        self.root = root
        try:
            return super().passed(root, gradient, keep)
        finally:
            self.root = None

    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        if made.grad_fn is not None:
            made.grad_fn.made = weakref.ref(made)
        return made

    def free(self, node):
        super().free(node)
        made = node.made()
        if made is not None and made.grad_fn is not self.root:
            made.array = np.zeros(made.shape)


class GradientsStay(Counting):
    def applied(self, node, g, keep):
        node.gradient = g
        return super().applied(node, g, keep)


class LastNodeFreed(Counting):
    def passed(self, root, gradient, keep):
        found = super().passed(root, gradient, True)
        if not keep:
            self.free(root)
            for to in getattr(root, "inputs", ()):
                if isinstance(to, CountedNode) and not any(isinstance(one, np.ndarray) for one in to.kept or ()):
                    self.free(to)
        return found


class Copies(Counting):
    def exp(self, a):
        made = super().exp(a)
        if made.grad_fn is not None:
            made.grad_fn.kept = (made.array.copy(), made.array.copy())
        return made


class NoWords(Counting):
    def applied(self, node, g, keep):
        if node.kept is None:
            raise RuntimeError("oops")
        return super().applied(node, g, keep)


class HoldsLastResult(Counting):
    def record(self, name, array, operands, kept, rule):
        self.last = super().record(name, array, operands, kept, rule)
        self.before = operands
        return self.last


class KeepsTheSecondFactor(Counting):
    def both(self, a, b):
        return a if b.requires_grad else None, b


class Besides(Counting):
    """Lets nodes keep something besides what their rules read, until they have run."""

    def free(self, node):
        super().free(node)
        node.besides = None

    def keeping(self, made, *operands):
        if made.grad_fn is not None:
            made.grad_fn.besides = operands
        return made


class BothOfMatmul(Besides):
    def matmul(self, a, b):
        return self.keeping(super().matmul(a, b), a, b)


class WhatIsIndexed(Besides):
    def pick(self, a, index):
        return self.keeping(super().pick(a, index), a)


class InputOfRelu(Besides):
    """Keeps a mask, and the input as well."""

    def relu(self, a):
        mask = a.array > 0.0
        made = self.record("relu", np.maximum(a.array, 0.0), (a,), (mask,), lambda node, g: (g * node.kept[0],))
        return self.keeping(made, a)


class ByValueError(Counting):
    def applied(self, node, g, keep):
        if node.kept is None:
            raise ValueError("this graph is freed already")
        return super().applied(node, g, keep)


RIGHT = [Counting(), taping(), generating(), subclassing(), numbering()]

MISCONCEIVED = {
    "more than the rules need": Operands(),
    "never freed": NeverFreed(),
    "freed, and silent about it": Silent(),
    "an error of another kind": OtherKind(),
    "one pass frees every graph": EveryGraph(),
    "a circle of references": Circle(),
    "kept in a list of the engine's": GlobalTape(),
    "freed too early": ValuesFreed(),
    "gradients stay on the nodes": GradientsStay(),
    "only the last node is freed": LastNodeFreed(),
    "another autograd": ThroughTorch(),
}


class AllButTheFirst(Counting):
    """Frees all nodes but the one that the result holds."""

    def passed(self, root, gradient, keep):
        self.root = root
        return super().passed(root, gradient, keep)

    def free(self, node):
        if node is not self.root:
            super().free(node)


class LeafMarked(Counting):
    """Takes a result that is made of a leaf alone for freed, once a pass has come to the leaf."""

    def passed(self, root, gradient, keep):
        if any(getattr(to, "spent", False) for to in getattr(root, "inputs", ())):
            raise RuntimeError("a second pass: freed")
        return super().passed(root, gradient, keep)

    def free(self, node):
        super().free(node)
        for to in node.inputs:
            if isinstance(to, self.Tensor):
                to.spent = True


class HoldsTheLastPass(Counting):
    """Has the nodes of the last pass in a list until the next one."""

    ran = ()

    def passed(self, root, gradient, keep):
        self.ran = []
        return super().passed(root, gradient, keep)

    def applied(self, node, g, keep):
        self.ran.append(node)
        return super().applied(node, g, keep)


class HoldsLeaves(Counting):
    """Lists the leaves that are used."""

    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        self.known = [*getattr(self, "known", ()), *(made.grad_fn.inputs if made.grad_fn else ())]
        self.known = [one for one in self.known if isinstance(one, CountedTensor)]
        return made


WRONG = [
    said(NothingDone(), "never freed"),
    said(BothFactors(), "more than the rules need"),
    said(Copies(), "more than the rules need"),
    no_words := NoWords(),
    said(second_factor := KeepsTheSecondFactor(), "more than the rules need"),
    said(BothOfMatmul(), "more than the rules need"),
    said(WhatIsIndexed(), "more than the rules need"),
    said(input_of_relu := InputOfRelu(), "more than the rules need"),
    said(ByValueError(), "an error of another kind"),
    said(AllButTheFirst(), "gradients stay on the nodes"),
    LeafMarked(),
    held_after_a_pass := HoldsTheLastPass(),
    HoldsLeaves(),
]

GUARDS = {
    "no more large arrays are alive than in PyTorch": {"forward": MISCONCEIVED["more than the rules need"]},
    "one of both (or a mask) for `relu`": {"forward": input_of_relu},
    "What would serve the gradient of a constant is not kept.": {"forward": second_factor},
    "After a pass nothing is kept, also while the result is still held.": {
        "after": MISCONCEIVED["gradients stay on the nodes"]
    },
    "Intermediate tensors that you hold keep their numbers.": {"value": MISCONCEIVED["freed too early"]},
    "A graph dies with the last reference to it, at once": {"dropped": MISCONCEIVED["a circle of references"]},
    "Nor does the engine hold it.": {"gone": held_after_a_pass},
    "A pass that meets a node that was freed raises a **RuntimeError that says so**": {
        "passes": MISCONCEIVED["an error of another kind"],
        "says": no_words,
    },
    "Graphs that share only leaves do not disturb each other.": {"passes": MISCONCEIVED["one pass frees every graph"]},
}
