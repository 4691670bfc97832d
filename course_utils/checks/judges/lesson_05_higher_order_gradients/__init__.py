"""What lesson 05 asks, and judges."""

LESSON = "05_higher_order_gradients"

# In the order of the notebook.
ORDER = (
    "predict_second_order",
    "nth_derivative",
    "hvp",
    "loss_hessian",
    "penalised_step",
    "gradient_penalty",
    "meta_gradient",
)
