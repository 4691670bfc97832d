"""What lesson 00 asks, and judges."""

LESSON = "00_start_here"

# In the order of the notebook.
ORDER = (
    "first_gradient",
    "slope",
    "order_the_step",
)
