"""The colours of pictures: contrast, and what remains of it for colour-blind readers."""

import itertools

import pytest

from course_utils.pictures.colours import DARK, LIGHT

INKS = ("ink", "grey", "blue", "orange", "green")
GROUNDS = ("paper", "leaf", "start", "work")
# Linear RGB as people see it who lack one kind of cone. Source: Machado, Oliveira and Fernandes (2009), severity 1.
BLINDNESS = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def linear(colour: str) -> tuple[float, ...]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG 2 defines it."""
    lights = sorted(sum(map(float.__mul__, (0.2126, 0.7152, 0.0722), linear(colour))) for colour in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def seen(colour: str, blindness: str) -> tuple[float, float, float]:
    """Return a colour's place in CIELAB as a colour-blind reader sees it."""
    red, green, blue = (min(max(sum(map(float.__mul__, row, linear(colour))), 0), 1) for row in BLINDNESS[blindness])
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    x, y, z = (one ** (1 / 3) if one > 0.008856 else 7.787 * one + 16 / 116 for one in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_can_be_read_on_every_ground(palette):
    low = {
        (ink, ground): contrast(getattr(palette, ink), getattr(palette, ground))
        for ink, ground in itertools.product(INKS, GROUNDS)
    }
    assert {pair: round(ratio, 2) for pair, ratio in low.items() if ratio < 4.5} == {}
    assert contrast(palette.faint, palette.paper) >= 3, "strokes need 3 to 1"


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("blindness", BLINDNESS)
def test_inks_differ_for_colour_blind_readers(palette, blindness):
    """A difference of 10 in CIELAB is seen at a glance."""
    places = {ink: seen(getattr(palette, ink), blindness) for ink in ("blue", "orange", "green")}
    for one, other in itertools.combinations(places, 2):
        apart = sum((a - b) ** 2 for a, b in zip(places[one], places[other], strict=True)) ** 0.5
        assert apart > 10, (one, other, apart)
