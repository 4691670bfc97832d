"""A scene as an SVG picture."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from course_utils.pictures.boxes import CHARACTER, LINE, PAD, Box, Line, Scene, size_of
from course_utils.pictures.colours import BLUE, DARK, GREY, INK, LIGHT, ORANGE, Palette
from course_utils.pictures.layout import MAX_ARROWS, MAX_BOXES, Layout, lay_out

_MARGIN, _LEGEND_WIDTH = 12.0, 440.0
_SMALL = CHARACTER * 11 / 12
# The colours of the page that a picture is part of, as `colours.style` names them.
VARIABLES = Palette(*(f"var(--{name})" for name in Palette._fields))
_FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"


def svg_of(
    drawn: Scene, alt: str, most_boxes: int = MAX_BOXES, most_arrows: int = MAX_ARROWS, as_code: bool = False
) -> str:
    """Lay a scene out and draw it, for a light page.

    Arrows point downwards, the way of gradients. With `as_code` inputs are at the top, and arrows go the way of values.
    Raises TooLargeToDraw above the limits, and ImportError without pygraphviz.
    """
    sizes = {name: box.size for name, box in drawn.boxes.items()}
    beside = [size_of(lines) if lines else None for lines in drawn.labels]
    layout = lay_out(sizes, drawn.arrows, most_boxes, most_arrows, beside)
    layout = layout.upside_down() if as_code else layout
    tells, crossed = [drawn.nodes[start] < 0 for start, _ in drawn.arrows], _crossed(drawn)
    arrows = [_arrow(*one, as_code) for one in zip(layout.arrows, drawn.edges, tells, crossed, strict=True)]
    parts = [f'<g class="edges">{"".join(arrows)}</g>']
    for name, box in drawn.boxes.items():
        node = drawn.nodes[name]
        parts.append(_drawn(box, node, node in drawn.copied, layout.centres[name]))
    for lines, edges, centre in zip(drawn.labels, drawn.edges, layout.labels, strict=True):
        if centre is not None:
            y = f'data-y="{centre[1]:.1f}"'
            parts.append(f'<g class="beside" data-edges="{_keys(edges)}" {y}>{_texts(lines, *centre)}</g>')
    return _page(layout, parts, _legend(drawn, as_code), alt)


def themed(svg: str) -> str:
    """Return a picture with a style for dark pages, which holds where the page, or the reader's system, is dark."""
    head, title, rest = svg.partition("</title>")
    crosses = f" .cross {{ stroke: {DARK.orange}; }}" if 'class="cross"' in rest else ""
    return f"{head}{title}<style>@media (prefers-color-scheme: dark) {{ {rules(DARK)}{crosses} }}</style>{rest}"


