"""What lesson 02 asks, and judges."""

LESSON = "02_how_backward_works"

# In the order of the notebook.
ORDER = (
    "missing_numbers",
    "vjp_matmul",
    "vjp_product",
    "parameter_gradients",
    "predict_gradients",
    "vjp_softmax",
    "run_order",
    "backward_engine",
    "numerical_gradient",
    "jacobian",
)

# No turn of the lesson names these; all but the first belong to the deeper pages.
FURTHER = (
    "predict_gradients",
    "vjp_softmax",
    "run_order",
    "backward_engine",
    "numerical_gradient",
    "jacobian",
)
