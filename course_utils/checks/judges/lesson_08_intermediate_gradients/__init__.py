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
    "read_the_layers",
)

# No turn of the lesson names these.
FURTHER = ("read_the_layers",)
