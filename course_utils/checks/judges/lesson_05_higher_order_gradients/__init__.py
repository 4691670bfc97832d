"""What lesson 05 asks, and judges."""

LESSON = "05_higher_order_gradients"

# In the order of the notebook.
ORDER = (
    "predict_second_order",
    "hvp",
    "largest_rate",
    "penalised_step",
    "nth_derivative",
    "gradient_penalty",
    "loss_hessian",
    "meta_gradient",
)

# Further practice, and what belongs to the deeper pages: no turn of the lesson names them.
FURTHER = (
    "nth_derivative",
    "gradient_penalty",
    "loss_hessian",
    "meta_gradient",
)
