from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mindbridge.questions.markdown import ProseWriter
from mindbridge.questions.safe_html import clean
from tests.unit.html_tags import look_at

# fmt: off
FRAGMENTS = (
    "a", "b c", " ", "    ", "\t", "\n", "\n\n", "\r\n", "*", "**", "_", "__", "~~", "`", "``", "```\n", "~~~\n", "# ",
    "- ", "1. ", "2) ", "> ", "| ", "|-|\n", "---\n", "===\n", "\\", "&amp;", "&", '"', "'", ")", "(", "!", "é", "🚀",
    "  \n", "* * *\n", "\0",
)
LINK_FRAGMENTS = (
    "[", "![", "](", "](https://a.example)", "](javascript:alert(1))", "](mxc://a/b)", "[a]", "[a]: https://b.example\n",
    "<", ">", "<https://c.example>", "<script>", "<b onclick='x'>", "</p>", "<!-- ", "]]>",
    "<img src=x onerror=alert(1)>", "&lt;", "&#60;",
)
# fmt: on

markdown = st.lists(st.sampled_from(FRAGMENTS + LINK_FRAGMENTS), max_size=30).map("".join)
unlinked_markdown = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


def write(text: str) -> str:
    return ProseWriter().write(text)


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("**bold** and *not*", "<p><strong>bold</strong> and <em>not</em></p>"),
        ("~~gone~~", "<p><s>gone</s></p>"),
        ("# Title", "<h1>Title</h1>"),
        ("a\nb", "<p>a<br>\nb</p>"),
        ("a\r\nb\rc", "<p>a<br>\nb<br>\nc</p>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("4. a\n5. b", '<ol start="4">\n<li>a</li>\n<li>b</li>\n</ol>'),
        ("> a", "<blockquote>\n<p>a</p>\n</blockquote>"),
        ("a\n\n---\n\nb", "<p>a</p>\n<hr>\n<p>b</p>"),
        ("Title\n=====", "<h1>Title</h1>"),
        ("`x < y`", "<p><code>x &lt; y</code></p>"),
        ("```py\nx = '<'\n```", "<pre><code class=\"language-py\">x = '&lt;'\n</code></pre>"),
        ("    code", "<pre><code>code\n</code></pre>"),
        ("a \\* b &amp; c", "<p>a * b &amp; c</p>"),
        ("[a](https://b.example/?c=1&d)", '<p><a href="https://b.example/?c=1&amp;d" rel="noopener">a</a></p>'),
        ("<https://b.example>", '<p><a href="https://b.example" rel="noopener">https://b.example</a></p>'),
        ("![a](mxc://b.example/c)", '<p><img src="mxc://b.example/c" alt="a"></p>'),
    ],
)
def test_markdown_becomes_the_html_that_says_the_same(text: str, formatted: str) -> None:
    assert write(text) == formatted


def test_table_keeps_its_cells_and_loses_the_style() -> None:
    written = write("|a|b|\n|:-|-:|\n|1|**2**|")

    seen = look_at(written)
    assert seen.tags.count("th") == 2
    assert "<td><strong>2</strong></td>" in written
    assert seen.attributes == []


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        "<div>\n<b>a</b>\n</div>",
        "<!-- a -->",
        "a <b>c</b>",
    ],
)
def test_html_of_a_reply_is_shown_as_text(text: str) -> None:
    """X3"""
    seen = look_at(write(text))
    assert seen.text.replace("\n", "") == text.replace("\n", "")
    assert set(seen.tags) <= {"p", "br"}


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "JaVaScRiPt:x", "data:text/html,x", "vbscript:x", "docs/a.md", "tel:1"]
)
def test_link_that_is_not_allowed_stays_as_it_was_written(target: str) -> None:
    """X3"""
    assert write(f"[a]({target})") == f"<p>[a]({target})</p>"


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("![a chart](https://b.example/c.png)", '<p><a href="https://b.example/c.png" rel="noopener">a chart</a></p>'),
        ("![a \\* *b*](http://c.example)", '<p><a href="http://c.example" rel="noopener">a * b</a></p>'),
        ("![](http://c.example)", '<p><a href="http://c.example" rel="noopener">http://c.example</a></p>'),
        ("[![a](http://b.example)](http://c.example)", '<p><a href="http://c.example" rel="noopener">a</a></p>'),
    ],
)
def test_image_from_elsewhere_becomes_a_link_that_nothing_loads(text: str, formatted: str) -> None:
    assert write(text) == formatted


