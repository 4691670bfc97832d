"""What lesson 02 asks, and judges."""

LESSON = "02_how_backward_works"

# In the order of the notebook; from vjp_softmax on, they belong to the deeper pages.
ORDER = (
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
