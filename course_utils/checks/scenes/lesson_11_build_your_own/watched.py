"""Passes that are watched by hooks, which run on PyTorch's tensors as on those of an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

NUMBERS = (0.5, 1.25, 2.0)

# Gets a leaf, and a function that notes a gradient under a name. Returns tensors, or None, whose numbers are compared.
Watched: TypeAlias = Callable[[Any, Callable[[str, Any], None]], dict[str, Any]]


def _used_twice(x: Any) -> tuple[Any, Any]:
    h = x.exp()
    return h, (h * h + h * 2.0).sum()


def _plain(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)
    y.backward()
    return {"x.grad": x.grad, "h.grad": _grad(h)}


def _retained(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)
    h.retain_grad()
    y.backward()
    return {"x.grad": x.grad, "h.grad": h.grad}


def _hooked(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)
    h.register_hook(lambda g: note("h", g))
    y.backward()
    return {"x.grad": x.grad}


def _changed(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)
    h.register_hook(lambda g: g * 2.0)
    y.backward()
    return {"x.grad": x.grad}


def _changed_only(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)
    h.register_hook(lambda g: g * 2.0)
    y.backward()
    return {"h.grad": _grad(h)}


def _changed_and_retained(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)
    h.retain_grad()
    h.register_hook(lambda g: g * 2.0)
    y.backward()
    return {"x.grad": x.grad, "h.grad": h.grad}


def _in_turn(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)

    def first(g: Any) -> Any:
        note("first", g)
        return g * 2.0

    def second(g: Any) -> Any:
        note("second", g)
        return g + 1.0

    h.register_hook(first)
    h.register_hook(second)
    y.backward()
    return {"x.grad": x.grad}


def _twice(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)

    def looks(g: Any) -> None:
        note("h", g)

    h.register_hook(looks)
    h.register_hook(looks)
    y.backward()
    return {"x.grad": x.grad}


def _leaf(x: Any, note: Any) -> dict[str, Any]:
    def halved(g: Any) -> Any:
        note("x", g)
        return g * 0.5

    x.register_hook(halved)
    (x * x + x * 3.0).sum().backward()
    return {"x.grad": x.grad}


def _removed(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)
    h.register_hook(lambda g: g * 2.0)
    handle = h.register_hook(lambda g: g * 5.0)
    handle.remove()
    y.backward()
    return {"x.grad": x.grad}


def _middle_removed(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)
    h.register_hook(lambda g: note("h", g))
    second = h.register_hook(lambda g: g * 5.0)
    h.register_hook(lambda g: note("h", g))
    second.remove()
    y.backward()
    return {"x.grad": x.grad}


def _one_of_twice_removed(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)

    def looks(g: Any) -> None:
        note("h", g)

    h.register_hook(looks)
    h.register_hook(looks).remove()
    y.backward()
    return {"x.grad": x.grad}


def _removed_from_leaf(x: Any, note: Any) -> dict[str, Any]:
    first, second = x.register_hook(lambda g: g * 5.0), x.register_hook(lambda g: note("x", g))
    first.remove()
    (x * x + x * 3.0).sum().backward()
    second.remove()
    x.grad = None
    (x * 3.0).sum().backward()
    return {"x.grad": x.grad}


def _downwards(x: Any, note: Any) -> dict[str, Any]:
    h = x.exp()
    k = h * 3.0
    y = k.log()
    for name, tensor in {"x": x, "k": k, "y": y, "h": h}.items():
        tensor.register_hook(lambda g, name=name: note(name, g))
    y.sum().backward()
    return {"x.grad": x.grad}


def _root(x: Any, note: Any) -> dict[str, Any]:
    y = (x * x).sum()
    y.register_hook(lambda g: g * 3.0)
    y.backward()
    return {"x.grad": x.grad}


def _dropped(x: Any, note: Any) -> dict[str, Any]:
    def hooked() -> Any:
        h = x * 2.0
        h.retain_grad()
        h.register_hook(lambda g: note("h", g))
        return (h * 3.0).sum()

    hooked().backward()
    return {"x.grad": x.grad}


def _summands(x: Any, note: Any) -> dict[str, Any]:
    a, b = x * 2.0, x.exp()
    for summand in (a, b):
        summand.register_hook(lambda g: g * 2.0)
    (a + b).sum().backward()
    return {"x.grad": x.grad}


def _each_pass(x: Any, note: Any) -> dict[str, Any]:
    x.register_hook(lambda g: note("x", g))
    (x * x).sum().backward()
    (x * 3.0).sum().backward()
    return {}


def _root_retained(x: Any, note: Any) -> dict[str, Any]:
    y = (x * x).sum()
    y.retain_grad()
    y.backward()
    return {"x.grad": x.grad, "y.grad": y.grad}


def _zeros(x: Any, note: Any) -> dict[str, Any]:
    h, y = _used_twice(x)
    h.register_hook(lambda g: note("h", g))
    (y * 0.0).backward()
    return {"x.grad": x.grad}


def _factors(x: Any, note: Any) -> dict[str, Any]:
    product = x.exp() * (x * 3.0)
    product.register_hook(lambda g: g * 2.0)
    product.sum().backward()
    return {"x.grad": x.grad}


def _grad(tensor: Any) -> Any:
    """Return the `.grad` of a result. PyTorch warns where it has none, and that is not what is tried."""
    return tensor.grad if type(tensor).__module__ != "torch" else None


WATCHED: dict[str, Watched] = {
    "no hook": _plain,
    "h.retain_grad()": _retained,
    "a hook that looks": _hooked,
    "a hook that doubles": _changed,
    "a hook that doubles, and h.retain_grad() before it": _changed_and_retained,
    "two hooks on h": _in_turn,
    "a hook on the leaf": _leaf,
    "a hook that is removed": _removed,
    "the second of three hooks removed": _middle_removed,
    "one hook, registered twice on h and removed once": _one_of_twice_removed,
    "two hooks on the leaf, one removed before a pass and one after it": _removed_from_leaf,
    "a hook on each of a chain": _downwards,
    "a hook on the leaf, and two passes": _each_pass,
    "a hook on the result that the pass begins at": _root,
    "a hook on a result that nobody holds any more": _dropped,
    "a hook that doubles on each of two summands": _summands,
    "one hook, registered twice on h": _twice,
    "retain_grad() on the result that the pass begins at": _root_retained,
    "a hook at which zeros arrive": _zeros,
    "a hook that doubles on a product": _factors,
    "a hook that doubles, and no h.retain_grad()": _changed_only,
}
