"""How long a lesson takes, counted alike for all."""

from __future__ import annotations

import math
import re
from typing import Any

WORDS_A_MINUTE = 150


def minutes(notebook: Any) -> int:
    """Return a lesson's honest minutes, rounded up to fives.

    150 words of prose a minute; a minute for each code cell, a prediction among them; three where the text asks to
    work something out first (a cell of text with "**Predict" or "**Work out").
    """
    words = cells = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            words += len(re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL).split())
            cells += 2 * ("**Predict" in cell.source or "**Work out" in cell.source)
        else:
            cells += 1
    return 5 * math.ceil((words / WORDS_A_MINUTE + cells) / 5)
