"""Questions that people ask, found by the words they use. Nothing here imports PyTorch."""
