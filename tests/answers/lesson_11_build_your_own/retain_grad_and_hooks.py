"""Right and wrong answers to `retain_grad_and_hooks`."""

import weakref

from tests.answers.lesson_11_build_your_own.counted import CountedTensor
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.grad_and_sgd import EveryResult
from tests.answers.lesson_11_build_your_own.numbering import numbering
from tests.answers.lesson_11_build_your_own.taping import taping
from tests.answers.lesson_11_build_your_own.through_torch import ThroughTorch
from tests.answers.said import said


class EachPart(Counting):
    """Calls the hooks of a place when a part arrives there."""

    def applied(self, node, g, keep):
        parts = super().applied(node, g, keep)
        return [
            part if to is None or part is None else super(EachPart, self).hooked(to, part)
            for to, part in zip(node.inputs, parts, strict=True)
        ]

    def hooked(self, place, g):
        return g


class Ignoring(Counting):
    def call(self, hook, g):
        hook(g)


class NoneTaken(Counting):
    def hooked(self, place, g):
        for hook in list(place.hooks.values()):
            g = hook(g)
        if g is not None:
            self.retain(place, g)
        return g

    def passed(self, root, gradient, keep):
        found = super().passed(root, gradient, keep)
        return {place: g for place, g in found.items() if g is not None}

    def applied(self, node, g, keep):
        return (None,) * len(node.inputs) if g is None else super().applied(node, g, keep)


class LastFirst(Counting):
    def hooked(self, place, g):
        place.hooks = dict(reversed(place.hooks.items()))
        try:
            return super().hooked(place, g)
        finally:
            place.hooks = dict(reversed(place.hooks.items()))


class Same(Counting):
    def hooked(self, place, g):
        given = g
        for hook in list(place.hooks.values()):
            changed = hook(given)
            g = g if changed is None else changed
        self.retain(place, g)
        return g


class Lasting(Counting):
    def register_hook(self, tensor, hook):
        handle = super().register_hook(tensor, hook)
        handle.remove = lambda: None
        return handle


class RetainedFirst(Counting):
    def hooked(self, place, g):
        self.retain(place, g)
        for hook in list(place.hooks.values()):
            changed = hook(g)
            g = g if changed is None else changed
        return g


class LeavesAfter(Counting):
    def hooked(self, place, g):
        changed = super().hooked(place, g)
        return g if isinstance(place, CountedTensor) else changed


class NoLeafHooks(Counting):
    def hooked(self, place, g):
        return g if isinstance(place, CountedTensor) else super().hooked(place, g)


class NotRetained(Counting):
    def retain_grad(self, tensor):
        pass


class Unheard(Counting):
    def hooked(self, place, g):
        self.retain(place, g)
        return g


class OneHook(Counting):
    def register_hook(self, tensor, hook):
        self.place(tensor).hooks.clear()
        return super().register_hook(tensor, hook)


class AllAtTheEnd(Counting):
    def hooked(self, place, g):
        self.later.append((place, g))
        return g

    def passed(self, root, gradient, keep):
        self.later = []
        found = super().passed(root, gradient, keep)
        for place, g in self.later:
            found[place] = super().hooked(place, g)
        return found


class LeafFirst(Counting):
    def passed(self, root, gradient, keep):
        self.waiting = []
        found = super().passed(root, gradient, keep)
        for place, g in reversed(self.waiting):
            found[place] = super().hooked(place, g)
        return found

    def hooked(self, place, g):
        self.waiting.append((place, g))
        return g


class Once(Counting):
    """A hook is forgotten when it has run."""

    def hooked(self, place, g):
        g = super().hooked(place, g)
        place.hooks.clear()
        return g


class ArraysToHooks(Counting):
    def call(self, hook, g):
        changed = hook(g.array)
        return None if changed is None else self.lift(changed)


class RemovesAll(Counting):
    def register_hook(self, tensor, hook):
        handle = super().register_hook(tensor, hook)
        handle.remove = handle.place.hooks.clear
        return handle


class OnTheTensor(Counting):
    """Hooks go with the tensor that they were registered on: its node knows it by a weak reference."""

    def register_hook(self, tensor, hook):
        handle = super().register_hook(tensor, hook)
        here = weakref.ref(tensor)
        handle.place.hooks[handle] = lambda g: None if here() is None else hook(g)
        return handle


