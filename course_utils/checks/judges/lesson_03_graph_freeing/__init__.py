"""What lesson 03 asks, and judges."""

LESSON = "03_graph_freeing"

# In the order of the notebook.
ORDER = (
    "predict_second_backward",
    "predict_alive",
    "count_saved_bytes",
    "train",
    "freed_nodes",
    "frugal",
)
