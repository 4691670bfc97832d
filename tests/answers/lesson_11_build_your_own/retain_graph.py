"""Right and wrong answers to `retain_graph`."""

import numpy as np

from tests.answers.lesson_11_build_your_own.counted import CountedTensor
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.generating import generating
from tests.answers.lesson_11_build_your_own.numbering import numbering
from tests.answers.lesson_11_build_your_own.subclassing import subclassing
from tests.answers.lesson_11_build_your_own.taping import taping
from tests.answers.lesson_11_build_your_own.through_torch import ThroughTorch
from tests.answers.said import said


class Ignored(Counting):
    def backward(self, output, gradient=None, retain_graph=False):
        super().backward(output, gradient, False)


class Sticks(Counting):
    def applied(self, node, g, keep):
        node.retained_once = keep or getattr(node, "retained_once", False)
        return super().applied(node, g, node.retained_once)


class AnyValueTensor(CountedTensor):
    def backward(self, gradient=None, retain_graph=None):
        self.engine.backward(self, gradient, retain_graph is not None)


class AnyValue(Counting):
    Tensor = AnyValueTensor


class SumsStay(Counting):
    """Adds up what arrives on the nodes, and does not clear it while the graph is retained."""

    def passed(self, root, gradient, keep):
        self.keep = keep
        return super().passed(root, gradient, keep)

    def hooked(self, place, g):
        if isinstance(place, CountedTensor):
            return g
        place.total = g if getattr(place, "total", None) is None else place.total + g
        total = place.total
        if not self.keep:
            place.total = None
        return total


class CountsStay(Counting):
    """Counts on the nodes what has arrived, and forgets to begin anew."""

    def applied(self, node, g, keep):
        if getattr(node, "done", False) and node.kept is not None:
            parts = (None,) * len(node.inputs)
            if not keep:
                self.free(node)
            return parts
        node.done = True
        return super().applied(node, g, keep)


class CopiesForNext(Counting):
    def applied(self, node, g, keep):
        parts = super().applied(node, g, keep)
        if keep:
            node.spare = [
                one if one is None else (one if isinstance(one, np.ndarray) else one.numpy()).copy()
                for one in node.kept
            ]
        else:
            node.spare = None
        return parts


class HeldByEngine(Counting):
    def __init__(self):
        super().__init__()
        self.held = {}

    def run(self, output, gradient, keep, create):
        if keep:
            self.held[id(output)] = output
        else:
            self.held.pop(id(output), None)
        return super().run(output, gradient, keep, create)


class SharedFreed(Counting):
    """Retains nodes for the result that asked: a pass from another result finds them used up."""

    def run(self, output, gradient, keep, create):
        self.output = output.grad_fn
        try:
            return super().run(output, gradient, keep, create)
        finally:
            self.output = None

    def applied(self, node, g, keep):
        owner = getattr(node, "owner", None)
        if owner is not None and owner != id(self.output):
            raise RuntimeError("this node was used already")
        node.owner = id(self.output)
        return super().applied(node, g, keep)


class WrongWay(Counting):
    def backward(self, output, gradient=None, retain_graph=None):
        super().backward(output, gradient, retain_graph is False)


class RootAlone(Counting):
    def passed(self, root, gradient, keep):
        self.root = root
        try:
            return super().passed(root, gradient, keep)
        finally:
            self.root = None

    def applied(self, node, g, keep):
        return super().applied(node, g, keep and node is self.root)


class FreedAtOnce(Counting):
    def backward(self, output, gradient=None, retain_graph=False):
        super().backward(output, gradient, retain_graph)
        if not retain_graph:
            output.grad_fn = None
            output.requires_grad = False


class Threefold(Counting):
    def applied(self, node, g, keep):
        node.runs = getattr(node, "runs", 0) + 1
        return super().applied(node, g, keep and node.runs < 2)


class UnlessToldTensor(CountedTensor):
    def backward(self, gradient=None, retain_graph=True):
        self.engine.backward(self, gradient, retain_graph)


class UnlessTold(Counting):
    Tensor = UnlessToldTensor


