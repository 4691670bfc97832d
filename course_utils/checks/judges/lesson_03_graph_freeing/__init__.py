"""What lesson 03 asks, and judges."""

LESSON = "03_graph_freeing"

# In the order of the notebook.
ORDER = (
    "predict_second_backward",
    "count_saved_bytes",
    "freed_nodes",
    "predict_alive",
    "train",
    "frugal",
)
