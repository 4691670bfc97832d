"""What lesson 05 asks, and judges."""

LESSON = "05_higher_order_gradients"

# In the order of the notebook.
ORDER = (
    "hvp",
    "largest_rate",
    "penalised_step",
    "predict_second_order",
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
