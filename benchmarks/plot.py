"""Draws measured curves and bars as SVG, in words that a person and a diff can read."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

_COLOURS: Final = ("#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2")
_WIDTH: Final = 720
_HEIGHT: Final = 420
_LEFT: Final = 70
_RIGHT: Final = 20
_TOP: Final = 46
_BOTTOM: Final = 56
_BAR: Final = 26

Point = tuple[float, float]


class Curve(NamedTuple):
    """A line through points (x, y), and those of them that have a name."""

    name: str
    points: Sequence[Point]
    marks: Sequence[tuple[float, float, str]] = ()


class Axis(NamedTuple):
    """What stands at an axis: its words and the values with a line."""

    words: str
    ticks: Sequence[float]
    unit: str = ""


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'


def _page(title: str, height: int, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="{escape(title)}">'
    )
    paper = f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>'
    lines = [head, paper, _text(_LEFT, 22, title, 'font-size="15" font-weight="bold"'), *parts]
    return "\n".join([*lines, "</svg>", ""])


def curves(title: str, across: Axis, up: Axis, drawn: Sequence[Curve]) -> str:
    """Return a picture of curves; what lies outside of the ticks is left out."""
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    most_x, most_y = across.ticks[-1], up.ticks[-1]

    def at(x: float, y: float) -> Point:
        return _LEFT + wide * x / most_x, _HEIGHT - _BOTTOM - high * y / most_y

    parts: list[str] = []
    for tick in up.ticks:
        x, y = at(0, tick)
        parts.append(f'<path d="M{x:.1f} {y:.1f}h{wide}" stroke="#dddddd"/>')
        parts.append(_text(x - 8, y + 4, f"{tick:g}{up.unit}", 'text-anchor="end"'))
    for tick in across.ticks:
        x, y = at(tick, 0)
        parts.append(_text(x, y + 18, f"{tick:g}{across.unit}", 'text-anchor="middle"'))
    middle = _LEFT + wide / 2
    parts.append(_text(middle, _HEIGHT - 14, across.words, 'text-anchor="middle"'))
    parts.append(_text(_LEFT, _TOP - 8, up.words))
    for number, curve in enumerate(drawn):
        colour = _COLOURS[number % len(_COLOURS)]
        inside = [at(x, y) for x, y in sorted(curve.points) if x <= most_x and y <= most_y]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in inside)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y, words in curve.marks:
            if x <= most_x and y <= most_y:
                left, top = at(x, y)
                parts.append(f'<circle cx="{left:.1f}" cy="{top:.1f}" r="4" fill="{colour}"/>')
                parts.append(_text(left + 7, top + 13, words, f'fill="{colour}"'))
        key = _HEIGHT - _BOTTOM - 20 * (len(drawn) - number)
        parts.append(f'<path d="M{_WIDTH - 250} {key}h24" stroke="{colour}" stroke-width="3"/>')
        parts.append(_text(_WIDTH - 218, key + 4, curve.name))
    return _page(title, _HEIGHT, parts)


def bars(title: str, unit: str, rows: Sequence[tuple[str, float]]) -> str:
    """Return a picture of bars, one for each row of a name and a value."""
    most = max(value for _, value in rows)
    name_px = 250
    parts: list[str] = []
    for number, (name, value) in enumerate(rows):
        top = _TOP + number * _BAR
        wide = (_WIDTH - name_px - 110) * value / most
        parts.append(_text(name_px - 10, top + 16, name, 'text-anchor="end"'))
        parts.append(
            f'<rect x="{name_px}" y="{top + 4}" width="{wide:.1f}" height="{_BAR - 9}" '
            f'fill="{_COLOURS[0]}"/>'
        )
        parts.append(_text(name_px + wide + 6, top + 16, f"{value:,.1f} {unit}"))
    return _page(title, _TOP + len(rows) * _BAR + 16, parts)
