"""Looking at HTML as a client's parser sees it."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

from mindbridge.questions.safe_html import ALLOWED_ATTRIBUTES, ALLOWED_TAGS, LINK_SCHEMES

_VOID = {"br", "hr", "img"}


@dataclass
class Seen:
    """The elements of some HTML, its text, what was not allowed in it, and how deep its tags go."""

    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    text: str = ""
    faults: list[str] = field(default_factory=list)
    depth: int = 0


def look_at(formatted: str) -> Seen:
    """Parse HTML and compare it with what the Matrix specification permits."""
    parser = _Parser()
    parser.feed(formatted)
    parser.close()
    if parser.open:
        parser.seen.faults.append(f"never closed: {parser.open}")
    return parser.seen


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = Seen()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.tags.append(tag)
        if tag not in ALLOWED_TAGS:
            self.seen.faults.append(f"<{tag}>")
        for name, value in attrs:
            self.seen.attributes.append((tag, name, value or ""))
            if not _is_allowed(tag, name, value or ""):
                self.seen.faults.append(f"<{tag} {name}={value!r}>")
        if tag not in _VOID:
            self.open.append(tag)
            self.seen.depth = max(self.seen.depth, len(self.open))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.seen.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.seen.text += data

    def handle_comment(self, data: str) -> None:
        self.seen.faults.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.seen.faults.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self.seen.faults.append(f"<?{data}>")


def _is_allowed(tag: str, name: str, value: str) -> bool:
    match tag, name:
        case "a", "rel":
            return value == "noopener"
        case "a", "href":
            return value.partition(":")[0].lower() in LINK_SCHEMES
        case "img", "src":
            return value.startswith("mxc://")
        case "code", "class":
            return value.startswith("language-")
        case _:
            return name in ALLOWED_ATTRIBUTES.get(tag, ())
