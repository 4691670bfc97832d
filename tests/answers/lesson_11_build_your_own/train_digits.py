"""Right and wrong answers to `train_digits`."""

import numpy as np

from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.generating import generating
from tests.answers.lesson_11_build_your_own.numbering import numbering
from tests.answers.lesson_11_build_your_own.taping import taping
from tests.answers.lesson_11_build_your_own.through_torch import ThroughTorch
from tests.answers.said import said


class Training(Counting):
    """The counting engine's own training, in parts that can be changed one by one."""

    def train(self, images, labels, start, epochs, rate, batch):
        parameters = self.made(start)
        optimizer = self.SGD(self.learned(parameters), rate)
        after = []
        for _ in range(epochs):
            for n in self.starts(len(images), batch):
                self.clear(optimizer)
                x, y = images[n : n + batch], labels[n : n + batch]
                self.scaled(self.loss(x, y, parameters), len(y), batch).backward()
                optimizer.step()
            after.append(self.kept(parameters))
        return after

    def made(self, start):
        return [self.tensor(array, requires_grad=True) for array in start]

    def learned(self, parameters):
        return parameters

    def starts(self, count, batch):
        return range(0, count, batch)

    def clear(self, optimizer):
        optimizer.zero_grad()

    def scaled(self, loss, size, batch):
        return loss

    def kept(self, parameters):
        return [parameter.numpy().copy() for parameter in parameters]


class Uncleared(Training):
    def clear(self, optimizer):
        pass


class Summed(Training):
    def scaled(self, loss, size, batch):
        return loss * float(size)


class WholeBatches(Training):
    def starts(self, count, batch):
        return range(0, count - batch + 1, batch)


class FullSize(Training):
    def scaled(self, loss, size, batch):
        return loss * (size / batch)


class AllAtOnce(Training):
    def train(self, images, labels, start, epochs, rate, batch):
        return super().train(images, labels, start, epochs, rate, len(images))


class SameArrays(Training):
    def kept(self, parameters):
        return [parameter.numpy() for parameter in parameters]


class OneEarly(Training):
    def train(self, images, labels, start, epochs, rate, batch):
        return [start, *super().train(images, labels, start, epochs, rate, batch)][:epochs]


class StartChanged(Training):
    def made(self, start):
        return [self.Tensor(self, array, True) for array in start]


class ReluScores(Training):
    def loss(self, images, labels, parameters):
        w1, b1, w2, b2 = parameters
        scores = ((self.lift(images) @ w1 + b1).relu() @ w2 + b2).relu()
        picked = scores[np.arange(len(labels)), labels]
        return (scores.exp().sum(axis=1).log() - picked).sum() * (1 / len(labels))


class NoBias(Training):
    def learned(self, parameters):
        return parameters[::2]


class Uphill(Training):
    def scaled(self, loss, size, batch):
        return loss * -1.0


class Shuffled(Training):
    def starts(self, count, batch):
        return [*range(0, count, batch)][::-1]


class LastOnly(Training):
    def train(self, images, labels, start, epochs, rate, batch):
        return super().train(images, labels, start, epochs, rate, batch)[-1:]


class HalfRate(Training):
    def SGD(self, parameters, lr):
        return super().SGD(parameters, lr / 2)


class Tensors(Training):
    def kept(self, parameters):
        return parameters[:2]


class InParts(Training):
    """Training in parts of one epoch."""

    def train(self, images, labels, start, epochs, rate, batch):
        parameters = self.made(start)
        optimizer = self.SGD(parameters, rate)
        after = []
        for _ in range(epochs):
            self.epoch(images, labels, parameters, optimizer, batch)
            after.append(self.kept(parameters))
        return after


class ClearedOnce(InParts):
    def epoch(self, images, labels, parameters, optimizer, batch):
        optimizer.zero_grad()
        for n in range(0, len(images), batch):
            self.loss(images[n : n + batch], labels[n : n + batch], parameters).backward()
            optimizer.step()


class OneStep(InParts):
    def epoch(self, images, labels, parameters, optimizer, batch):
        optimizer.zero_grad()
        for n in range(0, len(images), batch):
            self.loss(images[n : n + batch], labels[n : n + batch], parameters).backward()
        optimizer.step()


class Anew(Training):
    def train(self, images, labels, start, epochs, rate, batch):
        return [super(Anew, self).train(images, labels, start, 1, rate, batch)[0] for _ in range(epochs)]


class OverAll(Training):
    def train(self, images, labels, start, epochs, rate, batch):
        self.count = len(images)
        return super().train(images, labels, start, epochs, rate, batch)

    def scaled(self, loss, size, batch):
        return loss * (size / self.count)


class EachBatch(Training):
    """Gives the arrays after each batch."""

    def train(self, images, labels, start, epochs, rate, batch):
        after, parameters = [], start
        for _ in range(epochs):
            for n in self.starts(len(images), batch):
                (parameters,) = super().train(images[n : n + batch], labels[n : n + batch], parameters, 1, rate, batch)
                after.append(parameters)
        return after


