"""Which emoji an option shows, which reaction is its button, and which option an incoming reaction means.

Contract, sections 3 and 4. U+FE0E and U+FE0F never decide which emoji is meant; keycaps always mean numbers.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import emoji

from mindbridge.questions.model import DEFAULT_EMOJI, Option

MAX_OPTIONS = 10

_TEXT_STYLE, _EMOJI_STYLE, _KEYCAP = "\ufe0e", "\ufe0f", "\u20e3"
_WITHOUT_STYLE = dict.fromkeys(map(ord, (_TEXT_STYLE, _EMOJI_STYLE)))
_WITHOUT_TONE = dict.fromkeys(range(0x1F3FB, 0x1F400))
# With two different skin tones these are written as two people or hands, without any as one character.
_TONELESS = {"🫱\u200d🫲": "🤝", "👩\u200d🤝\u200d👩": "👭", "👨\u200d🤝\u200d👨": "👬", "👩\u200d🤝\u200d👨": "👫"}
_TEN = "🔟"
# The longest emoji has 10 code points, the longest shortcode about 70.
_LONGEST_KEY = 32
_LONGEST_FIELD = 100


@dataclass(frozen=True, slots=True)
class EmojiField:
    """The emoji of an option; `replaced` tells that its field held something else that could not be used."""

    emoji: str
    replaced: bool


@dataclass(frozen=True, slots=True)
class KeyMatch:
    """The option that a reaction means; `as_number` tells that its number was clicked, not its emoji."""

    option: Option
    as_number: bool


def keycap(number: int) -> str:
    """The keycap of an option's number. Raises `ValueError` outside 1 to 10, where there is none."""
    if not 1 <= number <= MAX_OPTIONS:
        raise ValueError(f"no keycap for {number}; options are numbered 1 to {MAX_OPTIONS}")
    return _TEN if number == MAX_OPTIONS else f"{number}{_EMOJI_STYLE}{_KEYCAP}"


def emoji_of_field(field: object, number: int) -> EmojiField:
    """Read an option's `emoji` field: exactly one emoji, or one `:shortcode:`, blanks around it allowed.

    The emoji comes back fully qualified (U+FE0F where its picture needs it). A missing or empty field gives `❓`,
    anything else that is not one emoji gives `❓` and `replaced`; so does a keycap that is not the option's own number.
    """
    if field is None:
        return EmojiField(DEFAULT_EMOJI, replaced=False)
    text = field.strip() if isinstance(field, str) else ":"
    if not text:
        return EmojiField(DEFAULT_EMOJI, replaced=False)
    if text.startswith(":") and len(text) <= _LONGEST_FIELD:
        text = emoji.emojize(text, language="alias")
    found = _fully_qualified().get(_bare(text))
    if found is None or (_is_keycap(found) and found != keycap(number)):
        return EmojiField(DEFAULT_EMOJI, replaced=True)
    return EmojiField(found, replaced=False)


def buttons_for(emojis: Sequence[str]) -> tuple[str, ...]:
    """The buttons of options 1, 2, 3 … that show these emoji: no two are the same reaction.

    A button is the emoji in the form that the Matrix specification asks for (U+FE0F wherever the code point allows
    it), or the option's keycap where several options share the emoji.
    """
    shared = Counter(_bare(shown) for shown in emojis)
    return tuple(
        keycap(number) if shared[_bare(shown)] > 1 else _reaction_key(shown) for number, shown in enumerate(emojis, 1)
    )


def match_key(options: Sequence[Option], key: str) -> KeyMatch | None:
    """Find the option that a reaction with this key selects; `key` may be any string.

    In this order: an option's keycap or bare number, its button, its emoji in another skin tone where only one option
    has that emoji in any tone. An emoji that several options share selects nothing.
    """
    bare = _bare(key) if len(key) <= _LONGEST_KEY else ""
    if not bare:
        return None
    for option in options:
        if bare in (str(option.number), _bare(keycap(option.number))):
            return KeyMatch(option, as_number=True)
    for option in options:
        if bare == _bare(option.button):
            return KeyMatch(option, as_number=False)
    toneless = _toneless(bare)
    same = [option for option in options if toneless and _toneless(_bare(option.emoji)) == toneless]
    return KeyMatch(same[0], as_number=False) if len(same) == 1 else None


def _bare(text: str) -> str:
    return text.translate(_WITHOUT_STYLE)


def _toneless(bare: str) -> str:
    plain = bare.translate(_WITHOUT_TONE)
    return _TONELESS.get(plain, plain)


def _is_keycap(text: str) -> bool:
    return text.endswith(_KEYCAP) or text == _TEN


def _reaction_key(shown: str) -> str:
    bare = _bare(shown)
    allows_style = emoji.EMOJI_DATA.get(bare, {}).get("variant", False)
    return bare + _EMOJI_STYLE if allows_style else shown


@cache
def _fully_qualified() -> dict[str, str]:
    """Every emoji without variation selectors, and the form with those that its picture needs."""
    best = (emoji.STATUS["fully_qualified"], emoji.STATUS["component"])
    return {_bare(shown): shown for shown, data in emoji.EMOJI_DATA.items() if data["status"] in best}
