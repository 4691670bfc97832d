"""What lesson 10 asks, and judges."""

LESSON = "10_custom_functions"

# In the order of the notebook.
ORDER = (
    "predict_functions",
    "squash",
    "clamp_inward",
    "swish",
    "agrees",
    "log_cosh",
    "thrifty_linear",
    "seeded_dropout",
    "which_backward",
)

# No turn of the lesson names these.
FURTHER = ("which_backward",)