def printable(text: str) -> str:
    """Replace what no XML may hold, such as control characters in a name."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def rules(palette: Palette) -> str:
    """Return the style that gives a picture the colours of `palette`."""
    inks = " ".join(f"text.{style} {{ fill: {getattr(palette, ink)}; }}" for style, (ink, _) in _STYLES.items())
    return (
        f".paper, .box {{ fill: {palette.paper}; }} .box, .edge {{ stroke: {palette.ink}; }} "
        f".cut {{ stroke: {palette.grey}; }} "
        f".box.start {{ fill: {palette.start}; }} .box.leaf {{ fill: {palette.leaf}; stroke: {palette.blue}; }} "
        f"text {{ fill: {palette.ink}; }} {inks}"
    )


def _keys(edges: Collection[tuple[int, int]]) -> str:
    return " ".join(f"{node}-{position}" for node, position in edges)


def _crossed(drawn: Scene) -> list[bool]:
    """Return for each arrow whether a cross stands on it: where numbers came on unseen; else on the missing link."""
    unseen = {start for start, _ in drawn.arrows if drawn.boxes[start].unseen}
    return [
        not edges and (start in unseen or (drawn.boxes[end].apart and end not in unseen))
        for (start, end), edges in zip(drawn.arrows, drawn.edges, strict=True)
    ]


def _arrow(
    curve: Sequence[tuple[float, float]], edges: Collection[tuple[int, int]], tells: bool, crossed: bool, as_code: bool
) -> str:
    """Draw an edge; or where a cut is shown the one link that is missing, or what `tells` whence the numbers came."""
    (x, y), *bends, tip = curve
    path = f"M{x},{y} C{' '.join(f'{x},{y}' for x, y in bends)} L{tip[0]},{tip[1]}"
    if not edges:
        stroke = f'fill="none" stroke="{GREY}" stroke-width="1.6"'
        line = f'<path class="cut" d="{path}" stroke-dasharray="{"1.5 4" if tells else "5 3"}" {stroke}/>'
        across = f'<path class="cross" d="{_cross(curve)}" fill="none" stroke="{ORANGE}" stroke-width="3"/>'
        return line + across * crossed
    end = "start" if as_code else "end"
    stroke = f'fill="none" stroke="{INK}" stroke-width="1.2" marker-{end}="url(#tip)"'
    return f'<path class="edge" data-edges="{_keys(edges)}" d="{path}" {stroke}/>'


def _cross(curve: Sequence[tuple[float, float]]) -> str:
    """Return the path of a cross on the middle of a curve."""
    x, y = curve[len(curve) // 2]
    return f"M{x - 8:.1f},{y - 8:.1f} l16,16 m0,-16 l-16,16"


def _drawn(box: Box, node: int, copied: bool, centre: tuple[float, float]) -> str:
    width, height = box.size
    left, top = centre[0] - width / 2, centre[1] - height / 2
    stroke, fill = (BLUE, LIGHT.leaf) if box.leaf else (INK, LIGHT.start if box.start else LIGHT.paper)
    kinds = "box" + " leaf" * box.leaf + " start" * (box.start and not box.leaf)
    radius = min(height, 2 * LINE) / 2 if box.leaf else 3
    dash = ' stroke-dasharray="5 3"' if copied or box.apart else ' stroke-opacity="0"' if box.port else ""
    rect = (
        f'<rect class="{kinds}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius:.1f}" fill="{fill}" stroke="{stroke}" stroke-width="{2.4 if box.start else 1.2}"{dash}/>'
    )
    return f'<g class="node" data-node="{node}" data-y="{centre[1]:.1f}">{rect}{_texts(box.lines, *centre)}</g>'


def _texts(lines: Sequence[Line], x: float, y: float) -> str:
    top = y - size_of(lines)[1] / 2
    rows = []
    for number, line in enumerate(lines):
        baseline = top + PAD / 2 + (number + 0.75) * LINE
        ink, more = _STYLES[line.style]
        key = f' data-key="{line.key}"' if line.key else ""
        spaces = ' xml:space="preserve"' if "  " in line.text else ""
        rows.append(
            f'<text x="{x:.1f}" y="{baseline:.1f}" text-anchor="middle" class="{"line " * bool(key)}{line.style}"{key}'
            f' fill="{getattr(LIGHT, ink)}"{more}{spaces}>{escape(printable(line.text))}</text>'
        )
    return "".join(rows)


# By the style of a line: its ink, and what else tells it from others.
_STYLES = {
    "title": ("ink", ' font-weight="bold"'),
    "plain": ("ink", ""),
    "value": ("ink", ""),
    "factor": ("ink", ""),
    "held": ("green", ""),
    "attribute": ("green", ""),
    "packed": ("green", ' font-style="italic"'),
    "modified": ("orange", ' font-weight="bold"'),
    "freed": ("grey", ' text-decoration="line-through"'),
    "spent": ("grey", ' text-decoration="line-through"'),  # freed in the pass that the picture is about
    "gradient": ("blue", ' font-weight="bold"'),
    "apart": ("grey", ' font-style="italic"'),
}


def _page(layout: Layout, parts: list[str], words: Sequence[str], alt: str) -> str:
    legend = _wrapped(words, max(layout.width, _LEGEND_WIDTH))
    width = max(layout.width, *(len(line) * _SMALL for line in legend)) + 2 * _MARGIN
    below = layout.height + _MARGIN + LINE
    height = below + len(legend) * LINE
    rows = "".join(
        f'<text class="legend" x="{width / 2:.1f}" y="{below + number * LINE:.1f}" text-anchor="middle" font-size="11" '
        f'fill="{INK}">{line}</text>'
        for number, line in enumerate(legend)
    )
    shift = (width - layout.width) / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{_FONT}" font-size="12">'
        f"<title>{escape(printable(alt))}</title>"
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8.4" markerHeight="8.4" '
        f'markerUnits="userSpaceOnUse" orient="auto-start-reverse">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="context-stroke"/></marker></defs>'
        f'<rect class="paper" width="100%" height="100%" fill="{LIGHT.paper}"/>'
        f'<g data-height="{layout.height:.1f}" transform="translate({shift:.1f},{_MARGIN})">'
        f"{''.join(parts)}</g>{rows}</svg>"
    )


def _wrapped(words: Sequence[str], width: float) -> list[str]:
    """Put the legend's words into lines of at most `width` px, where a word allows it."""
    lines = [words[0]]
    for word in words[1:]:
        longer = f"{lines[-1]} | {word}"
        if len(longer) * _SMALL <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _legend(drawn: Scene, as_code: bool) -> list[str]:
    styles = {line.style for box in drawn.boxes.values() for line in box.lines}
    words = ["round: leaf", "square: operation", "thick: result" if as_code else "thick: start"]
    if as_code:
        words.append("arrows: from inputs to results")
    if styles & {"held", "packed", "attribute"}:
        words.append("green: kept for backward")
    if "modified" in styles:
        words.append("orange: written to since")
    if styles & {"freed", "spent"}:
        words.append("struck through: freed")
    if "gradient" in styles:
        words += ["blue: gradient", "turn: which box runs when"]
    if any(drawn.labels):
        words.append("beside an arrow: factor, and what was sent")
    unseen = any(drawn.boxes[start].unseen for start, _ in drawn.arrows)
    if not all(drawn.edges):
        words.append(f"dashed{'' if unseen else ', and a cross'}: no link, no gradient passes")
    if any(drawn.nodes[start] < 0 for start, _ in drawn.arrows):
        words.append("dotted: its numbers came from there")
    if unseen:
        words.append("a cross on it: not recorded")
    if drawn.copied:
        words.append("dashed: one leaf, drawn at each use")
    return words
