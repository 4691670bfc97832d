"""A right policy whose advantage is what is missing of a reward, computed on a line of its own."""

from tests.audit.parts import mlp, play
from tests.audit.registry import right
from tests.audit.zoo_right.signs import tried


@right
def policy_whose_advantage_is_how_far_it_is_below():
    def loss_of(scores):
        log_prob, reward = tried(scores)
        advantage = 0.5 - reward
        return (log_prob * advantage).mean()

    play(mlp(), loss_of)
