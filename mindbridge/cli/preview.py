"""`mindbridge preview`: what a reply would become in a room (contract, section 6)."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from mindbridge.questions.model import Problem, Question
from mindbridge.questions.read import read_reply
from mindbridge.questions.render import Part, render_reply

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def run(source: str, *, as_json: bool, max_options: int = 5) -> int:
    """Prints the messages, buttons and problems that a reply would become; gives the exit status, 0 or 2.

    `source` is a file, or `-` for standard input, with the reply as an agent would give it. A reply's problems don't
    change the status; a file that can't be read is told on standard error.
    """
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        sys.stderr.write(f"mindbridge preview: can't read {source!r}: {reason}; name a file, or - for standard input\n")
        return 2
    reply = read_reply(data.decode(errors="replace"), max_options=max_options)
    parts = render_reply(reply)
    if as_json:
        _write(json.dumps(_as_json(parts, reply.problems), ensure_ascii=not _is_unicode(), indent=2))
    else:
        _write("\n".join(_as_text(parts, reply.problems)))
    return 0


def _as_text(parts: tuple[Part, ...], problems: tuple[Problem, ...]) -> list[str]:
    lines = [] if parts else ["Nothing: an empty reply posts no message.", ""]
    for number, part in enumerate(parts, 1):
        if len(parts) > 1:
            lines += [f"--- message {number} of {len(parts)} ---", ""]
        lines += [part.text().body, ""]
        if part.question:
            lines += [f"Buttons: {' '.join(_buttons(part.question))}", ""]
    lines += [f"Problem: {problem.code.value}: {problem.message}" for problem in problems]
    return lines if problems else lines[:-1]


def _as_json(parts: tuple[Part, ...], problems: tuple[Problem, ...]) -> dict[str, Any]:
    shown = next((part for part in parts if part.question), parts[0] if parts else None)
    question = shown.question if shown else None
    text = shown.text() if shown else None
    return {
        "body": text.body if text else "",
        "formatted_body": text.formatted_body if text else "",
        "question": _question(question) if question else None,
        "buttons": _buttons(question) if question else [],
        "problems": [{"code": problem.code.value, "message": problem.message} for problem in problems],
    }


def _question(question: Question) -> dict[str, Any]:
    options = [
        {
            "number": option.number,
            "emoji": option.emoji,
            "button": option.button,
            "label": option.label,
            "value": option.value,
            "description": option.description,
        }
        for option in question.options
    ]
    return {"text": question.text, "kind": question.kind, "multiple": question.multiple, "options": options}


def _buttons(question: Question) -> list[str]:
    return [option.button for option in question.options]


def _is_unicode() -> bool:
    return sys.stdout.encoding.lower().startswith("utf")


def _write(text: str) -> None:
    # A terminal of another encoding gets question marks, and no terminal the control characters of a reply.
    encoding = sys.stdout.encoding
    text = _CONTROLS.sub("\ufffd", text)
    sys.stdout.write(f"{text.encode(encoding, 'replace').decode(encoding)}\n")
