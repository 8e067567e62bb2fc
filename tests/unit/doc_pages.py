"""The pages of documentation, as tests look at them."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CHANGELOG.md",
    ROOT / "journal" / "README.md",
    ROOT / "examples" / "README.md",
    *DOCS,
]


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced example: its language, what it holds, and the heading above it."""

    language: str
    content: str
    heading: str


@dataclass(frozen=True, slots=True)
class Page:
    """A Markdown page."""

    tokens: tuple[Token, ...]

    def headings(self) -> list[str]:
        """The headings as they are written, without marks."""
        return [heading for heading, _ in self._sections()]

    def section(self, heading: str) -> "Page":
        """What stands under a heading, up to the next one of any level."""
        return next(page for name, page in self._sections() if name == heading)

    def fences(self, language: str | None = None) -> list[Fence]:
        """The fenced examples, of one language if it is named."""
        return [
            Fence(token.info, token.content, heading)
            for heading, page in self._sections()
            for token in page.tokens
            if token.type == "fence" and language in {None, token.info}
        ]

    def fence(self, language: str) -> str:
        """The content of the only example of this language."""
        (found,) = self.fences(language)
        return found.content

    def rows(self) -> list[list[str]]:
        """The rows of all tables, each cell as it is written, without head rows."""
        rows: list[list[str]] = []
        in_head = False
        for token, following in pairwise(self.tokens):
            in_head = token.type == "thead_open" or (in_head and token.type != "thead_close")
            if token.type == "tr_open" and not in_head:
                rows.append([])
            elif token.type == "td_open":
                rows[-1].append(following.content)
        return rows

    def codes(self) -> set[str]:
        """All that stands between backticks in the text."""
        return {child.content for token in self.tokens for child in token.children or () if child.type == "code_inline"}

    def links(self) -> list[str]:
        """Where links and images lead."""
        targets = [
            child.attrGet("href") or child.attrGet("src")
            for token in self.tokens
            for child in token.children or ()
            if child.type in {"link_open", "image"}
        ]
        return [str(target) for target in targets if target]

    def _sections(self) -> Iterator[tuple[str, "Page"]]:
        starts = [number for number, token in enumerate(self.tokens) if token.type == "heading_open"]
        ends = [*starts, len(self.tokens)]
        if ends[0] > 0:
            yield "", Page(self.tokens[: ends[0]])
        for start, end in pairwise(ends):
            yield self.tokens[start + 1].content.replace("`", ""), Page(self.tokens[start:end])


def page(path: str | Path) -> Page:
    """The page at a path from the root."""
    return Page(tuple(MarkdownIt("commonmark").enable("table").parse((ROOT / path).read_text("utf-8"))))


def codes_of(cell: str) -> list[str]:
    """What stands between backticks in a table's cell."""
    return re.findall(r"`([^`]+)`", cell)


def anchor_of(heading: str) -> str:
    """How a link names a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@contextmanager
def modules_forgotten() -> Iterator[None]:
    """Afterwards no module that was imported meanwhile is known, and `sys.path` is as before."""
    path, modules = sys.path.copy(), set(sys.modules)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            del sys.modules[name]
