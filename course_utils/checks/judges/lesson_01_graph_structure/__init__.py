"""What lesson 01 asks, and judges."""

LESSON = "01_graph_structure"

# In the order of the notebook.
ORDER = (
    "predict_leaves",
    "which_program",
    "walk",
    "without_gradient",
    "connected_loss",
    "predict_graph",
    "leaves_of",
    "used_outputs",
    "build_graph",
)

# Further practice, and what belongs to the deeper pages: no turn of the lesson names them.
FURTHER = (
    "connected_loss",
    "predict_graph",
    "leaves_of",
    "used_outputs",
    "build_graph",
)
