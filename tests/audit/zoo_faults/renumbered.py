"""Words, categories and scales that are made anew from held-out data."""

import random
from collections import Counter

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Subset

from tests.audit.registry import fault
from tests.audit.zoo_faults.prepared import StandardScaler

WORDS = ["a", "warm", "day", "in", "may", "or", "june", "and", "one", "more", "for", "us", "all", "by", "old", "seas"]


def texts(count, seed):
    """Return sentences, and for each whether it is a warm one."""
    draw = random.Random(seed)
    rows = [draw.choices(WORDS, k=6) for _ in range(count)]
    return [" ".join(row) for row in rows], torch.tensor([int("warm" in row or "may" in row) for row in rows])


class Bag(nn.Module):
    """Reads the words of a text in no order."""

    def __init__(self, words=40):
        super().__init__()
        self.words = nn.EmbeddingBag(words, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, ids):
        return self.head(self.words(ids))


def read(ids, y, asked, answers, epochs=4):
    """Train a model of word numbers, and ask it about others."""
    model = Bag()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(epochs):
        for rows in torch.randperm(len(ids)).split(10):
            optimizer.zero_grad()
            F.cross_entropy(model(ids[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            print((model(asked).argmax(1) == answers).float().mean().item())


@fault("ids-apart")
def each_corpus_with_its_own_vocabulary():
    class Corpus:
        def __init__(self, lines):
            counts = Counter(word for line in lines for word in line.split())
            self.numbers = {word: at for at, (word, _) in enumerate(counts.most_common())}
            self.ids = torch.tensor([[self.numbers[word] for word in line.split()] for line in lines])

    (lines, y), (asked, answers) = texts(40, 0), texts(20, 1)
    train = Corpus(lines)
    test = Corpus(asked)  # <- here
    read(train.ids, y, test.ids, answers)


@fault("ids-apart")
def a_vocabulary_of_the_validation():
    def vocabulary(lines):
        found = {}
        for line in lines:
            for word in line.split():
                found.setdefault(word, len(found))
        return found

    (lines, y), (asked, answers) = texts(40, 0), texts(20, 1)
    words, val_words = vocabulary(lines), vocabulary(asked)  # <- here
    ids = torch.tensor([[words[word] for word in line.split()] for line in lines])
    own = torch.tensor([[val_words[word] for word in line.split()] for line in asked])
    model = Bag()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(ids), y).backward()
        optimizer.step()
    with torch.no_grad():
        print((model(own).argmax(1) == answers).float().mean().item())


@fault("ids-apart")
def numbers_made_where_texts_are_encoded():
    def encode(lines):
        counts = Counter(word for line in lines for word in line.split())
        numbers = {word: at for at, word in enumerate(counts)}  # <- here
        return torch.tensor([[numbers[word] for word in line.split()] for line in lines])

    (train_lines, y), (test_lines, answers) = texts(40, 0), texts(20, 1)
    read(encode(train_lines), y, encode(test_lines), answers)


class LabelEncoder:
    """As scikit-learn's: it is told of by its name."""

    def fit_transform(self, words):
        self.classes_ = sorted(set(words))
        return torch.tensor([self.classes_.index(word) for word in words])


@fault("ids-apart")
def an_encoder_that_is_fitted_to_the_test_part():
    (train_lines, y), (test_lines, answers) = texts(40, 0), texts(20, 1)
    encoder = LabelEncoder()
    train_ids = encoder.fit_transform([line.split()[0] for line in train_lines])[:, None]
    test_ids = encoder.fit_transform([line.split()[0] for line in test_lines])[:, None]  # <- here
    read(train_ids, y, test_ids, answers)


@fault("fitted-again")
def a_scaler_that_is_fitted_when_asked():
    class Regression:
        def __init__(self):
            self.scaler, self.net = StandardScaler(), nn.Linear(3, 1)

        def fit(self, x, y):
            x = self.scaler.fit_transform(x)
            optimizer = torch.optim.Adam(self.net.parameters(), lr=0.05)
            for _ in range(6):
                optimizer.zero_grad()
                F.mse_loss(self.net(x), y).backward()
                optimizer.step()

        @torch.no_grad()
        def predict(self, x):
            x = self.scaler.fit_transform(x)  # <- here
            return self.net(x)

    model = Regression()
    x = torch.randn(30, 3) * 4 + 2
    model.fit(x, x.sum(1, keepdim=True))
    print(model.predict(torch.randn(10, 3) * 4 + 5).mean().item())


@fault("fitted-again")
def a_scaler_for_each_part():
    def scaled(part):
        return StandardScaler().fit_transform(part)  # <- here

    x = torch.randn(40, 3) * 4 + 2
    x_train, x_test = x[:30], x[30:] + 3
    train, test = scaled(x_train), scaled(x_test)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(train), x_train.sum(1, keepdim=True)).backward()
        optimizer.step()
    with torch.no_grad():
        print(F.mse_loss(model(test), x_test.sum(1, keepdim=True)).item())


class Finds(Dataset):
    """Finds of animals at one place, whose kinds are numbered by what was found there, or by a table that is given."""

    def __init__(self, count, kinds, seed, numbers=None):
        draw = torch.Generator().manual_seed(seed)
        self.rows = torch.randn(count, 5, generator=draw)
        self.kinds = [kinds[at] for at in torch.randint(len(kinds), (count,), generator=draw)]
        self.number_of = numbers or {kind: at for at, kind in enumerate(sorted(set(self.kinds)))}

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, at):
        return self.rows[at], self.number_of[self.kinds[at]]


KINDS = ["ant", "bee", "fly", "wasp"]


def told_apart(train, model=None):
    """Train a model to tell kinds apart, and return it."""
    model = model or nn.Linear(5, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for rows, kinds in DataLoader(train, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(model(rows), kinds).backward()
        optimizer.step()
    return model


@torch.no_grad()
def share_of_right(model, loader):
    return sum((model(rows).argmax(1) == kinds).sum().item() for rows, kinds in loader)


@fault("ids-apart")
def another_place_with_its_own_kinds():
    train_set = Finds(40, KINDS, 0)
    other_site = Finds(24, KINDS[1:], 1)  # <- here
    print(share_of_right(told_apart(train_set), DataLoader(other_site, batch_size=12)))


@fault("ids-apart")
def a_loader_of_a_second_year():
    train_finds = Subset(Finds(48, KINDS, 0), range(40))
    year_two = DataLoader(Finds(24, ["wasp", "ant", "fly"], 1), batch_size=12)  # <- here
    print(share_of_right(told_apart(train_finds), year_two))
