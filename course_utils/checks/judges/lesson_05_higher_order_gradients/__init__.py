"""What lesson 05 asks, and judges."""

LESSON = "05_higher_order_gradients"

# In the order of the notebook.
ORDER = (
    "nth_derivative",
    "predict_second_order",
    "penalised_step",
    "gradient_penalty",
    "hvp",
    "loss_hessian",
    "meta_gradient",
)
