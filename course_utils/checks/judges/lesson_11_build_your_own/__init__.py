"""What lesson 11 asks, and judges."""

LESSON = "11_build_your_own"

# In the order of the notebook. All are judged on one answer, `engine`.
ORDER = (
    "record",
    "backward",
    "save_and_free",
    "retain_graph",
    "create_graph",
    "no_grad_and_detach",
    "grad_and_sgd",
    "retain_grad_and_hooks",
    "custom_function",
    "train_digits",
)
