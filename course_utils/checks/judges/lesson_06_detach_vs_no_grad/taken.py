"""What is told of a loss that the check could not differentiate."""

NO_GRADIENT = (
    "No gradient could be taken of what you returned: it is no single number, a pass has gone through its graph, or a "
    "tensor that its graph needs was written to."
)
