"""Seeing autograd: what the graph is, and what it keeps."""