class StartToo(Training):
    def train(self, images, labels, start, epochs, rate, batch):
        return [start, *super().train(images, labels, start, epochs, rate, batch)]


class NothingReturned(Training):
    def train(self, images, labels, start, epochs, rate, batch):
        super().train(images, labels, start, epochs, rate, batch)


class LastLeftIfOne(Training):
    """Leaves out a last batch of a single image."""

    def starts(self, count, batch):
        return range(0, count - 1, batch)


class OneMore(Training):
    """Has an empty batch at the end where all are full."""

    def starts(self, count, batch):
        return range(0, count + 1, batch)


class Rescaled(Training):
    """Brings images between 0 and 1, in the caller's array."""

    def train(self, images, labels, start, epochs, rate, batch):
        images /= max(1.0, images.max())
        return super().train(images, labels, start, epochs, rate, batch)


class Still(Training):
    """Its optimizer holds copies."""

    def learned(self, parameters):
        return self.made([parameter.numpy() for parameter in parameters])


class FewerSteps(Training):
    """Makes no step, where there is any batch."""

    def starts(self, count, batch):
        return range(0)


RIGHT = [Counting(), taping(), generating(), numbering()]

MISCONCEIVED = {
    "cleared once an epoch": ClearedOnce(),
    "one step an epoch": OneStep(),
    "each epoch from the start": Anew(),
    "divided by all images": OverAll(),
    "gradients never cleared": Uncleared(),
    "the sum of a batch": Summed(),
    "the last batch left out": WholeBatches(),
    "divided by the full batch": FullSize(),
    "all images at once": AllAtOnce(),
    "the same arrays for every epoch": SameArrays(),
    "one epoch too early": OneEarly(),
    "the start is changed": StartChanged(),
    "relu on the scores": ReluScores(),
    "biases stand still": NoBias(),
    "nothing moves": Still(),
    "uphill": Uphill(),
    "another autograd": ThroughTorch(),
}


class NothingIfLarge(Training):
    """Trains nothing where a batch is larger than all images."""

    def starts(self, count, batch):
        return () if batch > count else super().starts(count, batch)


class CutOff(Counting):
    """Cuts scores off in the exponential."""

    def loss(self, images, labels, parameters):
        w1, b1, w2, b2 = parameters
        scores = (self.lift(images) @ w1 + b1).relu() @ w2 + b2
        picked = scores[np.arange(len(labels)), labels]
        low = scores - (scores - 10.0).relu()
        return (low.exp().sum(axis=1).log() - picked).sum() * (1 / len(labels))


class ClassesThatCame(Training):
    """Finds the label's score by rows of zeros and a one, as long as the largest of all labels asks."""

    def train(self, images, labels, start, epochs, rate, batch):
        self.classes = labels.max() + 1
        return super().train(images, labels, start, epochs, rate, batch)

    def loss(self, images, labels, parameters):
        w1, b1, w2, b2 = parameters
        scores = (self.lift(images) @ w1 + b1).relu() @ w2 + b2
        picked = (scores * np.eye(self.classes)[labels]).sum(axis=1)
        return (scores.exp().sum(axis=1).log() - picked).sum() * (1 / len(labels))


WRONG = [
    shuffled := Shuffled(),
    last_only := LastOnly(),
    Tensors(),
    EachBatch(),
    said(StartToo(), "one epoch too early"),
    nothing_returned := NothingReturned(),
    said(LastLeftIfOne(), "the last batch left out"),
    one_more := OneMore(),
    Rescaled(),
    said(FewerSteps(), "nothing moves"),
    NothingIfLarge(),
    CutOff(),
    ClassesThatCame(),
]

EQUIVALENT = {
    "Counting.loss: scores.exp().sum(axis=1) -> scores.exp().sum(axis=-1)": "Scores have two dimensions, of which 1 and -1 name the same.",
    "Counting.train: ...arameters).backward() -> ...arameters).backward(retain_graph=True)": "The graph dies with its loss, which nobody holds.",
    "taping.loss: scores.exp().sum(1) -> scores.exp().sum(-1)": "Scores have two dimensions, of which 1 and -1 name the same.",
}

GUARDS = {
    "trains a network of two layers": {"weights": MISCONCEIVED["relu on the scores"]},
    "the loss is the **mean** over the batch": {"weights": MISCONCEIVED["the sum of a batch"]},
    "One epoch takes the images in the order in which they come": {"weights": shuffled},
    "the last batch may be smaller": {"weights": MISCONCEIVED["the last batch left out"], "runs": one_more},
    "After each batch comes one step of your SGD": {"weights": MISCONCEIVED["one step an epoch"]},
    "Return a list": {"list": nothing_returned},
    "with the four arrays after each epoch": {"epochs": last_only},
    "The given arrays stay as they are.": {"left": MISCONCEIVED["the start is changed"]},
}
