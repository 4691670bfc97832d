"""What lesson 01 asks, and judges."""

LESSON = "01_graph_structure"

# In the order of the notebook.
ORDER = (
    "predict_leaves",
    "predict_graph",
    "walk",
    "leaves_of",
    "connected_loss",
    "without_gradient",
    "used_outputs",
    "build_graph",
)
