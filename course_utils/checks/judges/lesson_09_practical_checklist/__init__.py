"""What lesson 09 asks, and judges."""

LESSON = "09_practical_checklist"

# In the order of the notebook.
ORDER = (
    "retrain",
    "fit_classes",
    "predict_symptoms",
    "fit_penalised",
    "checkup",
    "make_model",
    "fit_best",
    "fine_tune",
    "fit_scheduled",
    "fit_points",
    "fit_masked",
    "read_the_curves",
)

# No turn of the lesson names these.
FURTHER = (
    "make_model",
    "fit_best",
    "fine_tune",
    "fit_scheduled",
    "fit_points",
    "fit_masked",
    "read_the_curves",
)
