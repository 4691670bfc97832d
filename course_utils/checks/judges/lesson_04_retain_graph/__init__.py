"""What lesson 04 asks, and judges."""

LESSON = "04_retain_graph"

# In the order of the notebook.
ORDER = (
    "train_chunks",
    "predict_second_pass",
    "fit_scale",
    "why_second_time",
    "one_pass",
    "loss_gradients",
    "two_updates",
    "predict_kept_bytes",
    "split_at_trunk",
)

# Further practice, and what belongs to the deeper pages: no turn of the lesson names them.
FURTHER = (
    "one_pass",
    "loss_gradients",
    "two_updates",
    "predict_kept_bytes",
    "split_at_trunk",
)
