"""A colour for a fraction: viridis, which is even to the eye, survives colour blindness and greys in order."""

from __future__ import annotations

from rich.color import Color
from rich.style import Style

_ANCHORS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))


def heat(fraction: float) -> Style:
    """A background for a fraction with a text colour that can be read on it, on dark and light terminals alike."""
    place = min(max(fraction, 0.0), 1.0) * (len(_ANCHORS) - 1)
    index = min(int(place), len(_ANCHORS) - 2)
    low, high = _ANCHORS[index], _ANCHORS[index + 1]
    red, green, blue = (a + (b - a) * (place - index) for a, b in zip(low, high, strict=True))
    # Where black and white stand out equally against a background of that relative luminance.
    text = Color.from_rgb(0, 0, 0) if _luminance(red, green, blue) > 0.179 else Color.from_rgb(255, 255, 255)
    return Style(color=text, bgcolor=Color.from_rgb(red, green, blue))


def _luminance(red: float, green: float, blue: float) -> float:
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
