"""What lesson 10 asks, and judges."""

LESSON = "10_custom_functions"

# In the order of the notebook.
ORDER = (
    "squash",
    "clamp_inward",
    "predict_functions",
    "swish",
    "agrees",
    "log_cosh",
    "thrifty_linear",
    "seeded_dropout",
    "which_backward",
)

# No turn of the lesson names these.
FURTHER = ("agrees", "log_cosh", "thrifty_linear", "seeded_dropout", "which_backward")
