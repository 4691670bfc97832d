"""What lesson 04 asks, and judges."""

LESSON = "04_retain_graph"

# In the order of the notebook.
ORDER = (
    "predict_second_pass",
    "fit_scale",
    "one_pass",
    "loss_gradients",
    "two_updates",
    "predict_kept_bytes",
    "train_chunks",
    "split_at_trunk",
)
