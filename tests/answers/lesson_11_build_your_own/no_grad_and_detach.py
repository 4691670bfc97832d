"""Right and wrong answers to `no_grad_and_detach`."""

import contextlib
import weakref

import numpy as np

from tests.answers.lesson_11_build_your_own.counted import CountedNode
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.generating import generating
from tests.answers.lesson_11_build_your_own.numbering import numbering
from tests.answers.lesson_11_build_your_own.subclassing import subclassing
from tests.answers.lesson_11_build_your_own.taping import taping
from tests.answers.lesson_11_build_your_own.through_torch import ThroughTorch
from tests.answers.said import said


class Copy(Counting):
    def detach(self, tensor):
        return self.Tensor(self, tensor.array.copy())


class InPlace(Counting):
    def detach(self, tensor):
        tensor.grad_fn, tensor.requires_grad = None, False
        return tensor


class LeafAgain(Counting):
    def detach(self, tensor):
        return self.Tensor(self, tensor.array, True)


class SameNode(Counting):
    def detach(self, tensor):
        return self.Tensor(self, tensor.array, True, tensor.grad_fn)


class NotRestored(Counting):
    """Records again when a leaf is made outside of any block: so that the next check finds it as the first did."""

    open_blocks = 0

    @contextlib.contextmanager
    def no_grad(self):
        before, self.recording = self.recording, False
        self.open_blocks += 1
        try:
            yield
            self.recording = before
        finally:
            self.open_blocks -= 1

    def tensor(self, array, requires_grad=False):
        self.recording = self.recording or not self.open_blocks
        return super().tensor(array, requires_grad)


class Swallowing(Counting):
    @contextlib.contextmanager
    def no_grad(self):
        before, self.recording = self.recording, False
        with contextlib.suppress(Exception):
            yield
        self.recording = before


class EndsOuter(Counting):
    @contextlib.contextmanager
    def no_grad(self):
        self.recording = False
        try:
            yield
        finally:
            self.recording = True


class NoLeaves(Counting):
    def tensor(self, array, requires_grad=False):
        return super().tensor(array, requires_grad and self.recording)


class StillRecorded(Counting):
    def needs(self, *operands):
        return any(operand.requires_grad for operand in operands)

    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        made.requires_grad = made.requires_grad and self.recording
        return made


class NeverOn(Counting):
    @contextlib.contextmanager
    def no_grad(self):
        before, self.recording = self.recording, False
        try:
            yield
        finally:
            self.recording = before and self.first

    def tensor(self, array, requires_grad=False):
        self.first = False
        self.recording = True  # whoever makes a tensor goes on
        return super().tensor(array, requires_grad)


class Off(Counting):
    @contextlib.contextmanager
    def no_grad(self):
        self.recording = False
        yield


class SwitchedOff(Counting):
    def __init__(self):
        super().__init__()
        self.leaves = weakref.WeakSet()

    def tensor(self, array, requires_grad=False):
        made = super().tensor(array, requires_grad)
        if requires_grad:
            self.leaves.add(made)
        return made

    @contextlib.contextmanager
    def no_grad(self):
        leaves = [leaf for leaf in self.leaves if leaf.requires_grad]
        for leaf in leaves:
            leaf.requires_grad = False
        try:
            yield
        finally:
            for leaf in leaves:
                leaf.requires_grad = True


class NoEffect(Counting):
    def no_grad(self):
        return contextlib.nullcontext()


class Held(Counting):
    """Cuts, and keeps the operands in the result."""

    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        made.operands = operands
        return made


class NodeOnDetached(Counting):
    def detach(self, tensor):
        node = CountedNode("detach", (None,), (), lambda node, g: (None,))
        return self.Tensor(self, tensor.array, False, node)


class OnlyGenerates(Counting):
    """Forgets `@contextmanager`."""

    def no_grad(self):
        before, self.recording = self.recording, False
        yield
        self.recording = before


class OneForAll(NotRestored):
    """Has one context manager for all blocks, in which an inner block forgets what was there before the outer one."""

    def no_grad(self):
        return self

    def __enter__(self):
        self.before, self.recording = self.recording, False
        self.open_blocks += 1

    def __exit__(self, *error):
        self.recording = self.before
        self.open_blocks -= 1


class HoldsWhatItCuts(Counting):
    def detach(self, tensor):
        made = super().detach(tensor)
        made.origin = tensor
        return made


class CutsBehind(Counting):
    def detach(self, tensor):
        if tensor.grad_fn is not None:
            tensor.grad_fn.inputs = (None,) * len(tensor.grad_fn.inputs)
        return super().detach(tensor)


class SwallowingAndBack(Counting):
    """Puts the switch back whatever comes, and lets nothing out that is an Exception."""

    @contextlib.contextmanager
    def no_grad(self):
        before, self.recording = self.recording, False
        try:
            with contextlib.suppress(Exception):
                yield
        finally:
            self.recording = before


class NotRestoredAfterAStop(NotRestored):
    """Puts the switch back after an Exception, and not where somebody stops the block."""

    @contextlib.contextmanager
    def no_grad(self):
        before, self.recording = self.recording, False
        self.open_blocks += 1
        try:
            yield
        except Exception:
            self.recording = before
            raise
        finally:
            self.open_blocks -= 1
        self.recording = before


class ProductsWantOne(Counting):
    """Inside the block a product has no node, and says that it needs a gradient."""

    def multiply(self, a, b):
        made = super().multiply(a, b)
        made.requires_grad = a.requires_grad or b.requires_grad
        return made


