"""Right and wrong answers to `custom_function`."""

import numpy as np

from tests.answers.lesson_11_build_your_own.counted import CountedNode, CountedTensor
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.handed_out import CountedContext
from tests.answers.lesson_11_build_your_own.numbering import numbering
from tests.answers.lesson_11_build_your_own.taping import taping
from tests.answers.lesson_11_build_your_own.through_torch import ThroughTorch
from tests.answers.said import said


def with_function(changed):
    """Return the counting engine with another base class for functions."""
    engine = Counting()
    engine.Function = type("Function", (changed,), {"engine": engine})
    return engine


class Plain:
    """The counting engine's own way, in parts that can be changed one by one."""

    engine = None

    @classmethod
    def apply(cls, *given):
        engine, ctx = cls.engine, cls.context()
        operands = tuple(one if isinstance(one, CountedTensor) else engine.lift(one) for one in given)
        ctx.needs_input_grad = cls.needs(operands)
        array = cls.value(ctx, given)
        return cls.result(cls.__name__, np.asarray(array), operands, ctx)

    @classmethod
    def context(cls):
        return CountedContext()

    @classmethod
    def needs(cls, operands):
        return tuple(operand.requires_grad for operand in operands)

    @classmethod
    def value(cls, ctx, given):
        return cls.forward(ctx, *(one.array if isinstance(one, CountedTensor) else one for one in given))

    @classmethod
    def result(cls, name, array, operands, ctx):
        return cls.engine.record(name, array, operands, (ctx,), cls.rule)

    @classmethod
    def rule(cls, node, g):
        parts = cls.backward(node.kept[0], g.array)
        parts = parts if isinstance(parts, tuple) else (parts,)
        return cls.lifted(cls.complete(parts, node))

    @classmethod
    def complete(cls, parts, node):
        if len(parts) != len(node.inputs):
            raise RuntimeError(f"{len(parts)} gradients for {len(node.inputs)} inputs")
        return parts

    @classmethod
    def lifted(cls, parts):
        return tuple(None if part is None else cls.engine.lift(part) for part in parts)


class Recording(Plain):
    @classmethod
    def apply(cls, *given):
        ctx = cls.context()
        ctx.needs_input_grad = tuple(isinstance(one, CountedTensor) and one.requires_grad for one in given)
        return cls.forward(ctx, *given)


class Again(Plain):
    @classmethod
    def value(cls, ctx, given):
        super().value(ctx, given)
        return super().value(ctx, given)


class AllNeed(Plain):
    @classmethod
    def needs(cls, operands):
        return (True,) * len(operands)


class OneContext(Plain):
    @classmethod
    def context(cls):
        if "_ctx" not in vars(cls):
            cls._ctx = CountedContext()
        return cls._ctx


class Padded(Plain):
    @classmethod
    def complete(cls, parts, node):
        return super().complete((*parts, *(None,) * (len(node.inputs) - len(parts))), node)


class NoGraph(Plain):
    @classmethod
    def result(cls, name, array, operands, ctx):
        return cls.engine.tensor(array)


class TensorsOnly(Plain):
    @classmethod
    def apply(cls, *given):
        return super().apply(*given) if all(one.requires_grad in (True, False) for one in given) else None


class NoneRefused(Plain):
    @classmethod
    def lifted(cls, parts):
        if any(part is None for part in parts):
            raise TypeError("a gradient is None")
        return super().lifted(parts)


class ForConstants(Plain):
    @classmethod
    def result(cls, name, array, operands, ctx):
        made = super().result(name, array, operands, ctx)
        made.grad_fn = made.grad_fn or (object() if cls.engine.recording else None)
        return made


class TensorsInside(Plain):
    @classmethod
    def rule(cls, node, g):
        parts = cls.backward(node.kept[0], g)
        return cls.lifted(cls.complete(parts if isinstance(parts, tuple) else (parts,), node))


class NoneIsNotExpected(Counting):
    """Takes it that every input that needs a gradient is given one."""

    def applied(self, node, g, keep):
        parts = super().applied(node, g, keep)
        for to, part in zip(node.inputs, parts, strict=True):
            if to is not None and part is None:
                raise AttributeError("'NoneType' object has no attribute 'shape'")
        return parts


class EachUse(Counting):
    """Has a function's rule run once for each operation that uses its result, and adds up."""

    def passed(self, root, gradient, keep):
        self.uses = {}
        for node in [root, *self.counted(root)]:
            for to in getattr(node, "inputs", ()):
                self.uses[to] = self.uses.get(to, 0) + 1
        return super().passed(root, gradient, keep)

    def applied(self, node, g, keep):
        uses = self.uses.get(node, 1)
        if node.name in ("exp", "log", "mul", "add", "sub", "sum", "index", "reshape", "matmul", "relu"):
            return super().applied(node, g, keep)
        parts = [super(EachUse, self).applied(node, g * (1.0 / uses), True) for _ in range(uses)]
        return [None if some[0] is None else sum(some[1:], some[0]) for some in zip(*parts, strict=True)]


