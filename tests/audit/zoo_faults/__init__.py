"""Faulty loops. Those in `first` were written before the checks, from the list of codes alone."""

from tests.audit.zoo_faults import (
    axes,
    derivatives,
    first_graphs,
    first_losses,
    first_models,
    first_steps,
    ignored,
    later_graphs,
    later_kinds,
    later_models,
    later_sequences,
    later_steps,
    paces,
    states,
    strangers,
    tensors,
)

__all__ = [
    "axes",
    "derivatives",
    "first_graphs",
    "first_losses",
    "first_models",
    "first_steps",
    "ignored",
    "later_graphs",
    "later_kinds",
    "later_models",
    "later_sequences",
    "later_steps",
    "paces",
    "states",
    "strangers",
    "tensors",
]
