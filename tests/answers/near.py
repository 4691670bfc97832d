"""What code meets that visits a model and its direct children, and nothing deeper."""


def near(model):
    """Return the parameters of a model and its direct children by name, each once."""
    found = dict(model.named_parameters(recurse=False))
    for child, part in model.named_children():
        for name, parameter in part.named_parameters(recurse=False):
            if all(parameter is not other for other in found.values()):
                found[f"{child}.{name}"] = parameter
    return found


def near_buffers(model):
    """Return the buffers of a model and its direct children by name."""
    parts = {"": model} | {f"{name}.": part for name, part in model.named_children()}
    return {start + name: it for start, part in parts.items() for name, it in part.named_buffers(recurse=False)}


def clearing_near(loop):
    """The right loop, with an optimizer that clears no gradient further down in the model than in its children."""

    def with_old_gradients(model, *given):
        optimizer = next(it for it in given if hasattr(it, "param_groups"))
        optimizer.zero_grad = lambda: [setattr(p, "grad", None) for p in near(model).values()]
        return loop(model, *given)

    return with_old_gradients
