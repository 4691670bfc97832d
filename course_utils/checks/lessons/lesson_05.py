"""Exercises for lesson 05, in the order in which learners meet them."""

from course_utils.checks.lessons.derivatives_05 import hvp, loss_hessian, nth_derivative
from course_utils.checks.lessons.learning_05 import gradient_penalty, meta_gradient, penalised_step
from course_utils.checks.lessons.predict_05 import predict_second_order

EXERCISES = (predict_second_order, nth_derivative, hvp, loss_hessian, penalised_step, gradient_penalty, meta_gradient)
