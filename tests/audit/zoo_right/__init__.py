"""Right loops, plain and unusual. Nothing of level error or likely may be said of any of them."""

from tests.audit.zoo_right import (
    by_hand,
    derivatives,
    first_plain,
    first_players,
    first_unusual,
    ignored,
    later_kinds,
    later_sequences,
    lookalikes,
    paces,
    products,
    strangers,
    styles_generative,
    styles_supervised,
    tensors,
    unlike,
)

__all__ = [
    "by_hand",
    "derivatives",
    "first_plain",
    "first_players",
    "first_unusual",
    "ignored",
    "later_kinds",
    "later_sequences",
    "lookalikes",
    "paces",
    "products",
    "strangers",
    "styles_generative",
    "styles_supervised",
    "tensors",
    "unlike",
]
