"""Words and scales of the training, used for held-out data as they are."""

from collections import Counter

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from tests.audit.registry import right
from tests.audit.zoo_faults.prepared import StandardScaler
from tests.audit.zoo_faults.renumbered import KINDS, Finds, read, share_of_right, texts, told_apart


class Corpus:
    """Texts with their numbers, by a vocabulary that may be another's."""

    def __init__(self, lines, numbers=None):
        counts = Counter(word for line in lines for word in line.split())
        self.numbers = {word: at + 1 for at, word in enumerate(counts)} if numbers is None else numbers
        self.ids = torch.tensor([[self.numbers.get(word, 0) for word in line.split()] for line in lines])


@right
def the_vocabulary_of_the_training_is_handed_on():
    (lines, y), (asked, answers) = texts(40, 0), texts(20, 1)
    train = Corpus(lines)
    test = Corpus(asked, train.numbers)
    read(train.ids, y, test.ids, answers)


@right
def words_that_are_counted_in_each_part():
    (lines, y), (asked, answers) = texts(40, 0), texts(20, 1)
    words = {word: at for at, word in enumerate(sorted({word for line in lines + asked for word in line.split()}))}
    train_counts = dict(Counter(word for line in lines for word in line.split()))
    test_counts = dict(Counter(word for line in asked for word in line.split()))
    print(max(train_counts.values()), max(test_counts.values()))
    ids, own = (torch.tensor([[words[word] for word in line.split()] for line in part]) for part in (lines, asked))
    read(ids, y, own, answers)


@right
def classes_in_the_order_of_the_alphabet():
    def numbered(names):
        kinds = {name: at for at, name in enumerate(sorted(set(names)))}
        return torch.tensor([kinds[name] for name in names])

    (lines, y), (asked, answers) = texts(40, 0), texts(20, 1)
    names = ["cold", "warm"]
    train_y, test_y = numbered([names[it] for it in y]), numbered([names[it] for it in answers])
    words = Corpus(lines).numbers
    read(Corpus(lines).ids, train_y, Corpus(asked, words).ids, test_y)


@right
def places_in_two_tables():
    (lines, y), (asked, answers) = texts(40, 0), texts(20, 1)
    words = Corpus(lines).numbers
    row_of = {f"text {at}": at for at in range(60)}
    test_row = {f"text {40 + at}": at for at in range(20)}
    read(Corpus(lines).ids, y, Corpus(asked, words).ids, answers)
    print(len(row_of), len(test_row))


@right
def two_vocabularies_of_two_languages():
    (lines, y), (asked, answers) = texts(40, 0), texts(20, 1)
    source = Corpus(lines)
    target = Corpus(lines[::-1])
    read(torch.cat([source.ids, target.ids.flip(0)], dim=1), y, Corpus(asked, source.numbers).ids, answers)


@right
def a_scaler_that_is_fitted_once():
    class Regression:
        def __init__(self):
            self.scaler, self.net, self.ready = StandardScaler(), nn.Linear(3, 1), False

        def fit(self, x, y):
            x = self.scaler.fit_transform(x)
            self.ready = True
            optimizer = torch.optim.Adam(self.net.parameters(), lr=0.05)
            for _ in range(6):
                optimizer.zero_grad()
                F.mse_loss(self.net(x), y).backward()
                optimizer.step()

        @torch.no_grad()
        def predict(self, x):
            x = self.scaler.transform(x) if self.ready else self.scaler.fit_transform(x)
            return self.net(x)

    model = Regression()
    x = torch.randn(30, 3) * 4 + 2
    model.fit(x, x.sum(1, keepdim=True))
    print(model.predict(torch.randn(10, 3) * 4 + 5).mean().item())


@right
def one_function_with_the_scaler_handed_on():
    def scaled(part, scaler=None):
        if scaler is None:
            scaler = StandardScaler()
            return scaler.fit_transform(part), scaler
        return scaler.transform(part), scaler

    x = torch.randn(40, 3) * 4 + 2
    x_train, x_test = x[:30], x[30:] + 3
    train, scaler = scaled(x_train)
    test, _ = scaled(x_test, scaler)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model(train), x_train.sum(1, keepdim=True)).backward()
        optimizer.step()
    with torch.no_grad():
        print(F.mse_loss(model(test), x_test.sum(1, keepdim=True)).item())


@right
def another_place_with_the_numbers_of_the_training():
    train_set = Finds(40, KINDS, 0)
    other_site = Finds(24, KINDS[1:], 1, train_set.number_of)
    print(share_of_right(told_apart(train_set), DataLoader(other_site, batch_size=12)))


@right
def another_place_with_fewer_kinds_whose_numbers_are_the_same():
    train_set, other_site = Finds(40, KINDS, 0), Finds(24, KINDS[:3], 1)
    print(share_of_right(told_apart(train_set), DataLoader(other_site, batch_size=12)))


@right
def two_places_each_with_a_model_of_its_own():
    first_train, second_train = Finds(40, KINDS, 0), Finds(24, KINDS[1:], 1)
    first_test, second_test = (
        Finds(16, KINDS, 2, first_train.number_of),
        Finds(16, KINDS[1:], 3, second_train.number_of),
    )
    for train, test in ((first_train, first_test), (second_train, second_test)):
        print(share_of_right(told_apart(train, nn.Linear(5, len(train.number_of))), DataLoader(test, batch_size=8)))
