"""Errors of what is given to losses and layers."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.explain.provoked import case


@case("target-broadcast", "(5, 1)", "(5,)", warns=True)
def target_that_broadcasts():
    return F.mse_loss(torch.ones(5, 1), torch.ones(5))  # raised here


@case("shapes", "(5, 2)", "(3, 2)")
def mse_of_other_shapes():
    pred, target = torch.ones(5, 2), torch.ones(3, 2)
    return F.mse_loss(pred, target)  # raised here


@case("target-shape", "logits", "labels")
def bce_of_another_shape():
    logits, labels = torch.ones(5, 1), torch.ones(5)
    return F.binary_cross_entropy_with_logits(logits, labels)  # raised here


@case("target-shape", "pred")
def plain_bce_of_another_shape():
    pred, labels = torch.rand(5, 1), torch.ones(5)
    return F.binary_cross_entropy(pred, labels)  # raised here


@case("target-dtype", "labels", "float")
def float_labels():
    logits, labels = torch.ones(5, 3), torch.zeros(5)
    return F.cross_entropy(logits, labels)  # raised here


@case("target-dtype", "labels", "int")
def integer_labels_of_bce():
    logits, labels = torch.ones(5), torch.zeros(5, dtype=torch.long)
    return F.binary_cross_entropy_with_logits(logits, labels)  # raised here


@case("target-range", "3", "labels", "3 classes")
def label_out_of_range():
    logits, labels = torch.ones(5, 3), torch.tensor([1, 2, 3, 1, 2])
    return F.cross_entropy(logits, labels)  # raised here


@case("target-shape", "(5, 1)")
def labels_with_a_dimension_too_many():
    logits, labels = torch.ones(5, 3), torch.zeros(5, 1, dtype=torch.long)
    return nn.CrossEntropyLoss()(logits, labels)  # raised here


@case("target-shape", "5", "4")
def batch_sizes_that_differ():
    logits, labels = torch.ones(5, 3), torch.zeros(4, dtype=torch.long)
    return nn.CrossEntropyLoss()(logits, labels)  # raised here


@case("target-shape", "one-hot")
def one_hot_of_long():
    logits, labels = torch.ones(5, 3), torch.zeros(5, 3, dtype=torch.long)
    return F.cross_entropy(logits, labels)  # raised here


@case("target-unit-range", "sigmoid", "logits")
def bce_of_logits():
    logits, labels = torch.tensor([2.0, -1.0]), torch.ones(2)
    return F.binary_cross_entropy(logits, labels)  # raised here


@case("weight-shape", "weight", "3")
def class_weights_of_another_size():
    logits, labels = torch.ones(5, 3), torch.zeros(5, dtype=torch.long)
    return F.cross_entropy(logits, labels, weight=torch.ones(2))  # raised here


@case("batch-norm-one-value", "eval")
def batch_norm_of_one_sample():
    norm = nn.BatchNorm1d(4)
    return norm(torch.ones(1, 4))  # raised here


@case("matrix-shapes", "fc", "in_features=8", "6")
def linear_of_another_width():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 2)

        def forward(self, x):
            return self.fc(x)  # raised here

    return Net()(torch.ones(4, 6))


@case("matrix-shapes", "a", "b", "(4, 6)", "(8, 2)")
def matrices_that_do_not_fit():
    a, b = torch.ones(4, 6), torch.ones(8, 2)
    return a @ b  # raised here


@case("channels", "conv", "3", "1")
def conv_of_other_channels():
    conv = nn.Conv2d(3, 8, 3)
    return conv(torch.ones(2, 1, 8, 8))  # raised here


@case("shapes", "a", "b")
def addition_of_other_shapes():
    a, b = torch.ones(4, 6), torch.ones(4, 5)
    return a + b  # raised here


@case("dtype-mismatch", "float64", "float32")
def linear_of_doubles():
    layer, x = nn.Linear(3, 1), torch.ones(2, 3, dtype=torch.float64)
    return layer(x)  # raised here


@case("dtype-mismatch", "int64")
def linear_of_integers():
    layer, x = nn.Linear(3, 1), torch.ones(2, 3, dtype=torch.long)
    return layer(x)  # raised here


@case("dtype-mismatch", "float64")
def conv_of_doubles():
    conv = nn.Conv2d(3, 8, 3)
    return conv(torch.ones(2, 3, 8, 8, dtype=torch.float64))  # raised here


@case("index-dtype", "float32", "tokens")
def embedding_of_floats():
    embed, tokens = nn.Embedding(10, 4), torch.ones(3)
    return embed(tokens)  # raised here


@case("index-range", "10")
def embedding_out_of_range():
    embed, tokens = nn.Embedding(10, 4), torch.tensor([3, 10])
    return embed(tokens)  # raised here


@case("dtype-mismatch", "int64")
def mean_of_integers():
    correct = torch.tensor([1, 0, 1])
    return correct.mean()  # raised here


@case("element-count", "x", "12", certain=False)
def view_of_another_size():
    x = torch.ones(3, 4)
    return x.view(5, -1)  # raised here


@case("channels", "conv")
def conv_of_two_dimensions():
    conv = nn.Conv2d(3, 8, 3)
    return conv(torch.ones(8, 8))  # raised here


@case("input-shape", "h")
def lstm_of_another_width():
    rnn = nn.LSTM(4, 5)
    return rnn(torch.ones(7, 2, 3))  # raised here


@case("joined-shapes")
def cat_of_other_shapes():
    a, b = torch.ones(3, 4), torch.ones(2, 5)
    return torch.cat([a, b])  # raised here


@case("stacked-shapes")
def stack_of_other_shapes():
    parts = [torch.ones(3), torch.ones(4)]
    return torch.stack(parts)  # raised here


@case("target-range", "labels")
def nll_of_negative_labels():
    logits, labels = torch.ones(5, 3), torch.tensor([1, 2, -1, 1, 2])
    return F.nll_loss(F.log_softmax(logits, 1), labels)  # raised here


@case("softmax-dim", "dim", warns=True)
def softmax_without_dim():
    return F.softmax(torch.ones(2, 3))  # raised here


@case("target-range")
def one_hot_out_of_range():
    return F.one_hot(torch.tensor([0, 3]), num_classes=3)  # raised here


@case("target-unit-range", "labels")
def labels_numbered_one_and_two():
    probabilities, labels = torch.rand(3), torch.tensor([1.0, 2.0, 1.0])
    return F.binary_cross_entropy(probabilities, labels)  # raised here


@case("target-shape", "(2, 3, 4)", "scores.movedim(-1, 1)")
def classes_in_the_last_dimension():
    scores, tags = torch.randn(2, 3, 4), torch.zeros(2, 3, dtype=torch.long)
    return F.cross_entropy(scores, tags)  # raised here


@case("loss-not-called", "nn.MSELoss", "criterion(pred, target)")
def loss_class_given_tensors():
    pred, target = torch.ones(3), torch.zeros(3)
    return nn.MSELoss(pred, target)  # raised here


@case("dtype-mismatch", "float64", "float32")
def product_of_double_and_single():
    a, b = torch.ones(2, 2, dtype=torch.float64), torch.ones(2, 2)
    return a @ b  # raised here


@case("dtype-mismatch", "float64", "float32")
def batched_product_of_double_and_single():
    a, b = torch.ones(1, 2, 2, dtype=torch.float64), torch.ones(1, 2, 2)
    return torch.bmm(a, b)  # raised here


@case("dtype-mismatch", "float64")
def dot_of_double_and_single():
    a, b = torch.ones(2, dtype=torch.float64), torch.ones(2)
    return torch.dot(a, b)  # raised here


@case("dtype-mismatch", "rnn", "float64")
def lstm_of_doubles():
    rnn, x = nn.LSTM(2, 3), torch.ones(1, 2, 2, dtype=torch.float64)
    return rnn(x)  # raised here


@case("channels", "norm", "4 channels", "5")
def batch_norm_of_another_width():
    norm = nn.BatchNorm1d(4)
    return norm(torch.ones(2, 5))  # raised here


@case("input-shape", "norm", "(4,)", "(2, 5)")
def layer_norm_of_another_width():
    norm = nn.LayerNorm(4)
    return norm(torch.ones(2, 5))  # raised here
