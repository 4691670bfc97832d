"""What lesson 02 asks, and judges."""

LESSON = "02_how_backward_works"

# In the order of the notebook.
ORDER = (
    "missing_numbers",
    "predict_gradients",
    "vjp_matmul",
    "vjp_product",
    "parameter_gradients",
    "vjp_softmax",
    "run_order",
    "backward_engine",
    "numerical_gradient",
    "jacobian",
)

# No turn of the lesson names these; they belong to the deeper pages.
FURTHER = (
    "parameter_gradients",
    "vjp_softmax",
    "run_order",
    "backward_engine",
    "numerical_gradient",
    "jacobian",
)
