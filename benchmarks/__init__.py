"""Measurements against peers and against the course's own limits. `python -m benchmarks` prints them."""