class MovesAreRecorded(Counting):
    """Looks at the switch in what computes, and not where numbers are only moved."""

    def record(self, name, array, operands, kept, rule):
        before, self.recording = self.recording, self.recording or name in ("reshape", "index")
        try:
            return super().record(name, array, operands, kept, rule)
        finally:
            self.recording = before


class LeafOfAResult(Counting):
    def detach(self, tensor):
        return self.Tensor(self, tensor.array, requires_grad=tensor.grad_fn is not None)


class LeafItself(Counting):
    def detach(self, tensor):
        leaf = tensor.requires_grad and tensor.grad_fn is None
        return tensor if leaf else super().detach(tensor)


class Backwards(Counting):
    def detach(self, tensor):
        return self.Tensor(self, tensor.array[::-1])


class Remembers(Counting):
    """What was cut off comes back where the cut tensor is used."""

    def detach(self, tensor):
        made = super().detach(tensor)
        made.behind = weakref.ref(tensor.grad_fn) if tensor.grad_fn is not None else None
        return made

    def place(self, tensor):
        behind = getattr(tensor, "behind", None)
        return super().place(tensor) if behind is None else behind()


class SwitchedByTheCall:
    """Switches when it is made, and back when its block ends."""

    def __init__(self, engine):
        self.engine, self.before, engine.recording = engine, engine.recording, False

    def __enter__(self):
        pass

    def __exit__(self, *error):
        self.engine.recording = self.before


class AtTheCall(Counting):
    def no_grad(self):
        return SwitchedByTheCall(self)


class BeforeTheCall(SwitchedByTheCall):
    """Switches when the block begins, and in the end back to what was there at the call."""

    def __init__(self, engine):
        self.engine, self.before = engine, engine.recording

    def __enter__(self):
        self.engine.recording = False


class RemembersTheCall(Counting):
    def no_grad(self):
        return BeforeTheCall(self)


class ConstantItself(Counting):
    def detach(self, tensor):
        return super().detach(tensor) if tensor.requires_grad else tensor


class CopiesLeaves(Counting):
    def detach(self, tensor):
        made = super().detach(tensor)
        if tensor.grad_fn is None and tensor.requires_grad:
            made.array = made.array.copy()
        return made


class CopiesTurned(Counting):
    """Shares only memory whose numbers stand one after the other."""

    def detach(self, tensor):
        made = super().detach(tensor)
        made.array = np.ascontiguousarray(made.array)
        return made


class Itself(Counting):
    def detach(self, tensor):
        return tensor


RIGHT = [Counting(), taping(), generating(), subclassing(), numbering()]

MISCONCEIVED = {
    "detach copies": Copy(),
    "detach in place": InPlace(),
    "detached, and a leaf again": LeafAgain(),
    "not restored after an error": NotRestored(),
    "errors swallowed": Swallowing(),
    "an inner block ends the outer one": EndsOuter(),
    "no leaves inside": NoLeaves(),
    "recorded all the same": StillRecorded(),
    "never on again": NeverOn(),
    "the leaves are switched off": SwitchedOff(),
    "no_grad without effect": NoEffect(),
    "another autograd": ThroughTorch(),
}

WRONG = [
    SameNode(),
    said(Off(), "never on again"),
    held := Held(),
    NodeOnDetached(),
    only_generates := OnlyGenerates(),
    said(one_for_all := OneForAll(), "never on again"),
    holds_what_it_cuts := HoldsWhatItCuts(),
    CutsBehind(),
    said(swallowing_and_back := SwallowingAndBack(), "errors swallowed"),
    said(after_a_stop := NotRestoredAfterAStop(), "not restored after an error"),
    products_want_one := ProductsWantOne(),
    moves_are_recorded := MovesAreRecorded(),
    said(leaf_of_a_result := LeafOfAResult(), "detached, and a leaf again"),
    leaf_itself := LeafItself(),
    backwards := Backwards(),
    remembers := Remembers(),
    at_the_call := AtTheCall(),
    RemembersTheCall(),
    constant_itself := ConstantItself(),
    CopiesLeaves(),
    Itself(),
    CopiesTurned(),
]

GUARDS = {
    "`with engine.no_grad():` switches recording off": {"runs": only_generates},
    "Results inside have neither a `grad_fn` nor `requires_grad`": {
        "inside": products_want_one,
        "every": moves_are_recorded,
    },
    "from where the block begins: a call alone changes nothing": {"called": at_the_call},
    "and keep nothing alive": {"kept": held},
    "Leaves stay what they are": {"leaf inside": MISCONCEIVED["the leaves are switched off"]},
    "and can be made inside": {"made inside": MISCONCEIVED["no leaves inside"]},
    "After the block everything is as before it": {"after": one_for_all},
    "also where the block ended in an exception": {"restored": after_a_stop},
    "which comes out": {"passed on": swallowing_and_back},
    "Blocks may stand in one another": {"after an inner block": MISCONCEIVED["an inner block ends the outer one"]},
    "`t.detach()` returns another tensor over the same memory": {
        "shares": MISCONCEIVED["detach copies"],
        "numbers": backwards,
        "original": constant_itself,
        "leaf": leaf_itself,
    },
    "that needs no gradient": {"cut": leaf_of_a_result},
    "without a graph": {"reaches": remembers},
    "t itself keeps its graph": {"original": MISCONCEIVED["detach in place"]},
    "what is returned does not keep that alive": {"alive": holds_what_it_cuts},
}
