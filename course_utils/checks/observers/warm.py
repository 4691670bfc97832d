"""Import this where learner code or its observer uses an optimizer or a dispatch mode, as PeakMemory is one.

PyTorch imports torch._dynamo at the first of them. That takes seconds, which must not come out of the time limit of
learner code: cut off, the import would stay half done.
"""

import torch._dynamo  # noqa: F401
