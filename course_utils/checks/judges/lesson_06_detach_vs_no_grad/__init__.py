"""What lesson 06 asks, and judges."""

LESSON = "06_detach_vs_no_grad"

# In the order of the notebook.
ORDER = (
    "straight_through",
    "generator_step",
    "predict_switches",
    "evaluate",
    "find_the_cut",
    "discriminator_step",
    "td_loss",
    "ema_update",
    "through_frozen",
    "uncut_loss",
)

# No turn of the lesson names these.
FURTHER = (
    "discriminator_step",
    "td_loss",
    "ema_update",
    "through_frozen",
    "uncut_loss",
)
