"""What lesson 04 asks, and judges."""

LESSON = "04_retain_graph"

# In the order of the notebook.
ORDER = (
    "train_chunks",
    "predict_second_pass",
    "loss_gradients",
    "why_second_time",
    "fit_scale",
    "one_pass",
    "two_updates",
    "predict_kept_bytes",
    "split_at_trunk",
)

# Further practice, and what belongs to the deeper pages: no turn of the lesson names them.
FURTHER = (
    "fit_scale",
    "one_pass",
    "two_updates",
    "predict_kept_bytes",
    "split_at_trunk",
)