class NotAtTheRoot(Counting):
    """Calls hooks where a node hands a gradient on, so that nobody calls those of the first place."""

    def passed(self, root, gradient, keep):
        self.root = root
        return super().passed(root, gradient, keep)

    def hooked(self, place, g):
        if place is not self.root:
            return super().hooked(place, g)
        self.retain(place, g)
        return g


class IntoTheSame(Counting):
    """Writes what a hook returns into the array that arrived, which another operand may have been given, too."""

    def call(self, hook, g):
        changed = hook(g)
        if changed is not None:
            g.array[...] = changed.array


class Added(Counting):
    def call(self, hook, g):
        changed = hook(g)
        return None if changed is None else g + changed


class NoHandle(Counting):
    def register_hook(self, tensor, hook):
        super().register_hook(tensor, hook)


class OncePerFunction(Counting):
    """Knows hooks by the function: one that comes again is there already."""

    def hooked(self, place, g):
        seen = {}
        for handle, hook in list(place.hooks.items()):
            if hook in seen.values():
                del place.hooks[handle]
            seen[handle] = hook
        return super().hooked(place, g)


class OnlyInBackward(Counting):
    """A pass of `grad` asks nobody."""

    asking = False

    def grad(self, *args, **kwargs):
        self.asking = True
        try:
            return super().grad(*args, **kwargs)
        finally:
            self.asking = False

    def hooked(self, place, g):
        return g if self.asking else super().hooked(place, g)


RIGHT = [Counting(), taping(), numbering()]

MISCONCEIVED = {
    "once for each part": EachPart(),
    "what a hook returns is ignored": Ignoring(),
    "None is taken for a gradient": NoneTaken(),
    "the last hook first": LastFirst(),
    "each hook gets the same": Same(),
    "remove() without effect": Lasting(),
    "retained before the hooks": RetainedFirst(),
    "every result retains": EveryResult(),
    "leaves after the fact": LeavesAfter(),
    "leaves have no hooks": NoLeafHooks(),
    "retain_grad without effect": NotRetained(),
    "another autograd": ThroughTorch(),
}


class ZerosUnheard(Counting):
    """Calls no hook where zeros arrive."""

    def hooked(self, place, g):
        return super().hooked(place, g) if g.array.any() else g


class RootNotRetained(Counting):
    """Retains what arrives from above, and so nothing at the root."""

    def passed(self, root, gradient, keep):
        retained, root.retained = getattr(root, "retained", None), None
        try:
            return super().passed(root, gradient, keep)
        finally:
            root.retained = retained


class FirstFactor(Counting):
    """Gives what a hook has made to the first factor alone."""

    def applied(self, node, g, keep):
        first, *others = super().applied(node, g, keep)
        return (first, *(None if node.hooks and node.name == "mul" and node.inputs[1] else it for it in others))


class ForAllOfAName(Counting):
    """Keeps hooks by the operation's name."""

    def __init__(self):
        super().__init__()
        self.named = {}

    def hooked(self, place, g):
        if not isinstance(place, CountedTensor):
            place.hooks = self.named.setdefault(place.name, place.hooks)
        return super().hooked(place, g)

    def register_hook(self, tensor, hook):
        place = self.place(tensor)
        if not isinstance(place, CountedTensor):
            place.hooks = self.named.setdefault(place.name, place.hooks)
        return super().register_hook(tensor, hook)


class RemovesTheFirst(Counting):
    """Takes away the oldest hook, whichever handle is asked."""

    def register_hook(self, tensor, hook):
        handle = super().register_hook(tensor, hook)
        hooks = self.place(tensor).hooks
        handle.remove = lambda: hooks.pop(next(iter(hooks), None), None)
        return handle


class RemovesTheLast(Counting):
    """Takes away the newest hook, whichever handle is asked."""

    def register_hook(self, tensor, hook):
        handle = super().register_hook(tensor, hook)
        hooks = self.place(tensor).hooks
        handle.remove = lambda: hooks and hooks.popitem()
        return handle


