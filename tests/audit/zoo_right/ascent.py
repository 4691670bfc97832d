"""Right policies whose sign stands elsewhere than in the loss: each file says so for itself."""

from tests.audit.parts import mlp, play
from tests.audit.registry import right
from tests.audit.zoo_right.signs import tried


@right
def policy_with_an_optimizer_that_maximizes():
    def loss_of(scores):
        log_prob, reward = tried(scores)
        return (log_prob * reward).mean()

    play(mlp(), loss_of, maximize=True)
