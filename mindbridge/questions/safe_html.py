"""The HTML that Matrix clients may show: the tags, attributes and links that the Matrix specification permits.

Source: client-server API, `m.room.message` msgtypes, "The strongly suggested set of HTML tags to permit".
"""

import html
from typing import Final

import nh3

ALLOWED_TAGS: Final = frozenset(
    {"del", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "p", "a", "ul", "ol", "sup", "sub", "li", "b", "i", "u"}
    | {"strong", "em", "s", "code", "hr", "br", "div", "table", "thead", "tbody", "tr", "th", "td", "caption", "pre"}
    | {"span", "img", "details", "summary"}
)
ALLOWED_ATTRIBUTES: Final[dict[str, set[str]]] = {
    "*": set(),  # else nh3 allows `lang` and `title` everywhere
    "span": {"data-mx-bg-color", "data-mx-color", "data-mx-spoiler", "data-mx-maths"},
    "a": {"target", "href"},
    "img": {"width", "height", "alt", "title", "src"},
    "ol": {"start"},
    "code": {"class"},
    "div": {"data-mx-maths"},
}
LINK_SCHEMES: Final = frozenset({"https", "http", "ftp", "mailto", "magnet"})


def escaped(text: str) -> str:
    """The text so that in HTML every character stands for itself."""
    return html.escape(text, quote=False)


def escaped_lines(text: str) -> str:
    """The same, and line breaks are kept."""
    return escaped(text).replace("\n", "<br>\n")


def plain_html(text: str) -> str:
    """The text as one paragraph in which every character stands for itself; line breaks are kept."""
    return f"<p>{escaped_lines(text)}</p>"


def _allowed_attribute(tag: str, name: str, value: str) -> str | None:
    match tag, name:
        case "img", "src":
            allowed = value.startswith("mxc://")
        case "a", "href":
            allowed = value.partition(":")[0].lower() in LINK_SCHEMES
        case "code", "class":
            allowed = value.startswith("language-") and len(value.split()) == 1
        case _:
            allowed = True
    return value if allowed else None


def clean(formatted: str) -> str:
    """The HTML without anything that is not allowed; the text stays."""
    return _CLEANER.clean(formatted)


_CLEANER = nh3.Cleaner(
    tags=set(ALLOWED_TAGS),
    attributes=ALLOWED_ATTRIBUTES,
    attribute_filter=_allowed_attribute,
    url_schemes={*LINK_SCHEMES, "mxc"},
    url_relative="deny",
    link_rel="noopener",
)
