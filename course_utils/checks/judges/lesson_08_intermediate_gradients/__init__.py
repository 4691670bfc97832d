"""What lesson 08 asks, and judges."""

LESSON = "08_intermediate_gradients"

# In the order of the notebook.
ORDER = (
    "diagnosis",
    "rescue",
    "predict_retain_grad",
    "gradient_log",
    "reverse_gradient",
    "clip_passing",
    "saliency",
    "hook_order",
    "layer_gradients",
    "read_the_layers",
)

# No turn of the lesson names these.
FURTHER = ("reverse_gradient", "clip_passing", "saliency", "hook_order", "layer_gradients", "read_the_layers")
