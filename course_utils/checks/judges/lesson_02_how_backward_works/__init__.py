"""What lesson 02 asks, and judges."""

LESSON = "02_how_backward_works"

# In the order of the notebook.
ORDER = (
    "missing_numbers",
    "vjp_matmul",
    "vjp_product",
    "predict_gradients",
    "parameter_gradients",
    "vjp_softmax",
    "run_order",
    "backward_engine",
    "numerical_gradient",
    "jacobian",
)

# What belongs to the deeper pages: no turn of the lesson names them.
FURTHER = (
    "vjp_softmax",
    "run_order",
    "backward_engine",
    "numerical_gradient",
    "jacobian",
)
