"""What lesson 08 asks, and judges."""

LESSON = "08_intermediate_gradients"

# In the order of the notebook.
ORDER = (
    "predict_retain_grad",
    "hook_order",
    "reverse_gradient",
    "clip_passing",
    "saliency",
    "diagnosis",
    "rescue",
    "gradient_log",
    "layer_gradients",
)