def test_names_of_people_and_rooms_become_no_links() -> None:
    """X2"""
    assert write("@room @alice:example.org #lobby:example.org") == "<p>@room @alice:example.org #lobby:example.org</p>"


def test_language_of_code_can_not_carry_anything_else() -> None:
    assert write('```a" onclick="b\nc\n```') == '<pre><code class="language-a&quot;">c\n</code></pre>'


def test_link_definition_is_known_to_every_text_of_the_reply() -> None:
    writer = ProseWriter()
    writer.learn_definitions("[a]: https://b.example")
    assert writer.write("see [a]") == '<p>see <a href="https://b.example" rel="noopener">a</a></p>'


@pytest.mark.parametrize("text", ["> " * 30 + "deep", "- " * 30 + "deep"])
def test_what_is_nested_too_deep_is_shown_plain_and_whole(text: str) -> None:
    assert write(text) == f"<p>{text.replace('>', '&gt;')}</p>"


def test_emphasis_is_not_nested_deeper_than_clients_allow() -> None:
    text = "*a " * 200 + "middle" + " b*" * 200
    assert write(text) == f"<p>{text}</p>"


def test_table_of_mostly_empty_cells_does_not_multiply_the_reply() -> None:
    text = "|" + "a|" * 250 + "\n|" + "-|" * 250 + "\n" + "a\n" * 250
    assert "<table>" not in write(text)
    assert look_at(write(text)).text.count("a") == 500


@pytest.mark.parametrize(
    "text",
    [
        "*a* " * 5_000,
        "![" * 5_000,
        "- a\n" * 5_000,
        "=\n\\|__  \n>" * 2_000,
        "> a\n" * 5_000 + "b\n" * 5_000,
        "|-|\n" * 5_000,
        "<" * 20_000,
        ("![" * 20 + "a" + "](http:b)" * 20 + " ") * 100,
    ],
)
def test_text_that_is_too_much_work_is_shown_plain_and_whole(text: str) -> None:
    writer = ProseWriter(work_limit=20_000)

    seen = look_at(writer.write(text))

    assert set(seen.tags) <= {"p", "br"}
    assert "".join(seen.text.split()) == "".join(text.split())
    assert writer.write("**after**") == "<p>**after**</p>"


@settings(deadline=None)
@given(unlinked_markdown)
def test_formatting_is_that_of_markdown_it(text: str) -> None:
    reference = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False, "breaks": True})
    reference.enable(["table", "strikethrough"])
    assert write(text) == clean(reference.render(text)).rstrip()


@settings(deadline=None)
@given(markdown | any_text)
def test_html_never_has_more_than_the_specification_allows(text: str) -> None:
    """X3"""
    seen = look_at(write(text))
    assert seen.faults == []
    assert seen.depth <= 100


@settings(deadline=None)
@given(markdown, st.integers(0, 400))
def test_html_is_safe_wherever_formatting_stops(text: str, work_limit: int) -> None:
    assert look_at(ProseWriter(work_limit).write(text)).faults == []


def test_threads_can_write_at_the_same_time() -> None:
    texts = [
        f"{mark}{word}{mark} `{word}` # {word}" for word in ("a", "b", "c") for mark in ("*", "**", "~~", "<", "&")
    ]
    alone = [write(text) for text in texts]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(write, texts * 10))

    assert together == alone * 10
