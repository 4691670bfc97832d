"""What lesson 09 asks, and judges."""

LESSON = "09_practical_checklist"

# In the order of the notebook.
ORDER = (
    "predict_symptoms",
    "fit_classes",
    "fit_penalised",
    "make_model",
    "retrain",
    "fit_scheduled",
    "fit_masked",
    "fit_points",
    "fine_tune",
    "fit_best",
    "checkup",
    "read_the_curves",
)

# No turn of the lesson names these.
FURTHER = ("read_the_curves",)
