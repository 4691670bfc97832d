"""Questions and entries are searched by the same words, however they write them."""

import pytest

from course_utils.ask.words import names_in, split, split_all, telling


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("Why doesn't PyTorch update my weights?", ["update", "weights"]),
        ("Confused about torch.where and when it's used", ["wherecall", "used"]),
        ("x.to(device) or to the device", ["x", "tocall", "device"]),
        ("OOM on 2nd GPU w/ BN", ["out", "memory", "second", "cuda", "w", "batch", "norm"]),
        ("lr vs learning rate", ["learning", "rate"]),
        ("gradient w.r.t. the input, i.e. of x", ["gradient", "input", "x"]),
        ("dropout in evaluation mode", ["dropout", "eval", "mode"]),
        ("训练时显存溢出", ["train", "out", "memory"]),
        ("model.train和model.eval的区别, F.dropout的问题", ["model", "train", "eval", "difference", "f", "dropout"]),
        ("第二次反向传播报错 梯度为None", ["second", "time", "backward", "error", "gradient", "none"]),
    ],
)
def test_words_that_tell(asked, words):
    assert telling(asked, names_in("")) == words


def test_common_words_alone_all_tell():
    assert telling("why is it so", names_in("")) == ["why", "is", "it", "so"]


def test_the_longest_chinese_word_is_taken_and_what_stands_beside_it_in_latin_letters_is_read():
    names = names_in("requires_grad")
    assert split("梯度惩罚requiresgrad冻结", names) == ["gradient", "penalty", "requires", "grad", "freeze"]
    assert split("问题", names) == []


def test_names_of_an_entry_split_what_is_asked_in_one_word():
    names = names_in("nn.BatchNorm and requires_grad, AdamW")
    assert split("batchnorm requiresgrad adamw", names) == ["batch", "norm", "requires", "grad", "adamw"]


def test_all_texts_of_entries_are_split_as_each_would_be():
    rows = [["Why BatchNorm in eval()?", "w.r.t. requires_grad"], ["torch.where(x)", "AdamW"]]
    names, words, known = split_all(rows)
    assert names == names_in(" ".join(text for row in rows for text in row))
    assert [[text.split() for text in row] for row in words] == [[split(text, names) for text in row] for row in rows]
    assert known == {word for row in words for text in row for word in text.split()}
