"""An agent's Markdown as the HTML that Matrix clients show (Matrix specification, `m.room.message` msgtypes).

CommonMark with tables and strikethrough; raw HTML is shown as text, single line breaks are kept. Parsing is linear but
some input is a thousand times as costly as prose, so the work is estimated first and what would be too much is shown
as plain text.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, blockquote, table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from mindbridge.questions.safe_html import LINK_SCHEMES, clean, escaped, escaped_lines, plain_html

WORK_LIMIT: Final = 200_000
"""How much may be formatted in one reply, in about microseconds; about 150 KB of ordinary Markdown."""

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

_MARKERS = re.compile(r"\n[ \t]*+((?>(?:(?:[-+*>]|\d{1,9}+[.)])[ \t]*+)+))")
_SPECIALS = re.compile(r"[\n!&<\[\\\]*_`~]")
_UNDERLINE = re.compile(r"\n[ \t>]*+(?:=++|-++)[ \t]*+(?:\n|\Z)")
# Rules of markdown-it, and the marks without which a text does not need them.
_OPTIONAL_RULES = (
    ("table", "|", "|"),
    ("code", "    ", "\t"),
    ("blockquote", ">", ">"),
    ("reference", "]:", "]:"),
    ("heading", "#", "#"),
    ("fence", "```", "~~~"),
    ("link", "[", "["),
    ("image", "![", "!["),
    ("backticks", "`", "`"),
    ("emphasis", "*", "_"),
    ("autolink", "<", "<"),
    ("entity", "&", "&"),
    ("escape", "\\", "\\"),
    ("text_join", "&", "\\"),
    ("strikethrough", "~~", "~~"),
)
_NESTED_IMAGE = re.compile(r"!\[[^\]]*!\[")
_WORK_LEFT = "work_left"

# The specification allows 100 nested tags.
_MAX_BLOCK_DEPTH = 20
_MAX_INLINE_DEPTH = 40
_OPTIONS = {"html": False, "xhtmlOut": False, "breaks": True, "maxNesting": _MAX_BLOCK_DEPTH}


class ProseWriter:
    """Formats the prose of one reply: link definitions are shared, and so is the limit of the work."""

    __slots__ = ("_env",)

    def __init__(self, work_limit: int = WORK_LIMIT) -> None:
        self._env: EnvType = {_WORK_LEFT: work_limit}

    def learn_definitions(self, markdown: str) -> None:
        """Take in the link definitions of a text, so that any other text of the reply can use them.

        Those of a long text count in that text alone.
        """
        if "]:" in markdown and (work := _block_work(markdown)) <= self._env[_WORK_LEFT] // 4 and self._take(work):
            source = _normalized(markdown)
            parser = _parser_for(source)
            parser.block.parse(source, parser, self._env, [])

    def write(self, markdown: str) -> str:
        """The text as HTML of the allowed tags, attributes and link schemes only."""
        if not self._take(_block_work(markdown)):
            return plain_html(markdown.strip())
        source = _normalized(markdown)
        rendered: str = _parser_for(source).render(source, self._env)
        return clean(rendered).rstrip()

    def _take(self, work: int) -> bool:
        return _take(self._env, work)


def _take(env: EnvType, work: int) -> bool:
    """Take work from what is left. Where that is not enough nothing is left afterwards: the rest stays plain."""
    is_enough = bool(work <= env[_WORK_LEFT])
    env[_WORK_LEFT] = env[_WORK_LEFT] - work if is_enough else 0
    return is_enough


def _normalized(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def _block_work(markdown: str) -> int:
    markers = sum(len(found) for found in _MARKERS.findall(f"\n{markdown}"))
    escaped = sum(map(markdown.count, '"&<>'))
    characters = len(markdown) // 10 + _ESCAPE_WORK * escaped + _PIPE_WORK * markdown.count("|")
    return characters + _LINE_WORK * (markdown.count("\n") + 1) + _MARKER_WORK * markers


def _inline_work(content: str, specials: str) -> int:
    links = specials.count("[") + specials.count("<")
    work = _SPECIAL_WORK * len(specials) + _DELIMITER_WORK * sum(map(specials.count, "*_~&`")) + _LINK_WORK * links
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
    return plain_html(content) if tokens[idx].block else escaped_lines(content)


def _render_text(_: RendererHTML, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
    return escaped(tokens[idx].content)


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
        text = Token("text", "", 0, content="".join(_texts(token.children or [])) or source)
        if open_links:
            yield text
        else:
            yield from (Token("link_open", "a", 1, attrs={"href": source}), text, Token("link_close", "a", -1))


def _texts(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "image":
            yield from _texts(token.children or [])
        else:
            yield "\n" if token.tag == "br" else token.content


def _take_lines_ahead(state: StateBlock, start: int, end: int, work: int) -> bool:
    """Take so much work for each line up to the next empty one."""
    limit = min(end, start + state.env[_WORK_LEFT] // work + 1)
    end = next((line for line in range(start, limit) if state.isEmpty(line)), limit)
    return _take(state.env, work * (end - start))


# What silent means, and that it is a positional bool, is markdown-it's convention.
def _blockquote(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Markdown-it's own rule, which looks at all lines up to the next empty one, however few belong to the quote."""
    found = blockquote(state, start, end, True)  # noqa: FBT003
    if silent or not found:
        return found
    return _take_lines_ahead(state, start, end, _LAZY_LINE_WORK) and blockquote(state, start, end, silent)


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Markdown-it's own rule, but a table of too many cells, which may all be empty, is shown as its lines."""
    found = table(state, start, end, True)  # noqa: FBT003
    if silent or not found:
        return found
    columns = state.src.count("|", state.bMarks[start + 1], state.eMarks[start + 1]) + 1
    return _take_lines_ahead(state, start, end, _CELL_WORK * columns) and table(state, start, end, silent)


def _parser_for(markdown: str) -> MarkdownIt:
    """A parser with the rules that the text can need: each that it can't costs time on every line or mark."""
    left_out = [rule for rule, mark, other in _OPTIONAL_RULES if mark not in markdown and other not in markdown]
    if not _UNDERLINE.search(markdown):
        left_out.append("lheading")
    without_blanks = markdown.replace(" ", "").replace("\t", "")
    if not any(rule in without_blanks for rule in ("***", "---", "___")):
        left_out.append("hr")
    return _parser(tuple(left_out))


@lru_cache(maxsize=128)
def _parser(left_out: tuple[str, ...]) -> MarkdownIt:
    parser = _Parser("commonmark", _OPTIONS).enable(["table", "strikethrough"])
    parser.add_render_rule("plain", _render_plain)
    parser.add_render_rule("text", _render_text)
    parser.block.ruler.at("blockquote", _blockquote, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.core.ruler.at("inline", _inline)
    parser.inline.terminator_re = _SPECIALS
    parser.disable(["normalize", "html_block", "html_inline", *left_out])
    # The rules are compiled at first use, which is not safe when several threads do it at the same time.
    parser.render("compile *now*", {_WORK_LEFT: WORK_LIMIT})
    return parser
