"""Import this where learner code or its observer uses an optimizer or a dispatch mode, as PeakMemory is one.

PyTorch imports torch._dynamo at the first of them, and replaces torch.manual_seed by that: in a grader's first child it
would look like a change of the learner's.
"""

import torch._dynamo  # noqa: F401