class Eager(Plain):
    """Runs backward with ones at once, and multiplies later."""

    @classmethod
    def value(cls, ctx, given):
        array = super().value(ctx, given)
        cls.backward(ctx, np.ones(np.shape(array)))
        return array


class FirstOnly(Plain):
    @classmethod
    def needs(cls, operands):
        return (True, *(False,) * (len(operands) - 1))


class Summed(Plain):
    @classmethod
    def lifted(cls, parts):
        return tuple(None if part is None else cls.engine.lift(np.sum(part)) for part in parts)


class AlwaysRecorded(Plain):
    """Makes a node with recording off, too."""

    @classmethod
    def result(cls, name, array, operands, ctx):
        before, cls.engine.recording = cls.engine.recording, True
        try:
            return super().result(name, array, operands, ctx)
        finally:
            cls.engine.recording = before


class NumbersAsArrays(Plain):
    @classmethod
    def value(cls, ctx, given):
        return cls.forward(ctx, *(one.array if isinstance(one, CountedTensor) else np.asarray(one) for one in given))


class MoreIsFine(Plain):
    @classmethod
    def complete(cls, parts, node):
        return super().complete(parts[: len(node.inputs)], node)


class AloneIfOne(Plain):
    """Takes what a backward of one input returns for its gradient, also where it is a tuple."""

    @classmethod
    def rule(cls, node, g):
        parts = cls.backward(node.kept[0], g.array)
        parts = parts if isinstance(parts, tuple) and len(node.inputs) > 1 else (parts,)
        return cls.lifted(cls.complete(parts, node))


class FlagsOfTensors(Plain):
    @classmethod
    def needs(cls, operands):
        return tuple(operand.requires_grad for operand in operands if operand.shape)


class TensorsSaved(Plain):
    @classmethod
    def context(cls):
        ctx = CountedContext()
        lift = cls.engine.lift
        ctx.save_for_backward = lambda *arrays: setattr(ctx, "saved_tensors", tuple(map(lift, arrays)))
        return ctx


class ByValueError(Plain):
    @classmethod
    def complete(cls, parts, node):
        if len(parts) != len(node.inputs):
            raise ValueError(f"{len(parts)} gradients for {len(node.inputs)} inputs")
        return parts


class TensorsToForward(Plain):
    @classmethod
    def value(cls, ctx, given):
        made = cls.forward(ctx, *(one.detach() if isinstance(one, CountedTensor) else one for one in given))
        ctx.saved_tensors = tuple(one.array for one in ctx.saved_tensors)
        return made.array


class OneNodeMore(Plain):
    """Multiplies the result by 1, with an operation of the engine's."""

    @classmethod
    def result(cls, name, array, operands, ctx):
        return super().result(name, array, operands, ctx) * 1.0


class Single(Plain):
    @classmethod
    def value(cls, ctx, given):
        return super().value(ctx, given).astype(np.float32)


class ForEachInput(Plain):
    """Has backward run for each input that there is, and takes that input's gradient."""

    @classmethod
    def rule(cls, node, g):
        return tuple(super(ForEachInput, cls).rule(node, g)[n] for n in range(len(node.inputs)))


class FirstPart(Counting):
    """Lets the backward of a function run as soon as something has arrived."""

    def counted(self, root):
        mine = self.Function
        names = {kind.__name__ for kind in mine.__subclasses__()}
        return {to: 1 if getattr(to, "name", None) in names else n for to, n in super().counted(root).items()}


class WithZeros(Counting):
    """Has the backward of a function run with zeros where nothing has arrived."""

    def record(self, name, array, operands, kept, rule):
        made = super().record(name, array, operands, kept, rule)
        if made.grad_fn is not None:
            made.grad_fn.shape = array.shape
        return made

    def applied(self, node, g, keep):
        parts = list(super().applied(node, g, keep))
        for n, to in enumerate(node.inputs):
            if (
                parts[n] is None
                and isinstance(to, CountedNode)
                and any(isinstance(it, CountedContext) for it in to.kept)
            ):
                parts[n] = self.tensor(np.zeros(to.shape))
        return parts


class ZerosForLeaves(Plain):
    """Makes zeros of a None that a leaf is given."""

    @classmethod
    def complete(cls, parts, node):
        pairs = zip(super().complete(parts, node), node.inputs, strict=True)
        return tuple(
            np.zeros(to.shape) if part is None and isinstance(to, CountedTensor) else part for part, to in pairs
        )


