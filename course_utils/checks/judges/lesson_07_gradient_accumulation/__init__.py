"""What lesson 07 asks, and judges."""

LESSON = "07_gradient_accumulation"

# In the order of the notebook.
ORDER = (
    "train_in_windows",
    "train_clipped",
    "epoch_in_windows",
    "order_the_window",
    "accumulate",
    "predict_none_or_zero",
    "predict_moved",
    "step_in_backward",
    "clip_each_sample",
)

# No turn of the lesson names these.
FURTHER = (
    "order_the_window",
    "accumulate",
    "predict_none_or_zero",
    "predict_moved",
    "step_in_backward",
    "clip_each_sample",
)
