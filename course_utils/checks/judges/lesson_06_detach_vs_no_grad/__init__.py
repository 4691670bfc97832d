"""What lesson 06 asks, and judges."""

LESSON = "06_detach_vs_no_grad"

# In the order of the notebook.
ORDER = (
    "straight_through",
    "predict_switches",
    "evaluate",
    "discriminator_step",
    "generator_step",
    "td_loss",
    "ema_update",
    "through_frozen",
    "uncut_loss",
)
