"""Updates by hand that remember a copy, or write into gradients on purpose."""

from tests.audit.registry import right
from tests.audit.zoo_faults.kept_gradients import moved, zeroed


def dropped(parameters):
    """Drop the gradients: the next pass makes new tensors."""
    for p in parameters:
        p.grad = None


@right
def momentum_that_begins_with_a_copy():
    def step_of(parameters):
        buffers = [None] * len(parameters)

        def step():
            for i, p in enumerate(parameters):
                buffers[i] = p.grad.clone() if buffers[i] is None else buffers[i].mul_(0.9).add_(p.grad)
                p.sub_(buffers[i], alpha=0.1)

        return step

    moved(step_of, zeroed)


@right
def momentum_that_keeps_gradients_which_are_dropped():
    def step_of(parameters):
        buffers = [None] * len(parameters)

        def step():
            for i, p in enumerate(parameters):
                if buffers[i] is None:
                    buffers[i] = p.grad
                else:
                    buffers[i].mul_(0.9).add_(p.grad)
                p.sub_(buffers[i], alpha=0.1)

        return step

    moved(step_of, dropped)


@right
def decay_written_into_the_gradients():
    def step_of(parameters):
        def step():
            for p in parameters:
                p.grad.add_(p, alpha=1e-3)
                p.grad.mul_(0.5)
                g = p.grad
                g.mul_(2)
                p.sub_(g, alpha=0.1)

        return step

    moved(step_of, zeroed)
