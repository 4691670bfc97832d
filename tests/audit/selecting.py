"""What scikit-learn has under these names, for the loops of both zoos: the audit knows it by the names."""

import numpy as np


class SelectKBest:
    """As scikit-learn's: it is told of by its name."""

    def __init__(self, k):
        self.k = k

    def fit(self, x, y):
        centred = y - y.mean()
        self.best = np.argsort(-abs((x * centred[:, None]).mean(axis=0)))[: self.k]

    def transform(self, x):
        return x[:, self.best]

    def fit_transform(self, x, y):
        self.fit(x, y)
        return self.transform(x)


class Scaler:
    """As scikit-learn's: it is told of by its methods."""

    def fit(self, x):
        self.mean, self.spread = x.mean(axis=0), x.std(axis=0)
        return self

    def transform(self, x):
        return (x - self.mean) / self.spread

    def fit_transform(self, x):
        return self.fit(x).transform(x)


def train_test_split(x, y, share):
    """Split as scikit-learn's function of this name does."""
    order = np.random.default_rng(0).permutation(len(x))
    train, test = np.split(order, [int(len(x) * (1 - share))])
    return x[train], x[test], y[train], y[test]
