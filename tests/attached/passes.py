"""The picture of `missing_numbers`: a recorded pass as the stepper draws it, with letters in place of some numbers."""

import base64
import xml.etree.ElementTree as ET

from course_utils import doctor
from course_utils.checks.scenes.lesson_02_how_backward_works.missing_numbers import (
    RECEIVED,
    SENT,
    missing,
    node_of,
    passed,
)
from course_utils.pictures.frames import panel_of

_SVG = "{http://www.w3.org/2000/svg}"
# What the picture shows, for those who do not see it.
ALT = (
    "A backward pass over six nodes. The code ran so: p = a times 4, s = p minus c, t = s times p, out = 2 times t; "
    "with a = 3 and c = 7 that made p = 12, s = 5, t = 60 and out = 120. "
    "Turn 1: the node of out receives 1 and sends 2 to t. "
    "Turn 2: the node of t receives 2 and sends 24, times p = 12, to s, and A to p. "
    "Turn 3: the node of s receives 24 and sends 24, times 1, to p, and B to c. "
    "Turn 4: the grad of c is B. Turn 5: the node of p receives C and sends D to a. Turn 6: the grad of a is D."
)


def svg() -> str:
    """Return the picture, with letters where it leaves numbers out."""
    recording = passed()
    page = ET.fromstring(panel_of(recording, "", 0, with_forward=False).svg)
    edges = {f"{node_of(recording, name)}-{place}": letter for letter, (name, place) in SENT.items()}
    for beside in page.iter(f"{_SVG}g"):
        letter = edges.get(beside.get("data-edges", "")) if beside.get("class") == "beside" else None
        if letter:
            for text in list(beside)[:-1]:  # by what the node multiplied
                beside.remove(text)
            beside[-1].text = letter
    received = {f"gradient-{node_of(recording, name)}": letter for letter, name in RECEIVED.items()}
    hidden = {f"{number:g}": letter for letter, number in missing(recording).items()}
    for text in page.iter(f"{_SVG}text"):
        head, _, number = (text.text or "").rpartition(" ")
        if text.get("data-key") in received:
            text.text = f"{head} {received[text.get('data-key', '')]}"
        elif ".grad" in head and number in hidden:
            text.text = f"{head} {hidden[number]}"
    ET.register_namespace("", "http://www.w3.org/2000/svg")
    return ET.tostring(page, encoding="unicode")


def png() -> str:
    """Return the picture as a PNG in base64. Needs Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=doctor.chromium())
        page = browser.new_page(device_scale_factor=1.3)
        page.set_content(f"<body style='margin:0;display:inline-block'>{svg()}</body>")
        taken = page.locator("svg").screenshot()
        browser.close()
    return base64.b64encode(taken).decode()
