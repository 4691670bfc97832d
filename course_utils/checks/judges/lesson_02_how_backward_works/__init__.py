"""What lesson 02 asks, and judges."""

LESSON = "02_how_backward_works"

# In the order of the notebook.
ORDER = (
    "predict_gradients",
    "vjp_product",
    "vjp_matmul",
    "vjp_softmax",
    "numerical_gradient",
    "parameter_gradients",
    "jacobian",
    "run_order",
    "backward_engine",
)
