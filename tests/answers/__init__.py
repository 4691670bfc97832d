"""Right and wrong answers to every exercise, out of the learner's way. One module a lesson."""

from importlib import import_module

from course_utils.checks.registry import LESSONS

_modules = [import_module(f"tests.answers.lesson_{lesson[:2]}") for lesson in LESSONS]

RIGHT = {name: answers for module in _modules for name, answers in module.RIGHT.items()}
MISCONCEIVED = {key: answer for module in _modules for key, answer in module.MISCONCEIVED.items()}
WRONG = {name: answers for module in _modules for name, answers in module.WRONG.items()}
# Generic changes that leave an answer right, such as another order where order is free.
STILL_RIGHT = {pair for module in _modules for pair in getattr(module, "STILL_RIGHT", ())}
