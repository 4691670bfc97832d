"""What lesson 04 asks, and judges."""

LESSON = "04_retain_graph"

# In the order of the notebook.
ORDER = (
    "predict_second_pass",
    "predict_kept_bytes",
    "one_pass",
    "loss_gradients",
    "fit_scale",
    "train_chunks",
    "two_updates",
    "split_at_trunk",
)
