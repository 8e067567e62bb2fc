"""An agent's Markdown as the HTML that Matrix clients show (Matrix specification, `m.room.message` msgtypes).

CommonMark with tables and strikethrough; raw HTML is shown as text, single line breaks are kept. Parsing is linear but
some input is a thousand times as costly as prose, so the work is estimated first and what would be too much is shown
as plain text.
"""

import html
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, blockquote, table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

ALLOWED_TAGS: Final = frozenset(
    {"del", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "p", "a", "ul", "ol", "sup", "sub", "li", "b", "i", "u"}
    | {"strong", "em", "s", "code", "hr", "br", "div", "table", "thead", "tbody", "tr", "th", "td", "caption", "pre"}
    | {"span", "img", "details", "summary"}
)
ALLOWED_ATTRIBUTES: Final = {
    "*": set[str](),  # else nh3 allows `lang` and `title` everywhere
    "span": {"data-mx-bg-color", "data-mx-color", "data-mx-spoiler", "data-mx-maths"},
    "a": {"target", "href"},
    "img": {"width", "height", "alt", "title", "src"},
    "ol": {"start"},
    "code": {"class"},
    "div": {"data-mx-maths"},
}
LINK_SCHEMES: Final = frozenset({"https", "http", "ftp", "mailto", "magnet"})

WORK_LIMIT: Final = 120_000
"""How much may be formatted in one reply, in about microseconds; some 100 KB of ordinary Markdown."""

_LINE_WORK = 30
_MARKER_WORK = 25
_LAZY_LINE_WORK = 10
_PIPE_WORK = 5
_ESCAPE_WORK = 2
_CELL_WORK = 30
_SPECIAL_WORK = 5
_DELIMITER_WORK = 12
_LINK_WORK = 60
_NESTED_IMAGE_WORK = 200

_MARKERS = re.compile(r"^[ \t]*((?:(?:[-+*>]|\d{1,9}[.)])[ \t]*)+)", re.MULTILINE)
_SPECIALS = re.compile(r"[\n!&<\[\\\]*_`~]")
_OPTIONAL_RULES = tuple(
    (rules, re.compile(mark, re.MULTILINE))
    for rules, mark in [
        ("lheading", r"^[ \t>]*+(?:=++|-++)[ \t]*+$"),
        ("hr", r"(?:[-*_][ \t]*+){3}$"),
        ("table", r"\|"),
        ("blockquote", ">"),
        ("reference", r"\]:"),
        ("heading", "#"),
        ("fence", "```|~~~"),
        ("link image", r"\["),
        ("autolink entity escape strikethrough", r"[<&\\~]"),
    ]
)
_NESTED_IMAGE = re.compile(r"!\[[^\]]*!\[")
_WORK_LEFT = "work_left"

# The specification allows 100 nested tags; block tags are limited to MAX_BLOCK_DEPTH, inline tags to MAX_INLINE_DEPTH.
_MAX_BLOCK_DEPTH = 20
_MAX_INLINE_DEPTH = 40
_OPTIONS = {"html": False, "xhtmlOut": False, "breaks": True, "maxNesting": _MAX_BLOCK_DEPTH}


def plain_html(text: str) -> str:
    """The text as one paragraph in which every character stands for itself; line breaks are kept."""
    return f"<p>{_escaped_lines(text)}</p>"


class ProseWriter:
    """Formats the prose of one reply: link definitions are shared, and so is the limit of the work."""

    __slots__ = ("_env",)

    def __init__(self, work_limit: int = WORK_LIMIT) -> None:
        self._env: EnvType = {_WORK_LEFT: work_limit}

    def learn_definitions(self, markdown: str) -> None:
        """Take in the link definitions of a text, so that any other text of the reply can use them."""
        if "]:" in markdown and self._take(_block_work(markdown)):
            parser = _parser_for(markdown)
            source = markdown.replace("\r\n", "\n").replace("\r", "\n")
            parser.block.parse(source, parser, self._env, [])

    def write(self, markdown: str) -> str:
        """The text as HTML of the allowed tags, attributes and link schemes only."""
        if not self._take(_block_work(markdown)):
            return plain_html(markdown.strip())
        rendered: str = _parser_for(markdown).render(markdown, self._env)
        return _CLEANER.clean(rendered).rstrip()

    def _take(self, work: int) -> bool:
        return _take(self._env, work)


def _take(env: EnvType, work: int) -> bool:
    """Take work from what is left, if so much is left."""
    if work > env[_WORK_LEFT]:
        return False
    env[_WORK_LEFT] -= work
    return True