class ZerosForNone(Plain):
    """Makes zeros of each None that an input is given that needs a gradient."""

    @classmethod
    def rule(cls, node, g):
        pairs = zip(super().rule(node, g), node.inputs, strict=True)
        return tuple(g * 0.0 if part is None and to is not None else part for part, to in pairs)


class NoneMoreIsFine(Plain):
    """Overlooks gradients that are too many where they are None."""

    @classmethod
    def complete(cls, parts, node):
        while len(parts) > len(node.inputs) and parts[-1] is None:
            parts = parts[:-1]
        return super().complete(parts, node)


class TuplesOnly(Plain):
    @classmethod
    def rule(cls, node, g):
        parts = cls.backward(node.kept[0], g.array)
        if not isinstance(parts, tuple):
            raise RuntimeError("backward returns a tuple, with a gradient for each input")
        return cls.lifted(cls.complete(parts, node))


class SlottedContext:
    __slots__ = ("needs_input_grad", "saved_tensors")

    def save_for_backward(self, *arrays):
        self.saved_tensors = arrays


class Slotted(Plain):
    @classmethod
    def context(cls):
        return SlottedContext()


class ConstantsToo(Plain):
    """Puts what backward returns for a constant into its `.grad`."""

    @classmethod
    def result(cls, name, array, operands, ctx):
        ctx.operands = operands
        return super().result(name, array, operands, ctx)

    @classmethod
    def complete(cls, parts, node):
        parts = super().complete(parts, node)
        for part, operand in zip(parts, node.kept[0].operands, strict=True):
            if part is not None and not operand.requires_grad:
                operand.grad = cls.engine.lift(part)
        return parts


class Backwards(Plain):
    """Hands the gradients of several inputs on in the wrong order."""

    @classmethod
    def complete(cls, parts, node):
        parts = super().complete(parts, node)
        return (parts[1], parts[0], *parts[2:]) if len(parts) > 2 else parts


class Shifted(Plain):
    """Takes the gradients for the inputs that need one, in their order, whatever inputs stand between."""

    @classmethod
    def complete(cls, parts, node):
        left = iter(super().complete(parts, node))
        return [None if entry is None else next(left) for entry in node.inputs]


class NonesLast(Plain):
    """Drops each None, and fills up with None at the end."""

    @classmethod
    def lifted(cls, parts):
        return super().lifted(sorted(parts, key=lambda part: part is None))


RIGHT = [Counting(), taping(), numbering()]


class TensorsNeed(Plain):
    """Takes every tensor, here one with a shape, for one that needs a gradient."""

    @classmethod
    def needs(cls, operands):
        return tuple(bool(operand.shape) for operand in operands)


MISCONCEIVED = {
    "the derivative of forward": with_function(Recording),
    "backward for each part": EachUse(),
    "forward again": with_function(Again),
    "everything needs a gradient": with_function(AllNeed),
    "every tensor needs a gradient": with_function(TensorsNeed),
    "one ctx for all calls": with_function(OneContext),
    "too few, and silent": with_function(Padded),
    "a result without a graph": with_function(NoGraph),
    "tensors only": with_function(TensorsOnly),
    "None refused": with_function(NoneRefused),
    "a node for constants": with_function(ForConstants),
    "tensors inside": with_function(TensorsInside),
    "another autograd": ThroughTorch(),
}


class FlagsOfLeaves(Plain):
    @classmethod
    def needs(cls, operands):
        return tuple(operand.requires_grad and operand.grad_fn is None for operand in operands)


class OneSaved(Plain):
    """What was saved alone is no tuple."""

    @classmethod
    def context(cls):
        return type("Ctx", (), {"save_for_backward": OneSaved.save})()

    def save(self, *arrays):
        self.saved_tensors = arrays[0] if len(arrays) == 1 else arrays


class AlwaysNeeded(Plain):
    """Of constants it makes a leaf that requires a gradient."""

    @classmethod
    def result(cls, name, array, operands, ctx):
        if not any(operand.requires_grad for operand in operands):
            return cls.engine.tensor(array, requires_grad=True)
        return super().result(name, array, operands, ctx)


class Forgetful(Plain):
    """What a ctx holds is gone after a pass, also where the graph is retained."""

    @classmethod
    def rule(cls, node, g):
        parts = super().rule(node, g)
        vars(node.kept[0]).clear()
        return parts


class ArraysAreTuples(Plain):
    """Takes an array for as many gradients as it has entries."""

    @classmethod
    def complete(cls, parts, node):
        if len(parts) == 1 and len(node.inputs) > 1 and np.ndim(parts[0]):
            parts = tuple(parts[0])
        return super().complete(parts, node)


