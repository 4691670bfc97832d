"""What several answers of lesson 02 share."""


def spoiled(answer, spoil):
    """A right answer with a side effect on its inputs."""

    def spoiling(*given):
        returned = answer(*given)
        spoil(*given)
        return returned

    return spoiling
