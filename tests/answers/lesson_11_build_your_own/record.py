"""Right and wrong answers to `record`."""

import numpy as np

from tests.answers.lesson_11_build_your_own.counted import CountedNode, CountedTensor
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.generating import generating
from tests.answers.lesson_11_build_your_own.numbering import numbering
from tests.answers.lesson_11_build_your_own.subclassing import subclassing
from tests.answers.lesson_11_build_your_own.taping import taping
from tests.answers.lesson_11_build_your_own.through_torch import ThroughTorch
from tests.answers.said import said


class LeftDecides(Counting):
    def needs(self, *operands):
        return self.recording and operands[0].requires_grad


class Everything(Counting):
    def needs(self, *operands):
        return self.recording


class CutAtIndex(Counting):
    def pick(self, a, index):
        return self.Tensor(self, np.asarray(a.array[index]))


class CutAtReshape(Counting):
    def reshape(self, a, shape):
        return self.Tensor(self, a.array.reshape(shape))


class GivenArray(Counting):
    def tensor(self, array, requires_grad=False):
        return self.Tensor(self, np.asarray(array, dtype=np.float64), requires_grad)


class WritableTensor(CountedTensor):
    def __setitem__(self, index, value):
        self.array[index] = value


class Writable(Counting):
    Tensor = WritableTensor


class OverlookingTensor(CountedTensor):
    def __setitem__(self, index, value):
        pass


class Overlooking(Counting):
    """Overlooks what is written."""

    Tensor = OverlookingTensor


class AddingTensor(CountedTensor):
    def __iadd__(self, other):
        self.array += self.engine.lift(other).array
        return self


class AddingToConstantsTensor(AddingTensor):
    def __iadd__(self, other):
        other = self.engine.lift(other)
        if self.requires_grad or other.requires_grad or other.shape != self.shape:
            return self + other
        return super().__iadd__(other)


class AddingToConstants(Counting):
    """Writes in place where nothing is recorded."""

    Tensor = AddingToConstantsTensor


class WritableConstantsTensor(CountedTensor):
    def __setitem__(self, index, value):
        if self.requires_grad:
            raise TypeError("nothing is written in place")
        self.array[index] = value


class WritableConstants(Counting):
    """Writes in place where nothing is recorded."""

    Tensor = WritableConstantsTensor


class FlagByName(Counting):
    def tensor(self, array, *, requires_grad=False):
        return super().tensor(array, requires_grad)


class Adding(Counting):
    Tensor = AddingTensor


class SetOfOperands(Counting):
    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        if made.grad_fn is not None:
            made.grad_fn.inputs = tuple(dict.fromkeys(made.grad_fn.inputs))
        return made


class Operands(Counting):
    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        if made.grad_fn is not None:
            made.grad_fn.inputs = tuple(one if one.requires_grad else None for one in operands)
        return made


class ListedTensor(CountedTensor):
    shape = property(lambda self: list(self.array.shape))


class Listed(Counting):
    Tensor = ListedTensor


class CopyingTensor(CountedTensor):
    node = property(lambda self: self.grad_fn)

    def __init__(self, engine, array, requires_grad=False, grad_fn=None):
        self._node = grad_fn
        super().__init__(engine, array, requires_grad, grad_fn)

    @property
    def grad_fn(self):
        node = self._node
        return node and CountedNode(node.name, node.inputs, node.kept, node.rule)

    @grad_fn.setter
    def grad_fn(self, node):
        self._node = node


class Copying(Counting):
    Tensor = CopyingTensor


class SwappedTensor(CountedTensor):
    def __rsub__(self, other):
        return self - other


class Swapped(Counting):
    Tensor = SwappedTensor


class Whole(Counting):
    def tensor(self, array, requires_grad=False):
        return self.Tensor(self, np.array(array), requires_grad)


class Single(Counting):
    def tensor(self, array, requires_grad=False):
        return self.Tensor(self, np.array(array, dtype=np.float32), requires_grad)


class Absolute(Counting):
    def relu(self, a):
        made = super().relu(a)
        made.array = np.abs(a.array)
        return made


class NoLeaf(Counting):
    def place(self, tensor):
        return tensor.grad_fn


class EachOperation(Counting):
    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        if made.grad_fn is not None:
            made.grad_fn.inputs = made.grad_fn.inputs[:1]
        return made


class Frozen(Counting):
    def place(self, tensor):
        return tensor.grad_fn or tensor


class CopiedTensor(CountedTensor):
    def numpy(self):
        return self.array.copy()


