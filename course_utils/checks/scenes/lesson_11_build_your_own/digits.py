"""Images of handwritten digits, and a small network's start."""

from __future__ import annotations

from typing import Any

import numpy as np

HIDDEN, CLASSES = 12, 10


def digits(count: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return images of scikit-learn's digits (count, 64), with numbers from 0 to 1, and their labels."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    chosen = np.random.default_rng(seed).permutation(len(images))[:count]
    return images[chosen] / 16.0, labels[chosen]


def start(seed: int, hidden: int = HIDDEN) -> list[np.ndarray[Any, Any]]:
    """Return weights and biases of two layers, in float64: (64, hidden), (hidden,), (hidden, 10), (10,)."""
    draw = np.random.default_rng(seed)
    first = draw.normal(size=(64, hidden)) / 8.0
    second = draw.normal(size=(hidden, CLASSES)) / np.sqrt(hidden)
    return [first, 0.1 * draw.normal(size=hidden), second, 0.1 * draw.normal(size=CLASSES)]
