"""Build HTML and SVG as text; everything that is not markup is escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from html import escape

Attribute = str | float | bool | None


class Html(str):
    """Text that is markup; any other text is escaped when it is put into an element."""

    __slots__ = ()


def markup(part: object) -> Html:
    """Return markup unchanged, None as nothing, and anything else as escaped text."""
    if part is None:
        return Html("")
    return part if isinstance(part, Html) else Html(escape(str(part)))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Concatenate parts."""
    return Html(between.join(markup(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: Attribute) -> Html:
    """Return an element. Attribute names use `_` for `-` and `class_` for `class`; None and False omit an attribute."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def void(name: str, /, **attributes: Attribute) -> Html:
    """Return an HTML element that has no children and no end tag."""
    return Html(f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>")


def table(
    head: Iterable[object],
    rows: Iterable[Html],
    foot: Html | None = None,
    *,
    class_: str = "",
    is_sortable: bool = False,
) -> Html:
    """Return a table in a box that scrolls sideways on narrow screens. Cells of the head may be markup."""
    cells = join(cell if isinstance(cell, Html) else tag("th", cell) for cell in head)
    parts = (tag("thead", tag("tr", cells)), tag("tbody", *rows), tag("tfoot", foot) if foot else None)
    classes = " ".join(word for word in (class_, "sortable" if is_sortable else "") if word)
    return tag("div", tag("table", *parts, class_=classes or None), class_="scroll", tabindex="0")


def row(*cells: object, **attributes: Attribute) -> Html:
    """Return a row of a table; values that are not cells become cells."""
    return tag(
        "tr",
        *(c if isinstance(c, Html) and c.startswith(("<td", "<th")) else tag("td", c) for c in cells),
        **attributes,
    )


def number_cell(text: object, sort: float | None = None) -> Html:
    """Return a cell with a number, and the value that it is sorted by."""
    return tag("td", text, class_="number", data_sort=None if sort is None else f"{sort:.6g}")


def folded(summary: object, *content: object, is_open: bool = False) -> Html:
    """Return content that opens when its title is clicked."""
    return tag("details", tag("summary", summary), *content, open=is_open)


def data_uri(kind: str, data: bytes) -> str:
    """Return a file as a data URI."""
    return f"data:{kind};base64,{b64encode(data).decode('ascii')}"


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{round(value, 2):g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(text)}"'