class Copied(Counting):
    Tensor = CopiedTensor


class CalledTensor(CountedTensor):
    def shape(self):
        return self.array.shape


class Called(Counting):
    Tensor = CalledTensor


class BothDecide(Counting):
    def needs(self, *operands):
        return self.recording and all(operand.requires_grad for operand in operands)


class NodesForLeaves(Counting):
    """As in PyTorch, where a node adds up what arrives at a leaf."""

    def place(self, tensor):
        if tensor.requires_grad and tensor.grad_fn is None:
            tensor.adding = getattr(tensor, "adding", None) or CountedNode("add up", (), (), None)
            return tensor.adding
        return tensor.grad_fn


class WithoutConstants(Counting):
    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        if made.grad_fn is not None:
            made.grad_fn.inputs = tuple(one for one in made.grad_fn.inputs if one is not None)
        return made


class LeafUnlessTold(Counting):
    def tensor(self, array, requires_grad=True):
        return super().tensor(array, requires_grad)


class NeverKept(Counting):
    def sum(self, a, axis, keepdims):
        return super().sum(a, axis, False)


class NodeForEachUse(Counting):
    """Puts a new node between a result and each operation that uses it."""

    def place(self, tensor):
        node = tensor.grad_fn
        return super().place(tensor) if node is None else CountedNode(node.name, node.inputs, node.kept, node.rule)


class Unnamed(Counting):
    """Names nodes by the rule itself in place of a text."""

    def record(self, name, array, operands, kept, rule):
        return super().record(rule, array, operands, kept, rule)


class OwnNode(Counting):
    """Lets a leaf be its own node."""

    def tensor(self, array, requires_grad=False):
        made = super().tensor(array, requires_grad)
        if requires_grad:
            made.grad_fn, made.name, made.inputs = made, "leaf", ()
        return made

    def place(self, tensor):
        return tensor if tensor.grad_fn is tensor else super().place(tensor)


class RefusingTensor(CountedTensor):
    def __iadd__(self, other):
        raise TypeError("nothing is written in place")


class Refusing(Counting):
    Tensor = RefusingTensor


class FloatsStay(Counting):
    """Makes numbers of whole ones floats, and leaves floats of any width."""

    def tensor(self, array, requires_grad=False):
        return self.Tensor(self, np.array(array) * 1.0, requires_grad)


class AxisWithoutSign(Counting):
    def sum(self, a, axis, keepdims):
        return super().sum(a, axis and abs(axis) % len(a.shape), keepdims)


class IndexWithoutSign(Counting):
    def pick(self, a, index):
        return super().pick(a, abs(index) if isinstance(index, int) and abs(index) < len(a.array) else index)


class TensorsAloneTensor(CountedTensor):
    def __matmul__(self, other):
        return self.engine.matmul(self, other)


class TensorsAlone(Counting):
    Tensor = TensorsAloneTensor


class CutBesideAnArray(Counting):
    """Gives the numbers back that an array on the right leads to, and no graph."""

    def lift(self, value):
        lifted = super().lift(value)
        lifted.given = isinstance(value, np.ndarray)
        return lifted

    def needs(self, *operands):
        return super().needs(*operands) and not any(getattr(one, "given", False) for one in operands)


class NumberSecondTensor(CountedTensor):
    def __rsub__(self, other):
        return self.engine.subtracted(self, self.engine.lift(other))


class NumberSecond(Counting):
    """Has an operation of its own for a number on the left of -, whose tensor comes first."""

    Tensor = NumberSecondTensor

    def subtracted(self, a, number):
        def rule(node, g):
            return self.reduced(g * -1.0, shape), None

        shape = a.shape
        return self.record("from a number", number.array - a.array, (a, number), (), rule)


RIGHT = [Counting(), taping(), generating(), subclassing(), numbering(), NumberSecond()]

MISCONCEIVED = {
    "the left operand decides": LeftDecides(),
    "everything is recorded": Everything(),
    "the graph ends at an index or a reshape": CutAtIndex(),
    "the given array is kept": GivenArray(),
    "written in place": Writable(),
    "+= writes into its operand": Adding(),
    "one entry for two operands": SetOfOperands(),
    "operands in place of their nodes": Operands(),
    "a new node each time": Copying(),
    "a number on the left": Swapped(),
    "whole numbers stay whole": Whole(),
    "another autograd": ThroughTorch(),
}


class DoublesByNumber(Counting):
    """Takes t + t for t * 2."""

    def add(self, a, b):
        return self.multiply(a, self.lift(2.0)) if a is b else super().add(a, b)


