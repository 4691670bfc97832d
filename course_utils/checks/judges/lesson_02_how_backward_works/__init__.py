"""What lesson 02 asks, and judges."""

LESSON = "02_how_backward_works"

# In the order of the notebook.
ORDER = (
    "vjp_matmul",
    "vjp_product",
    "predict_gradients",
    "parameter_gradients",
    "missing_numbers",
    "vjp_softmax",
    "run_order",
    "backward_engine",
    "numerical_gradient",
    "jacobian",
)

# Further practice, and what belongs to the deeper pages: no turn of the lesson names them.
FURTHER = (
    "missing_numbers",
    "vjp_softmax",
    "run_order",
    "backward_engine",
    "numerical_gradient",
    "jacobian",
)
