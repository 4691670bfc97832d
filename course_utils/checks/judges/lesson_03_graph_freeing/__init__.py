"""What lesson 03 asks, and judges."""

LESSON = "03_graph_freeing"

# In the order of the notebook.
ORDER = (
    "predict_second_backward",
    "predict_alive",
    "train",
    "find_the_writer",
    "fewest_bytes",
    "count_saved_bytes",
    "freed_nodes",
    "frugal",
)

# Further practice, and what belongs to the deeper pages: no turn of the lesson names them.
FURTHER = (
    "find_the_writer",
    "fewest_bytes",
    "count_saved_bytes",
    "freed_nodes",
    "frugal",
)
