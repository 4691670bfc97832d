"""What grades, and is trusted: cases, judges and scores are here alone. It never runs a learner's code.

It imports nothing of `sandbox`, whose processes it starts and speaks to by `wire`.
"""
