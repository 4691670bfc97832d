"""What lesson 07 asks, and judges."""

LESSON = "07_gradient_accumulation"

# In the order of the notebook.
ORDER = (
    "predict_none_or_zero",
    "predict_moved",
    "train_in_windows",
    "accumulate",
    "train_clipped",
    "step_in_backward",
    "epoch_in_windows",
    "clip_each_sample",
)
