"""What lesson 05 asks, and judges."""

LESSON = "05_higher_order_gradients"

# In the order of the notebook.
ORDER = (
    "nth_derivative",
    "predict_second_order",
    "penalised_step",
    "hvp",
    "largest_rate",
    "gradient_penalty",
    "loss_hessian",
    "meta_gradient",
)

# Further practice, and what belongs to the deeper pages: no turn of the lesson names them.
FURTHER = (
    "largest_rate",
    "gradient_penalty",
    "loss_hessian",
    "meta_gradient",
)
