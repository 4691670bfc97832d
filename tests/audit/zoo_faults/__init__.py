"""Faulty loops. Those in `first` were written before the checks, from the list of codes alone."""

from tests.audit.zoo_faults import (
    first_graphs,
    first_losses,
    first_models,
    first_steps,
    later_graphs,
    later_models,
    later_steps,
    paces,
    strangers,
)

__all__ = [
    "first_graphs",
    "first_losses",
    "first_models",
    "first_steps",
    "later_graphs",
    "later_models",
    "later_steps",
    "paces",
    "strangers",
]
