"""Showing autograd."""
