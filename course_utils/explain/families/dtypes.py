"""Numbers of the wrong kind for a layer: integers or floating point, their precision, rows that are not there."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.families.shapes import layer_at_work, layer_input, operands
from course_utils.explain.naming import argument, receiver
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, operand, written
from course_utils.graph.memory import dtype_name

_TYPES = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "bfloat16": "bfloat16",
    "long int": "int64",
    "unsigned char": "uint8",
    "byte": "uint8",
    "short": "int16",
    "char": "int8",
}


def _dtypes(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, layer = layer_at_work(s)
    first, second = (_TYPES.get(it.lower(), it.lower()) for it in (m[1], m[2]))
    given = layer_input(s)
    if layer is not None and given is not None:
        parameter = next(iter(layer._parameters.values()), None)
        own = dtype_name(parameter.dtype) if parameter is not None else second
        got = dtype_name(given.dtype)
        if got == own:
            return _own_parts(s, name, layer)
        what = _argument_name(s) or "x"
        why = f"`{name}` holds {own} and was given {got}. PyTorch does not convert by itself."
        fix = f"{what} = {what}.to({name}.weight.dtype)" if own not in ("float32",) else f"{what} = {what}.float()"
        if given.dtype == torch.uint8:
            fix += " / 255  # if these are the bytes of images: between 0 and 1"
        return card("dtype-mismatch", f"`{name}` is {own}, but its input is {got}", why, fix, s.needed())
    return _mixed(s, first, second)


def _mixed(s: Situation, first: str, second: str) -> Explanation:
    """An operation by hand on tensors of several dtypes; those of the message where the tensors have no names."""
    given = _tensors(s)
    others = [it for it in given if it[1].dtype != given[0][1].dtype]
    if not others:
        left, right, _ = operands(s)
        why = f"This operation does not convert by itself: one side is {first}, the other {second}."
        fix = f"{right} = {right}.to({left}.dtype)" if right.isidentifier() else "# convert one of the two: .float()"
        return card("dtype-mismatch", f"{first} meets {second}", why, fix, s.needed(), False)
    (left, one), (right, other) = given[0], others[0]
    first, second = dtype_name(one.dtype), dtype_name(other.dtype)
    why = f"This operation does not convert by itself: `{left}` is {first}, `{right}` {second}."
    most = [it.dtype for _, it in given].count(other.dtype) > len(given) // 2
    if most or (other.is_floating_point() and not one.is_floating_point()):  # the first is what to convert
        left, right = right, left
    fix = f"{right} = {right}.to({left}.dtype)" if right.isidentifier() else f"{operand(right)}.to({left}.dtype)"
    return card("dtype-mismatch", f"{first} meets {second}", why, fix, s.needed())


def _half_and_double(s: Situation, m: re.Match[str]) -> Explanation | None:
    """A product of two tensors, of which one was brought to half precision, or comes from NumPy."""
    found = _mixed(s, *(_TYPES.get(it.lower(), it.lower()) for it in (m[1], m[2])))
    why = f"{found.why} float64 most often comes from NumPy, float16 and bfloat16 from .half() or autocast."
    return card("half-and-double", found.headline, why, found.fix, found.where, found.certain)


def _own_parts(s: Situation, name: str, layer: torch.nn.Module) -> Explanation | None:
    """A layer whose own parameters differ: one of them was converted, or put in its place, alone."""
    parts = {key: dtype_name(it.dtype) for key, it in layer._parameters.items() if it is not None}
    if len(set(parts.values())) < 2:
        return None
    why = f"Of `{name}`, " + ", ".join(f"{key} is {dtype}" for key, dtype in parts.items()) + "."
    fix = f"{name}.to({name}.{next(iter(parts))}.dtype)  # converts all of them"
    return card("dtype-mismatch", f"the parameters of `{name}` are of several dtypes", why, fix, s.needed())


def _several(s: Situation, m: re.Match[str]) -> Explanation | None:
    """An operation on more than two tensors, whose message names the dtypes by the way, or does not."""
    kinds = [*dict.fromkeys(_TYPES[it.lower()] for it in re.findall(r"\w+", m[1]) if it.lower() in _TYPES)]
    return _mixed(s, *(kinds[:2] if len(kinds) > 1 else ("one dtype", "another")))


def _tensors(s: Situation) -> list[tuple[str, torch.Tensor]]:
    """Return what the failing operation was given that is a tensor and has a name, in its order."""
    node = s.node
    parts: list[ast.expr | None] = []
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        parts = [node.target, node.value]
    elif isinstance(node, ast.Call):
        parts = [receiver(node), *node.args, *(it.value for it in node.keywords)]
    parts = [inner for it in parts for inner in (it.elts if isinstance(it, ast.List | ast.Tuple) else [it])]
    values = [(written(it), s.here.value(it)) for it in parts if it is not None] if s.here is not None else []
    return [(name, it) for name, it in values if name and is_a(it, torch.Tensor)]


def _argument_name(s: Situation) -> str:
    text = written(argument(s.node, 0))
    return text if text.isidentifier() else ""


def _indices(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, layer = layer_at_work(s)
    own = name or "embedding"
    given = layer_input(s)
    what = _argument_name(s) or written(argument(s.node, 0)) or "its input"
    shown = "its input" if what == "its input" else f"`{what}`"
    dtype = dtype_name(given.dtype) if given is not None else m[1]
    why = f"`{own}` looks up rows by their numbers, so it takes integers; {shown} is {dtype}."
    fix = f"{operand(what)}.long()" if what != "its input" else "# .long() on what is looked up"
    return card("index-dtype", f"`{own}` was given {dtype} numbers to look up", why, fix, s.needed(), layer is not None)


def _index_range(s: Situation, m: re.Match[str]) -> Explanation | None:
    name, layer = layer_at_work(s)
    given = layer_input(s)
    if not is_a(layer, torch.nn.Embedding) or given is None:
        return None
    rows = layer.num_embeddings
    top, low = int(given.max()), int(given.min())
    bad = top if top >= rows else low
    why = f"`{name}` has {rows} rows, numbered 0 to {rows - 1}. Its input contains {bad}."
    fix = f"nn.Embedding({top + 1}, {layer.embedding_dim})  # for `{name}`: one row for each token that may come"
    if top < rows:
        fix = "# rows have no negative numbers: mask these out, or give them a row of their own"
    return card("index-range", f"`{name}` has {rows} rows, and was asked for row {bad}", why, fix, s.needed())


def _put(s: Situation, m: re.Match[str]) -> Explanation | None:
    own, given = (_TYPES.get(it.lower(), it.lower()) for it in (m[1], m[2]))
    tree = s.line_tree
    target = tree.targets[0] if isinstance(tree, ast.Assign) else None
    name = written(target.value) if isinstance(target, ast.Subscript) else ""
    value = written(tree.value) if isinstance(tree, ast.Assign) else ""
    why = f"Writing by index does not convert: {f'`{name}`' if name else 'the tensor'} is {own}, they are {given}."
    fix = f"{operand(value)}.to({name}.dtype)" if name and value else "# convert the values to the dtype of the tensor"
    return card("dtype-mismatch", f"{given} was written into {own}", why, fix, s.needed())


def _for_integers(s: Situation, m: re.Match[str]) -> Explanation | None:
    """An operation that is written for floating point numbers, and was given integers or booleans."""
    what, dtype = called(s.node) or m[1], _TYPES.get(m[2].lower(), m[2].lower())
    given = [(name, it) for name, it in _tensors(s) if not it.is_floating_point() and not it.is_complex()]
    name, fix = (f"`{given[0][0]}`", f"{operand(given[0][0])}.float()") if given else ("what it was given", "x.float()")
    dtype = dtype_name(given[0][1].dtype) if given else dtype
    why = f"`{what}` computes with floating point numbers, and {name} is {dtype}. Integers get no gradient either."
    headline = f"`{what}` was given {dtype} numbers: {name}" if given else f"`{what}` was given {dtype} numbers"
    return card("dtype-mismatch", headline, why, fix, s.needed(), bool(given))


def _as_index(s: Situation, m: re.Match[str]) -> Explanation | None:
    """A tensor in square brackets, or given to one_hot, that holds no integers."""
    node = s.node.slice if isinstance(s.node, ast.Subscript) else argument(s.node, 0)
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    values = [(written(it), s.here.value(it)) for it in parts if it is not None] if s.here is not None else []
    wrong = [(name, it) for name, it in values if name and is_a(it, torch.Tensor) and it.is_floating_point()]
    name = wrong[0][0] if wrong else ""
    dtype = dtype_name(wrong[0][1].dtype) if wrong else "floating point"
    shown = f"`{name}`" if name else "it"
    why = f"What is picked by its number needs integers (or a mask of booleans); {shown} is {dtype}."
    fix = f"{operand(name)}.long()" if name else "# .long() on the index"
    headline = f"`{name}` is {dtype}, and was taken as an index" if name else "an index is not of integers"
    return card("index-dtype", headline, why, fix, s.needed(), bool(name))


def _mean(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = written(receiver(s.node)) or "x"
    dtype = _TYPES.get(m[1].lower(), m[1].lower())
    why = f"`{owner}` is {dtype}, and the mean of integers is no integer. PyTorch does not convert by itself."
    return card(
        "dtype-mismatch", f"the mean of `{owner}`, which holds {dtype}", why, f"{owner}.float().mean()", s.needed()
    )


def _one_hot(s: Situation, m: re.Match[str]) -> Explanation | None:
    given = written(argument(s.node, 0)) or "labels"
    count = written(argument(s.node, 1, "num_classes")) or "num_classes"
    what = "a negative number" if "non-negative" in s.text else f"a number that is not below {count}"
    why = f"Classes are numbered from 0 to one less than their count; `{given}` contains {what}."
    fix = f"F.one_hot({given}, num_classes=int({given}.max()) + 1)"
    return card("target-range", f"`{given}` contains {what}", why, fix, s.needed())


def _gather(s: Situation, m: re.Match[str]) -> Explanation | None:
    node = argument(s.node, 1 if receiver(s.node) is not None else 2, "index")
    given = written(node) or "the index"
    value = s.here.value(node) if s.here is not None else None
    dtype = f"is {dtype_name(value.dtype)}" if is_a(value, torch.Tensor) else "has another dtype"
    why = f"{m[1]} picks elements by their numbers, so its index is int64 (or int32); `{given}` {dtype}."
    fix = f"{operand(given)}.long()" if node is not None else "# .long() on the index"
    return card("index-dtype", f"the index of {m[1]}, `{given}`, has the wrong dtype", why, fix, s.needed())


def _mask(s: Situation, m: re.Match[str]) -> Explanation | None:
    node = argument(s.node, 0, "mask")
    given = written(node) or "the mask"
    why = f"A mask says yes or no for each element, so it holds booleans; `{given}` is {_TYPES.get(m[1], m[1])}."
    fix = f"{operand(given)}.bool()  # True where it is not 0: there the value is put"
    return card("index-dtype", f"`{given}` is no mask of booleans", why, fix, s.needed(), node is not None)


RULES = (
    Rule(
        RuntimeError,
        r"expected m1 and m2 to have the same dtype, but got: (?=.*(?:Half|BFloat16))(?:c10::)?(\w+) "
        r"!= (?:c10::)?(\w+)",
        _half_and_double,
    ),
    Rule(RuntimeError, r"mat1 and mat2 must have the same dtype, but got (\w+) and (\w+)", _dtypes),
    Rule(RuntimeError, r"self and mat2 must have the same dtype, but got (\w+) and (\w+)", _dtypes),
    Rule(RuntimeError, r"Input dtypes must be the same, got: (.*)", _several),
    Rule(RuntimeError, r"addmv input tensors must have the same dtype, but got (.*)", _several),
    Rule(RuntimeError, r"both inputs should have same dtype()", _several),
    Rule(RuntimeError, r"all tensors must have be the same dtype but (.*)", _several),
    Rule(RuntimeError, r"All tensors must have the same dtype, got (.*)", _several),
    Rule(RuntimeError, r"Expected query, key, and value to have the same dtype, but got (.*)", _several),
    Rule(RuntimeError, r"Expected A and B to have the same dtype, but found (.*)", _several),
    Rule(RuntimeError, r"Input type \(([\w ]+)\) and (?:weight|bias) type \(([\w ]+)\) should be the same", _dtypes),
    Rule(RuntimeError, r"expected m1 and m2 to have the same dtype, but got: (\w+)(?: int)? != (\w+)", _dtypes),
    Rule(ValueError, r"RNN input dtype \(torch\.(\w+)\) does not match weight dtype \(torch\.(\w+)\)", _dtypes),
    Rule(RuntimeError, r"expected both vectors to have same dtype, but found (\w+) and (\w+)", _dtypes),
    Rule(RuntimeError, r"expected scalar type (\w+) but found (\w+)", _dtypes),
    Rule(
        RuntimeError,
        r"Expected tensor for argument #1 'indices' to have one of .* Long, Int; but got torch\.(\w+)Tensor",
        _indices,
    ),
    Rule(
        RuntimeError,
        r"Index put requires the source and destination dtypes match, got (\w+) for the destination and (\w+) for",
        _put,
    ),
    Rule(IndexError, r"index out of range in self", _index_range),
    Rule(RuntimeError, r"mean\(\): could not infer output dtype\..* Got: (\w+)", _mean),
    Rule(RuntimeError, r"\"(\w+)\" not implemented for '(Long|Int|Short|Byte|Char|Bool)'", _for_integers),
    Rule(IndexError, r"tensors used as indices must be long, int, byte or bool tensors", _as_index),
    Rule(RuntimeError, r"one_hot is only applicable to index tensor", _as_index),
    Rule(RuntimeError, r"Class values must be (?:smaller than num_classes|non-negative)", _one_hot),
    Rule(RuntimeError, r"(gather|scatter\w*)\(\): Expected dtype int32/int64 for index", _gather),
    Rule(RuntimeError, r"masked_fill_? only supports boolean masks, but got mask with dtype (\w+)", _mask),
)