class EveryGraphAfter(Counting):
    """Once any graph was retained, all are, also later ones."""

    retained = False

    def backward(self, output, gradient=None, retain_graph=False):
        self.retained = self.retained or retain_graph
        super().backward(output, gradient, self.retained)


class SilentAfterRetaining(Counting):
    """Says nothing in its error where the graph was retained before."""

    def applied(self, node, g, keep):
        if keep:
            node.retained_once = True
        if node.kept is None and getattr(node, "retained_once", False):
            raise RuntimeError("no")
        return super().applied(node, g, keep)


class OnesInTheMask(Counting):
    """A retained pass leaves relu a mask of ones."""

    def applied(self, node, g, keep):
        parts = super().applied(node, g, keep)
        if keep and node.name == "relu":
            node.kept = (np.ones(node.kept[0].shape),)
        return parts


class DoubledFactors(Counting):
    """A retained pass leaves matmul the double of each factor."""

    def applied(self, node, g, keep):
        parts = super().applied(node, g, keep)
        if keep and node.name == "matmul":
            node.kept = tuple(one if one is None else one + one for one in node.kept)
        return parts


class LeftAfterRetaining(Counting):
    """A pass that ends the retaining leaves a copy of the gradient on each node that it runs."""

    def applied(self, node, g, keep):
        if keep:
            node.retained_once = True
        elif getattr(node, "retained_once", False):
            node.last = g.numpy().copy()
        return super().applied(node, g, keep)


RIGHT = [Counting(), taping(), generating(), subclassing(), numbering()]

MISCONCEIVED = {
    "retain_graph is ignored": Ignored(),
    "whatever it says": AnyValue(),
    "retained once, retained for ever": Sticks(),
    "the first pass counts again": SumsStay(),
    "the second pass does nothing": CountsStay(),
    "copies for the next pass": CopiesForNext(),
    "held by the engine": HeldByEngine(),
    "over a shared part": SharedFreed(),
    "another autograd": ThroughTorch(),
}


class FromOneNumber(Counting):
    """Frees only where a pass begins with a single number."""

    def passed(self, root, gradient, keep):
        return super().passed(root, gradient, keep or gradient.array.size > 1)


class SeedsAddUp(Counting):
    """A pass begins with its gradient and those of the passes before."""

    def passed(self, root, gradient, keep):
        if not isinstance(root, CountedTensor):
            root.seed = gradient if getattr(root, "seed", None) is None else root.seed + gradient
            gradient = root.seed
        return super().passed(root, gradient, keep)


class ByNameTensor(CountedTensor):
    def backward(self, gradient=None, *, retain_graph=False):
        super().backward(gradient, retain_graph)


class ByName(Counting):
    """Takes the flag by its name alone."""

    Tensor = ByNameTensor


class RenamedTensor(CountedTensor):
    def backward(self, g=None, retain_graph=False):
        super().backward(g, retain_graph)


class Renamed(Counting):
    """Has another name for the gradient."""

    Tensor = RenamedTensor


WRONG = [
    WrongWay(),
    said(RootAlone(), "retain_graph is ignored"),
    FreedAtOnce(),
    UnlessTold(),
    EveryGraphAfter(),
    silent_after_retaining := SilentAfterRetaining(),
    left_after_retaining := LeftAfterRetaining(),
    threefold := Threefold(),
    ones_in_the_mask := OnesInTheMask(),
    DoubledFactors(),
    FromOneNumber(),
    said(SeedsAddUp(), "the first pass counts again"),
    *(ByName(), Renamed()),
]

GUARDS = {
    "with True the pass frees nothing of what it runs": {"passes": threefold},
    "Passes over one graph give the same gradients each time": {"passes": ones_in_the_mask},
    "over another that shares a part with it": {"passes": MISCONCEIVED["over a shared part"]},
    "A pass without it frees as before, also what an earlier one retained.": {
        "passes": MISCONCEIVED["whatever it says"],
        "says": silent_after_retaining,
        "after": left_after_retaining,
    },
    "a retained graph keeps no more than before the pass": {"retained": MISCONCEIVED["copies for the next pass"]},
    "Needs stage 3": {"dropped": MISCONCEIVED["held by the engine"]},
}
