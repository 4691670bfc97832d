"""A wrong engine for every stage: PyTorch multiplies."""

import numpy as np
import torch

from tests.answers.lesson_11_build_your_own.counting import Counting


class ThroughTorch(Counting):
    def multiply(self, a, b):
        made = super().multiply(a, b)
        made.array = (torch.from_numpy(np.array(a.array)) * torch.from_numpy(np.array(b.array))).numpy()
        return made
