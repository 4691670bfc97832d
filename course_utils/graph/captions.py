"""What happens at one node of a backward pass, in a plain sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from course_utils.graph.digits import listed, short
from course_utils.graph.events import Contribution, Event, Failure, Gradient
from course_utils.graph.trace import Edge, Graph

# More numbers than this are told by their norm.
_TOLD = 4

# What a node does with the gradient, where one clause says it for every use of the operation.
# Source: derivatives.yaml of PyTorch.
_REASONS = {
    "Add": "a sum passes the gradient on to its terms",
    "Sub": "a difference passes the gradient on, with its sign turned for what was subtracted",
    "Mul": "it multiplies by the other factor",
    "Div": "it divides by the divisor, and the divisor itself gets minus the quotient times that",
    "Neg": "it turns the sign",
    "Pow": "it lowers the power by one and multiplies by the old one",
    "Exp": "it multiplies by its result, which it saved",
    "Log": "it divides by its input, which it saved",
    "Sqrt": "it divides by twice its result, which it saved",
    "Sin": "it multiplies by the cosine of its input",
    "Cos": "it multiplies by minus the sine of its input",
    "Tanh": "it multiplies by 1 minus its squared result, which it saved",
    "Sigmoid": "it multiplies by result times (1 - result), from the result that it saved",
    "Relu": "it lets the gradient through where its result is positive",
    "Sum": "every element of a sum gets the gradient of the sum",
    "Mean": "every element gets an equal share",
    "Mm": "each matrix gets the gradient times the other one, transposed",
    "Addmm": "each matrix gets the gradient times the other one, transposed, and the bias gets the sum over rows",
    "Bmm": "each matrix gets the gradient times the other one, transposed",
    "Dot": "it multiplies by the other vector",
    "T": "it transposes back",
    "Transpose": "it transposes back",
    "Permute": "it puts the dimensions back in order",
    "View": "it gives the gradient the shape of the input",
    "UnsafeView": "it gives the gradient the shape of the input",
    "ReshapeAlias": "it gives the gradient the shape of the input",
    "Squeeze": "it gives the gradient the shape of the input",
    "Unsqueeze": "it gives the gradient the shape of the input",
    "Expand": "it sums over what was repeated",
    "Select": "what was not read gets 0",
    "Slice": "what was not read gets 0",
    "Index": "what was not read gets 0",
    "Unbind": "it joins the gradients of its outputs",
    "Split": "it joins the gradients of its outputs",
    "Stack": "each part gets its part of the gradient",
    "Cat": "each part gets its part of the gradient",
    "Clone": "a copy passes the gradient on",
    "ToCopy": "it converts the gradient back",
    "MseLoss": "the derivative of a squared difference is twice the difference",
}


def of_event(graph: Graph, made: Mapping[int, tuple[str, ...]], event: Event) -> str:
    """Say what a node received, what it sent where and why, and what it freed."""
    node = graph.nodes[event.node]
    text = f"{name_of(graph, made, event.node)} receives {_received(event)}"
    if node.is_leaf:
        return f"{text.removesuffix(',')}{_accumulated(event)}."
    sent = [
        f"{told(gradient)} to {_target(graph, made, edge)}"
        for edge, gradient in zip(node.inputs, event.sent, strict=False)
        if edge is not None and gradient is not None
    ]
    reason = _REASONS.get(re.sub(r"Backward\d*$", "", node.name))
    text += f" and sends {', '.join(sent)}" if sent else " and sends nothing on"
    text += f": {reason}." if reason and sent else "."
    return f"{text} It frees {' and '.join(event.freed)}." if event.freed else text


def of_own_event(graph: Graph, made: Mapping[int, tuple[str, ...]], event: Event) -> str:
    """Say what a hook of a learner's engine saw: what a tensor received, and where its node sends, as far as seen."""
    node = graph.nodes[event.node]
    if node.is_leaf:
        return of_event(graph, made, event)
    pairs = [(edge, sent) for edge, sent in zip(node.inputs, event.sent, strict=True) if edge is not None]
    known = [f"{told(sent)} to {_target(graph, made, edge)}" for edge, sent in pairs if sent is not None]
    others = [_target(graph, made, edge) for edge, sent in pairs if sent is None]
    text = f"{name_of(graph, made, event.node)} receives {_received(event)}"
    text = f"{text} and sends {', '.join(known)}." if known else f"{text.removesuffix(',')}."
    return f"{text} What goes to {', '.join(dict.fromkeys(others))} is not seen alone." if others else text


def of_failure(graph: Graph, failure: Failure) -> str:
    """Say where a pass ended, and with which error."""
    where = "" if failure.node is None else f" at {graph.nodes[failure.node].name}"
    return f"The pass ends{where} with {failure.type}: {failure.message}"


def name_of(graph: Graph, made: Mapping[int, tuple[str, ...]], index: int) -> str:
    """Return what a node is called: an operation by its kind, a leaf by its name, or its shape."""
    node = graph.nodes[index]
    if not node.is_leaf:
        return node.name
    return made[index][0] if index in made else f"a leaf of shape {node.shape}" if node.shape else "a leaf"


def told(gradient: Gradient) -> str:
    """Return a gradient in a few words: a number, a short list of numbers, or shape and norm."""
    if gradient.values is not None and math.prod(gradient.shape) <= _TOLD:
        return listed(gradient.values)
    norm = "" if gradient.norm is None else f" of norm {short(gradient.norm)}"
    return f"{gradient.shape}{norm}"


def _received(event: Event) -> str:
    outputs = [_one_received(*pair) for pair in zip(event.arrived, event.received, strict=True)]
    if len(outputs) > 1:
        outputs = [f"{text} for output {number}" for number, text in enumerate(outputs)]
    changed = ", changed by a hook," if event.hooked else ""
    return (" and ".join(outputs) or "nothing") + changed


def _one_received(arrived: Sequence[Contribution], gradient: Gradient | None) -> str:
    if gradient is None:
        return "nothing"
    text = told(gradient)
    if len(arrived) > 1:
        numbers = gradient.shape == () and gradient.values is not None
        parts = " + ".join(told(one.gradient) for one in arrived)
        return f"{text} = {parts}" if numbers else f"{text}, the sum of {len(arrived)} gradients,"
    return f"{text}, the gradient that the pass starts with," if arrived and arrived[0].node is None else text


def _accumulated(event: Event) -> str:
    if event.after is None:
        return ", and a hook leaves .grad at None"
    if event.before is None:
        return f": .grad was None and is now {told(event.after)}"
    return f" and adds it to .grad: {told(event.before)} becomes {told(event.after)}"


def _target(graph: Graph, made: Mapping[int, tuple[str, ...]], edge: Edge) -> str:
    own = name_of(graph, made, edge.node)
    return f"output {edge.output} of {own}" if edge.output else own
