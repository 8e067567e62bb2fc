"""What reading and rendering a reply costs: an ordinary one beside one run of markdown-it-py, and the worst ones.

Run `python benchmarks/rendering.py`. Exits 1 if a target is missed.
"""

import statistics
import sys
import time
from collections.abc import Callable

from markdown_it import MarkdownIt
from table import Figure, print_table

from mindbridge.questions.read import MAX_REPLY_BYTES, read_reply
from mindbridge.questions.render import render_reply

ROUNDS = 200
MAX_RATIO = 1.6
MAX_HOSTILE_MS = 500.0

BLOCK = """```interactive
{"question": "What approach would you prefer?",
 "options": [{"emoji": "🚀", "label": "Fast and automated", "value": "fast"},
             {"emoji": "🔍", "label": "Careful and manual", "value": "careful"},
             {"emoji": "🛑", "label": "Stop here", "value": "stop"}]}
```
"""

ORDINARY = f"""## What I found

The nightly import fails because `orders.csv` has **two rows** with the same key. The loader reads them in parallel,
so which one wins depends on timing; that's why the failure comes and goes. See the
[loader's notes](https://example.org/loader) for how keys are compared.

- the first row is from the shop, at 02:14
- the second is from the *returns desk*, at 02:15
- both have the key `A-1049`, and neither is marked as a correction

### What could be done

1. Keep the later row. That is what the old system did, and the reports were built on it.
2. Keep both and mark them. The reports then count the order twice until they are changed.
3. Stop the import and ask the shop.

```python
def newest(rows):
    return {{row.key: row for row in sorted(rows, key=lambda row: row.time)}}
```

| way | effort | risk |
|-----|--------|------|
| later row | small | low |
| both rows | medium | medium |

{BLOCK}
Until you have chosen I leave the import switched off. The data of the last night is complete, apart from these two.

"""

FILLER = """Some background on how it came to this: the shop and the returns desk used to share **one** terminal, so
their rows never overlapped. Since the move each has its own, and both write to the same file every quarter of an hour.

"""

HOSTILE: dict[str, str | Callable[[int], str]] = {
    "prose": "The quick brown fox jumps over the lazy dog, and then once more. " * 8 + "\n\n",
    "many-byte prose": "Ein Füchslein springt über den 🐕, 何度も何度も。 " * 8 + "\n\n",
    "one line": "a",
    "short lines": "a\n",
    "short paragraphs": "a\n\n",
    "control characters": "\x01",
    "quotation marks": '"',
    "ampersands": "&",
    "entities": "&amp;",
    "colons": ":",
    "backslashes": "\\*",
    "image openers": "![",
    "link openers": "[",
    "half links": "[a](",
    "links": "[a](http:b)",
    "images": "![a](http:b)",
    "nested images": ("![" * 20 + "a" + "](http:b)" * 20) + "\n\n",
    "nested links": ("[" * 20 + "a" + "](http:b)" * 20) + "\n\n",
    "mail addresses": "<a@b.c>",
    "angle brackets": "<",
    "emphasis": "*a*",
    "emphasis openers": "*a_ ",
    "crossed emphasis": "*_",
    "nested emphasis": lambda size: "*a " * (size // 6) + " b*" * (size // 6),
    "strikethrough": "~~a",
    "code spans": "`a`",
    "growing backtick runs": lambda size: "".join("`" * number + " " for number in range(size // 350)),
    "bullets": "- a\n",
    "bullets in bullets": "- - - - a\n",
    "numbered": "1. a\n",
    "deeper bullets": "".join("  " * depth + "- a\n" for depth in range(9)),
    "quotes": "> a\n",
    "quotes in quotes": "> " * 18 + "a\n",
    "lazy quotes": "=\n\\|__  \n>",
    "lazy lines in quotes": "> " * 18 + "a\n" + "b\n" * 50,
    "quotes in bullets": "- > a\nb\n",
    "headings": "# a\n",
    "underlined headings": "a\n=\n",
    "rules": "---\n",
    "table of many rows": "|a|a|a|a|\n|-|-|-|-|\n" + "|a|a|a|a|\n" * 1_000,
    "table of many columns": lambda size: "|" + "a|" * (size // 6) + "\n|" + "-|" * (size // 6) + "\n",
    "tables of empty cells": ("|" + "a|" * 250 + "\n|" + "-|" * 250 + "\n" + "a\n" * 250) + "\n",
    "many tables": "|a|\n|-|\n\n",
    "link definitions": "[a]: b\n",
    "own link definitions": lambda size: "".join(f"[r{number}]: http:b\n\n" for number in range(size // 16)),
    "open link titles": "[a]: http:b\n'x\n\n",
    "half fences": "```\n",
    "open fences": "~~~ \n",
    "code blocks": "    a\n\n",
    "code": "```py\n" + "x = ['*', \"y\"]  # <z>\n" * 2_000 + "```\n",
    "half blocks": "```interactive\n",
    "blocks of brackets": "```interactive\n" + "[" * 1_000 + "\n```\n",
    "broken blocks": "```interactive\n{'question': 'a', 'options': [" + "{'label': 'b',}, " * 200 + "]\n```\n",
    "blocks": BLOCK,
    "one great block": '```interactive\n{"options": ["a", "b"], "question": "' + "a" * 200_000 + '"}\n```\n',
    "blocks in one line": '```interactive {"options": ["a"]} ``` ',
}


def read_and_render(text: str) -> None:
    """All that is done with a reply before it is sent."""
    render_reply(read_reply(text))


def seconds(call: Callable[[str], object], text: str) -> float:
    """How much of the processor's time a call takes, whatever else the machine does."""
    start = time.thread_time()
    call(text)
    return time.thread_time() - start


def ordinary_ratio() -> tuple[float, float]:
    """The medians of reading and rendering and of markdown-it-py alone, measured in turn, in seconds."""
    text = ORDINARY + FILLER * 40
    text = text.encode()[: 4 * 1024].decode()
    plain = MarkdownIt()
    ours, theirs = [], []
    read_and_render(text)
    for _ in range(ROUNDS):
        ours.append(seconds(read_and_render, text))
        theirs.append(seconds(plain.render, text))
    return statistics.median(ours), statistics.median(theirs)


def hostile_text(pattern: str | Callable[[int], str]) -> str:
    """256 KB of a pattern."""
    text = pattern(MAX_REPLY_BYTES) if callable(pattern) else pattern * (MAX_REPLY_BYTES // len(pattern.encode()) + 1)
    return text.encode()[:MAX_REPLY_BYTES].decode(errors="ignore")


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    ours, theirs = ordinary_ratio()
    ordinary = [
        Figure("one MarkdownIt().render", theirs * 1e3, None, "ms"),
        Figure("read + render", ours * 1e3, None, "ms"),
        Figure("read + render, as a multiple of it", ours / theirs, MAX_RATIO),
    ]
    status = print_table(f"4 KB reply with a block, median of {ROUNDS}", ordinary)
    print()
    hostile = []
    for name, pattern in HOSTILE.items():
        text = hostile_text(pattern)
        taken = min(seconds(read_and_render, text) for _ in range(2))
        hostile.append(Figure(name, taken * 1e3, MAX_HOSTILE_MS, "ms"))
    return print_table("read + render 256 KB of", hostile) or status


if __name__ == "__main__":
    sys.exit(main())