class RemovesByFunction(Counting):
    """Takes away each hook that is this function."""

    def register_hook(self, tensor, hook):
        handle = super().register_hook(tensor, hook)
        hooks = self.place(tensor).hooks
        handle.remove = lambda: [hooks.pop(one) for one, known in list(hooks.items()) if known is hook]
        return handle


class LastingOnLeaves(Counting):
    def register_hook(self, tensor, hook):
        handle = super().register_hook(tensor, hook)
        if tensor.grad_fn is None:
            handle.remove = lambda: None
        return handle


class HookedRetains(Counting):
    def register_hook(self, tensor, hook):
        self.retain_grad(tensor)
        return super().register_hook(tensor, hook)


WRONG = [
    zeros_unheard := ZerosUnheard(),
    root_not_retained := RootNotRetained(),
    first_factor := FirstFactor(),
    ForAllOfAName(),
    Unheard(),
    OneHook(),
    said(AllAtTheEnd(), "what a hook returns is ignored"),
    said(LeafFirst(), "what a hook returns is ignored"),
    once := Once(),
    arrays_to_hooks := ArraysToHooks(),
    RemovesAll(),
    on_the_tensor := OnTheTensor(),
    not_at_the_root := NotAtTheRoot(),
    into_the_same := IntoTheSame(),
    Added(),
    no_handle := NoHandle(),
    once_per_function := OncePerFunction(),
    only_in_backward := OnlyInBackward(),
    RemovesTheFirst(),
    removes_the_last := RemovesTheLast(),
    RemovesByFunction(),
    LastingOnLeaves(),
    HookedRetains(),
]

EQUIVALENT = {
    "Counting.retain_grad: tensor.grad_fn is not None -> True": "The task speaks of retain_grad() of intermediate results alone.",
    "Counting.retain_grad: tensor.grad_fn is not None -> tensor.grad_fn": "A node is never false.",
    "Counting.retain: getattr(place, 'retained', None) is None -> not getattr(place, 'retained', None)": "A weak reference is never false.",
    "taping.Var.retain_grad: if self.grad_fn: ... -> if True: ...": "The task speaks of retain_grad() of intermediate results alone.",
}

GUARDS = {
    "`t.register_hook(f)`: in each pass": {
        "a hook on the leaf, and two passes": once,
        "asked": only_in_backward,
        "a hook at which zeros arrive": zeros_unheard,
    },
    "when the gradient of t is complete, `f(g)` is called once with it": {
        "a hook that looks": MISCONCEIVED["once for each part"]
    },
    "a tensor": {"a hook that looks": arrays_to_hooks},
    "If f returns a tensor, that is passed on in its place": {
        "a hook that doubles": MISCONCEIVED["what a hook returns is ignored"],
        "a hook that doubles on each of two summands": into_the_same,
        "a hook that doubles on a product": first_factor,
    },
    "None leaves it": {"a hook that looks": MISCONCEIVED["None is taken for a gradient"]},
    "Several hooks run in the order in which they were registered": {
        "two hooks on h": MISCONCEIVED["the last hook first"],
        "one hook, registered twice on h": once_per_function,
    },
    "each on what the one before left": {"two hooks on h": MISCONCEIVED["each hook gets the same"]},
    "the one that the pass begins at": {"a hook on the result that the pass begins at": not_at_the_root},
    "and those that nobody holds any more included": {"a hook on a result that nobody holds any more": on_the_tensor},
    "and on leaves, where they come before anything is added to `grad`": {
        "a hook on the leaf": MISCONCEIVED["leaves after the fact"]
    },
    "The handle that is returned has `remove()`.": {
        "handle": no_handle,
        "a hook that is removed": removes_the_last,
    },
    "an intermediate result gets a `grad`, too": {"h.retain_grad()": MISCONCEIVED["retain_grad without effect"]},
    "what is passed on from it, after all hooks": {
        "a hook that doubles, and h.retain_grad() before it": MISCONCEIVED["retained before the hooks"]
    },
    "also if the pass begins at it": {"retain_grad() on the result that the pass begins at": root_not_retained},
    "Without it `grad` stays None.": {"no hook": MISCONCEIVED["every result retains"]},
}
