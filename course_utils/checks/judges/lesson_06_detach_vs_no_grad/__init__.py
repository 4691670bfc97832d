"""What lesson 06 asks, and judges."""

LESSON = "06_detach_vs_no_grad"

# In the order of the notebook.
ORDER = (
    "predict_switches",
    "straight_through",
    "uncut_loss",
    "ema_update",
    "evaluate",
    "discriminator_step",
    "generator_step",
    "td_loss",
    "through_frozen",
)