def _escaped_lines(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br>\n")


def _block_work(markdown: str) -> int:
    markers = sum(len(found) for found in _MARKERS.findall(markdown))
    escaped = sum(map(markdown.count, '"&<>'))
    characters = len(markdown) // 10 + _ESCAPE_WORK * escaped + _PIPE_WORK * markdown.count("|")
    return characters + _LINE_WORK * (markdown.count("\n") + 1) + _MARKER_WORK * markers


def _inline_work(content: str, specials: str) -> int:
    links = specials.count("[") + specials.count("<")
    work = _SPECIAL_WORK * len(specials) + _DELIMITER_WORK * sum(map(specials.count, "*_~&")) + _LINK_WORK * links
    if links > 1 and _NESTED_IMAGE.search(content):
        work += _NESTED_IMAGE_WORK * content.count("![")
    return work


def _is_link(url: str) -> bool:
    """Whether a link or image counts as one; whatever does not stays visible as it was written."""
    return url.partition(":")[0].lower() in LINK_SCHEMES or url.startswith("mxc://")


class _Parser(MarkdownIt):
    validateLink = staticmethod(_is_link)  # noqa: N815 -- the name that markdown-it calls


def _render_plain(_: RendererHTML, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
    """The token `plain`: text that is not looked into."""
    content = tokens[idx].content
    return plain_html(content) if tokens[idx].block else _escaped_lines(content)


def _render_text(_: RendererHTML, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
    return html.escape(tokens[idx].content, quote=False)


def _inline(state: StateCore) -> None:
    """Parse the inline contents, as markdown-it's own rule does, within the limits."""
    # What is nested deeper than its limit markdown-it leaves out without a word.
    if any(token.level >= _MAX_BLOCK_DEPTH - 1 and token.nesting == 1 for token in state.tokens):
        state.tokens[:] = [Token("plain", "", 0, content=state.src.strip(), block=True)]
        return
    for token in state.tokens:
        if token.type == "inline":
            token.children = _children(token.content, state)


def _children(content: str, state: StateCore) -> list[Token]:
    specials = "".join(_SPECIALS.findall(content))
    if not specials:
        return [Token("text", "", 0, content=content)] if content else []
    if _take(state.env, _inline_work(content, specials)):
        children: list[Token] = []
        state.md.inline.parse(content, state.md, state.env, children)
        if "![" in content:
            children = list(_without_remote_images(children))
        if _depth(children) <= _MAX_INLINE_DEPTH:
            return children
    return [Token("plain", "", 0, content=content)]


def _depth(tokens: list[Token]) -> int:
    if len(tokens) <= 2 * _MAX_INLINE_DEPTH:
        return 0
    deepest = depth = 0
    for token in tokens:
        depth += token.nesting
        deepest = max(deepest, depth)
    return deepest


def _without_remote_images(tokens: list[Token]) -> Iterator[Token]:
    """Put links in the place of images from elsewhere, which a client must not load unasked."""
    open_links = 0
    for token in tokens:
        source = str(token.attrs.get("src", ""))
        if token.type != "image" or source.startswith("mxc://"):
            open_links += token.nesting if token.tag == "a" else 0
            yield token
            continue
        alt = _ALT_TEXT.renderInlineAsText(token.children, _OPTIONS, {})
        text = Token("text", "", 0, content=alt or source)
        if open_links:
            yield text
        else:
            yield from (Token("link_open", "a", 1, attrs={"href": source}), text, Token("link_close", "a", -1))


def _lines_ahead(state: StateBlock, start: int, end: int) -> int:
    """How many lines there are up to the next empty one."""
    return next((line for line in range(start, end) if state.isEmpty(line)), end) - start


def _blockquote(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 -- a markdown-it rule
    """Markdown-it's own rule, which looks at all lines up to the next empty one, however few belong to the quote."""
    if silent or not blockquote(state, start, end, True):  # noqa: FBT003 -- likewise
        return silent and blockquote(state, start, end, silent)
    within_limit = min(end, start + state.env[_WORK_LEFT] // _LAZY_LINE_WORK + 1)
    work = _LAZY_LINE_WORK * _lines_ahead(state, start, within_limit)
    return _take(state.env, work) and blockquote(state, start, end, silent)


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 -- a markdown-it rule
    """Markdown-it's own rule, but a table of too many cells, which may all be empty, is shown as its lines."""
    if silent or not table(state, start, end, True):  # noqa: FBT003 -- likewise
        return silent and table(state, start, end, silent)
    columns = state.src.count("|", state.bMarks[start + 1], state.eMarks[start + 1]) + 1
    return _take(state.env, _CELL_WORK * columns * _lines_ahead(state, start, end)) and table(state, start, end, silent)


def _parser_for(markdown: str) -> MarkdownIt:
    """A parser with the rules that the text can need: each that it can't costs time on every line or mark."""
    return _parser(tuple(rules for rules, mark in _OPTIONAL_RULES if not mark.search(markdown)))


@lru_cache(maxsize=128)
def _parser(left_out: tuple[str, ...]) -> MarkdownIt:
    parser = _Parser("commonmark", _OPTIONS).enable(["table", "strikethrough"])
    parser.add_render_rule("plain", _render_plain)
    parser.add_render_rule("text", _render_text)
    parser.block.ruler.at("blockquote", _blockquote, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.core.ruler.at("inline", _inline)
    parser.inline.terminator_re = _SPECIALS
    parser.disable(["html_block", "html_inline", *" ".join(left_out).split()])
    # The rules are compiled at first use, which is not safe when several threads do it at the same time.
    parser.render("compile *now*", {_WORK_LEFT: WORK_LIMIT})
    return parser


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


_ALT_TEXT = RendererHTML()
_CLEANER = nh3.Cleaner(
    tags=set(ALLOWED_TAGS),
    attributes=ALLOWED_ATTRIBUTES,
    attribute_filter=_allowed_attribute,
    url_schemes={*LINK_SCHEMES, "mxc"},
    url_relative="deny",
    link_rel="noopener",
)
