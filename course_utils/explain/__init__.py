"""Explaining: what an error of autograd's or of a training means, in terms of the learner's own lines and names."""