class NoneAlone(Plain):
    """Takes a None that stands alone for no gradients at all."""

    @classmethod
    def complete(cls, parts, node):
        if len(parts) == 1 and parts[0] is None:
            raise RuntimeError("backward returned 0 gradients")
        return super().complete(parts, node)


WRONG = [
    *map(with_function, (FlagsOfLeaves, OneSaved, AlwaysNeeded, Forgetful)),
    said(with_function(ArraysAreTuples), "too few, and silent"),
    said(NoneIsNotExpected(), "None refused"),
    said(with_function(Eager), "backward for each part"),
    with_function(FirstOnly),
    with_function(Summed),
    always_recorded := with_function(AlwaysRecorded),
    numbers_as_arrays := with_function(NumbersAsArrays),
    with_function(MoreIsFine),
    alone_if_one := with_function(AloneIfOne),
    with_function(FlagsOfTensors),
    tensors_saved := with_function(TensorsSaved),
    with_function(ByValueError),
    said(tensors_to_forward := with_function(TensorsToForward), "tensors inside"),
    one_node_more := with_function(OneNodeMore),
    single := with_function(Single),
    for_each_input := with_function(ForEachInput),
    first_part := FirstPart(),
    with_zeros := WithZeros(),
    zeros_for_leaves := with_function(ZerosForLeaves),
    with_function(ZerosForNone),
    none_more_is_fine := with_function(NoneMoreIsFine),
    tuples_only := with_function(TuplesOnly),
    slotted := with_function(Slotted),
    constants_too := with_function(ConstantsToo),
    backwards := with_function(Backwards),
    with_function(Shifted),
    with_function(NonesLast),
    said(with_function(NoneAlone), "None refused"),
    said(with_function(TensorsNeed), "every tensor needs a gradient"),
]

EQUIVALENT = {
    "CountedContext: saved_tensors = () -> (dropped)": "The task says nothing of saved_tensors where nothing was saved.",
    "CountedFunction: engine = None -> (dropped)": "Each engine gives its own class the name.",
    "CountedFunction.apply.rule: return tuple((None if part is None else engine.lift(part) for part in parts)) -> return parts": "This engine's rules compute with arrays as with tensors.",
    "taping.Context: saved_tensors = () -> (dropped)": "The task says nothing of saved_tensors where nothing was saved.",
    "taping.Function.apply.pull.pulled: answers.get('to') is not g -> answers.get('to') != g": "Its tensors are equal where they are the same.",
    "taping.Function.apply.pull.pulled: if len(parts) != len(given): ... | answers.update(to=g, parts=parts) -> (swapped)": "What is remembered of a pass that raises is not read again.",
    "taping.Function.apply: np.asarray(array, dtype=float) -> np.asarray(array)": "The results of forward that are given are arrays of float64.",
}

GUARDS = {
    "It gives forward NumPy's arrays": {"types": tensors_to_forward},
    "(and what is no tensor as it is)": {"as it is": numbers_as_arrays},
    "takes an array, and returns a tensor of your engine": {"dtype": single},
    "with one node if an input needs a gradient": {
        "made": MISCONCEIVED["a result without a graph"],
        "nodes": one_node_more,
        "not made": MISCONCEIVED["a node for constants"],
    },
    "(and none inside `no_grad`)": {"quiet": always_recorded},
    "forward runs once.": {"forward": MISCONCEIVED["forward again"]},
    "In a pass backward runs once": {
        "backward": MISCONCEIVED["backward for each part"],
        "mixed backward": for_each_input,
    },
    "with an array": {"types": MISCONCEIVED["tensors inside"]},
    "after all of its gradient has arrived": {"value": first_part},
    "and not at all where none arrives": {"not run": with_zeros},
    "It returns a tuple with a gradient, an array or None, for each input of forward": {
        "value": backwards,
        "shape": alone_if_one,
    },
    "or one alone, in no tuple, if forward has one": {"runs": tuples_only},
    "None says that nothing arrives there": {"given": zeros_for_leaves},
    "also where the input needs a gradient": {"runs": MISCONCEIVED["None refused"]},
    "What it returns for an input that needs none goes nowhere.": {"constant": constants_too},
    "Another number of gradients is a RuntimeError": {
        "too few": MISCONCEIVED["too few, and silent"],
        "too many": none_more_is_fine,
    },
    "Each call of `apply` has a `ctx` of its own": {"value": MISCONCEIVED["one ctx for all calls"]},
    "`save_for_backward(*arrays)`, then `saved_tensors`": {"types": tensors_saved},
    "`needs_input_grad`, with True or False for each input": {"needs": MISCONCEIVED["everything needs a gradient"]},
    "and whatever attributes one sets": {"runs": slotted},
}
