"""What several answers of lesson 07 share."""

import torch


def seeded(answer):
    """The right answer, with the random numbers of everybody else started anew."""

    def run(*given):
        torch.manual_seed(0)
        return answer(*given)

    return run
