"""Pictures of figures are well-formed and stay within their frame."""

import xml.etree.ElementTree as ET

from benchmarks.plot import Axis, Curve, bars, curves

AXIS = Axis("share & more", (0, 50, 100), " %")
NS = "{http://www.w3.org/2000/svg}"


def test_a_picture_of_curves_shows_what_lies_within_its_ticks() -> None:
    line = Curve(
        "a < b", [(0, 0), (50, 25), (100, 90), (150, 95)], [(50, 25, "here"), (150, 95, "out")]
    )

    page = ET.fromstring(curves("Curves", AXIS, AXIS, [line]))

    (drawn,) = page.iter(f"{NS}polyline")
    assert len(drawn.attrib["points"].split()) == 3
    words = [each.text for each in page.iter(f"{NS}text")]
    assert {"a < b", "share & more", "here", "50 %"} <= set(words)
    assert "out" not in words


def test_bars_are_as_long_as_their_values() -> None:
    page = ET.fromstring(bars("Bars", "us", [("one", 10.0), ("two", 5.0)]))

    _, one, two = page.iter(f"{NS}rect")
    assert float(one.attrib["width"]) == 2 * float(two.attrib["width"])
