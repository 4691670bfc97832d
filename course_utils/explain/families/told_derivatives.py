"""What autograd, torch.func and Functions refuse in words that name the cause, with what to write instead."""

from __future__ import annotations

from course_utils.explain.rules import Rule, told

RULES = (
    Rule(RuntimeError, r"^got (\d+) tensors and (\d+) gradients", told(
        "seed-count", "{1} gradients to start from, for {0} outputs",
        "Each output has one gradient to start from in grad_outputs, or None where it is one number.",
        "# grad_outputs (or grad_tensors) with {0} entries"), "autograd/__init__.py"),
    Rule(RuntimeError, r"`inputs` argument to `backward\(\)` cannot be empty", told(
        "seed-count", "backward(inputs=[]) has nowhere to put a gradient",
        "inputs= names the leaves that get gradients, and none was named.",
        "# leave inputs= out for all leaves"), "autograd/__init__.py"),
    Rule(RuntimeError, r"Can't detach views in-place", told(
        "view-of-several-in-place", "detach_() was called on a view",
        "detach_() changes the tensor itself, and a view shares its memory with another: no view may be so changed.",
        "# x = x.detach(), without the underscore: a new tensor without a graph")),
    Rule(RuntimeError,
         r"Tensor returned by the function given to (hessian|hvp|vhp) should contain a single element", told(
        "transform-outputs", "the function given to {0} does not return one number",
        "{0} takes the second derivative of one number. This function returns several.",
        "# return a .sum() or .mean(); or torch.autograd.functional.jacobian for several outputs"),
        "autograd/functional.py"),
    Rule(RuntimeError, r"v has invalid size: should be torch\.Size\((.*?)\) but got torch\.Size\((.*?)\)", told(
        "seed-shape", "the vector has shape {1}, and {0} is needed",
        "The vector of a product with a Jacobian or Hessian has the shape of what it is multiplied with.",
        "# a v of shape {0}: torch.ones_like(x), say"), "autograd/functional.py"),
    Rule(ValueError, r"Thing passed to transform API must be Tensor, got <class '(\w+)'>", told(
        "transform-inputs", "torch.func was given {0:a} to differentiate with respect to",
        "torch.func differentiates with respect to tensors (and lists and dicts of them).",
        "# torch.tensor(...) around the number; argnums= says which arguments to differentiate"), "_functorch/"),
    Rule(RuntimeError, r"Expected f\(\*args\) to return a Tensor, got <class '(tuple|list|dict)'>", told(
        "transform-outputs", "the function in torch.func.grad returned {0:a}",
        "torch.func.grad takes a function of one number. What else it returns must be said to be beside it.",
        "# return loss, others with torch.func.grad(f, has_aux=True): then grad gives (gradient, others)"),
        "_functorch/"),
    Rule(RuntimeError, r"Expected f\(\*args\) to return a Tensor, got <class '(NoneType|float|int)'>", told(
        "transform-outputs", "the function in torch.func.grad returned {0:a}, not a tensor",
        "torch.func.grad differentiates what the function returns: one number, as a tensor.",
        "return loss  # the last line of the function; without .item()"), "_functorch/"),
    Rule(RuntimeError, r"Got argnum=(\d+), but only (\d+) positional inputs", told(
        "transform-inputs", "argnums={0}, and the arguments given by position are {1}",
        "argnums counts positional arguments from 0. Arguments given by name are not counted.",
        "# give the argument by position, or a smaller argnums"), "_functorch/"),
    Rule(ValueError, r"Got in_dim=(-?\d+) for some input, but that input is a Tensor of dimensionality (\d+)", told(
        "transform-inputs", "in_dims={0} for an input of {1} dimensions",
        "in_dims says along which dimension of each input vmap goes, counted from 0.",
        "# in_dims=0 for samples in the first dimension; None for an input that is the same for all"),
        "_functorch/vmap.py"),
    Rule(ValueError, r"Got in_dim=\S+ for an input but the input is of type <class '(\w+)'>", told(
        "transform-inputs", "vmap was to go over {0:a}",
        "vmap goes along a dimension of tensors. A {0} has none, and is the same for all samples.",
        "# in_dims=(0, None): None stands for what is the same for all samples"), "_functorch/vmap.py"),
    Rule(ValueError, r"in_dims is not compatible with the structure of `inputs`", told(
        "transform-inputs", "in_dims does not match the arguments of the function in vmap",
        "in_dims is one number for all arguments, or a tuple with one entry for each.",
        "# in_dims=(0, 0) for two arguments, None where one is the same for all"), "_functorch/vmap.py"),
    Rule(ValueError, r"must only return Tensors, got type <class '(\w+)'>", told(
        "transform-outputs", "the function in vmap returned {0:a}, not a tensor",
        "vmap joins the results of all samples into one tensor, so each must be a tensor.",
        "# return tensors only, without .item() and float()"), "_functorch/vmap.py"),
    Rule(RuntimeError, r"(jvp)\(f, primals, tangents\): Expected (primals|tangents) to be a tuple", told(
        "transform-inputs", "{1} of jvp must be a tuple",
        "jvp takes all inputs as one tuple, and their directions as another.",
        "torch.func.jvp(f, (x,), (v,))  # one entry for each argument of f"), "_functorch/"),
    Rule(RuntimeError, r"Some elements marked as dirty during the forward method were not returned as output", told(
        "mark-dirty", "forward wrote into an input and did not return it",
        "mark_dirty says that forward changed an input in place. That input, changed, must be what forward returns, so "
        "that the graph goes on from there.",
        "# return the very tensor that was given to ctx.mark_dirty; or write out of place, without mark_dirty"),
        "autograd/function.py"),
    Rule(RuntimeError, r"mark_dirty can only accept variables", told(
        "mark-dirty", "mark_dirty was given something that is no tensor",
        "mark_dirty names the inputs of forward that it wrote into, each as an argument.",
        "# ctx.mark_dirty(x), with the tensors that forward changed"), "autograd/function.py"),
    Rule(RuntimeError,
         r"modifies inplace an input that is a view of another Tensor, your Function cannot return more", told(
        "mark-dirty", "forward wrote into a view and returns several tensors",
        "Where forward changes a view in place, the graph of the whole tensor is rewritten, and PyTorch can do so for "
        "one output only.",
        "# x = x.clone() before the call: no view any more; or return one tensor"), "autograd/function.py"),
    Rule(RuntimeError,
         r"result type (\w+) can't be cast to the desired output type (Long|Int|Short|Byte|Char|Bool)", told(
        "integers-updated", "a result of type {0} was to be written into a tensor of type {1}",
        "An operation in place keeps the dtype of what it writes into. This one is of integers or booleans and has no "
        "room for fractions.",
        "# make it float first: x = x.float(); or write x = x / 2 in place of x /= 2")),
)  # fmt: skip
