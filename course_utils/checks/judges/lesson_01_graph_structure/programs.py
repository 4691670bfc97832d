"""Random calculations, as lists of operations."""

from __future__ import annotations

from typing import Any

import torch


def random_program(seed: int, leaves: int, length: int) -> dict[str, Any]:
    """Return a random calculation: each operation uses one of the last results, so that most of it is connected."""
    generator = torch.Generator().manual_seed(seed)

    def below(limit: int) -> int:
        return int(torch.randint(limit, (), generator=generator))

    tracked = [True, *(below(3) > 0 for _ in range(leaves - 1))]
    program: list[list[Any]] = [["mul", 0, 1]]
    for known in range(leaves + 1, leaves + length):
        operation = ("add", "mul", "mul", "tanh", "detach")[below(5)]
        operands = [below(known)] if operation == "detach" else [known - 1, below(known)]
        program.append([operation, *(operands[:1] if operation == "tanh" else operands)])
    # The last operation joins, so that the result is not a detached tensor.
    program.append(["add", leaves, leaves + length - 1])
    return {"program": program, "tracked": tracked}