class CopiesLeavesAlone(Counting):
    def tensor(self, array, requires_grad=False):
        copied = np.array if requires_grad else np.asarray
        return self.Tensor(self, copied(array, dtype=np.float64), requires_grad)


class ScalingTensor(CountedTensor):
    def __imul__(self, other):
        self.array *= self.engine.lift(other).array
        return self


class ScalesInPlace(Counting):
    Tensor = ScalingTensor


class TurnedDifference(Counting):
    def record(self, name, array, operands, kept, rule):
        result = super().record(name, array, operands, kept, rule)
        if name == "sub" and result.grad_fn is not None:
            result.grad_fn.inputs = result.grad_fn.inputs[::-1]
        return result


WRONG = [
    said(CutAtReshape(), "the graph ends at an index or a reshape"),
    Single(),
    *(DoublesByNumber(), CopiesLeavesAlone(), ScalesInPlace()),
    absolute := Absolute(),
    NoLeaf(),
    said(EachOperation(), "one entry for two operands"),
    frozen := Frozen(),
    listed := Listed(),
    copied := Copied(),
    Called(),
    BothDecide(),
    nodes_for_leaves := NodesForLeaves(),
    WithoutConstants(),
    LeafUnlessTold(),
    NeverKept(),
    node_for_each_use := NodeForEachUse(),
    unnamed := Unnamed(),
    own_node := OwnNode(),
    refusing := Refusing(),
    floats_stay := FloatsStay(),
    axis_without_sign := AxisWithoutSign(),
    IndexWithoutSign(),
    tensors_alone := TensorsAlone(),
    CutBesideAnArray(),
    turned := TurnedDifference(),
    said(Overlooking(), "written in place"),
    said(AddingToConstants(), "+= writes into its operand"),
    said(WritableConstants(), "written in place"),
    FlagByName(),
]

EQUIVALENT = {
    "Counting.lift: np.asarray(value, dtype=np.float64) -> np.asarray(value)": "The other operand of an operation that is recorded has float64, and so has the result.",
    "taping.of: np.asarray(value, dtype=float) -> np.asarray(value)": "The other operand of an operation that is recorded has float64, and so has the result.",
    "Counting.record: if not self.needs(*operands): ... | node = CountedNode(name, tuple((self.place(operand) for operand in operands)), kept,... -> (swapped)": "A node that nobody refers to goes at once.",
    "taping.made: if not (state['on'] and any((operand.requires_grad for operand, _ in pulls))): ... | entry = types.SimpleNamespace(name=... -> (swapped)": "A node that nobody refers to goes at once.",
}

GUARDS = {
    "a tensor with a copy of the numbers": {"copied": MISCONCEIVED["the given array is kept"]},
    "its array (no copy;": {"own array": copied},
    "its shape as a tuple": {"shape": listed},
    "a number or an array may stand on the right, a number on the left, too": {
        "value": MISCONCEIVED["a number on the left"],
        "beside": tensors_alone,
    },
    "as in NumPy": {"random": absolute},
    "negative ones count from the end": {"as in NumPy": axis_without_sign},
    "a text; an entry for each operand, in order": {"named": unnamed, "in order": turned},
    "or None where no gradient is needed": {"constant": frozen},
    "A result needs a gradient if any operand does.": {"flags": MISCONCEIVED["the left operand decides"]},
    "Then it has a `grad_fn`, a node.": {"flags": MISCONCEIVED["the graph ends at an index or a reshape"]},
    "Where no operand needs one, nothing is recorded.": {"flags": MISCONCEIVED["everything is recorded"]},
    "`node.inputs` has one entry for each operand, twice the same in `t * t`.": {
        "entries": MISCONCEIVED["one entry for two operands"]
    },
    "finds every node once that it depends on": {"both": node_for_each_use},
    "and the leaves themselves": {"leaf": nodes_for_leaves},
    "A leaf with `requires_grad=True` has no `grad_fn`.": {"flags": own_node},
    "Asked twice, `t.grad_fn` is the same object.": {"same": MISCONCEIVED["a new node each time"]},
    "A change of the array that a tensor was made of does not change the tensor.": {
        "copied": MISCONCEIVED["the given array is kept"]
    },
    "Numbers become float64.": {"whole": floats_stay},
    "`t[0] = 7.0` raises": {"assigned": MISCONCEIVED["written in place"]},
    "and `t += u` leaves the tensor alone that t was before": {
        "in place": MISCONCEIVED["+= writes into its operand"],
        "runs": refusing,
    },
}
