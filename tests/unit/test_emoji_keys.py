import emoji
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindbridge.questions.emoji_keys import EmojiField, KeyMatch, buttons_for, emoji_of_field, keycap, match_key
from mindbridge.questions.model import Option

EMOJI_STYLE, TEXT_STYLE = "\ufe0f", "\ufe0e"
EVERY_EMOJI = [shown for shown, data in emoji.EMOJI_DATA.items() if data["status"] == emoji.STATUS["fully_qualified"]]


def options(*emojis: str) -> tuple[Option, ...]:
    return tuple(
        Option(number, shown, f"Label {number}", number, button)
        for number, (shown, button) in enumerate(zip(emojis, buttons_for(emojis), strict=True), 1)
    )


def selected(offered: tuple[Option, ...], key: str) -> int | None:
    match = match_key(offered, key)
    return match.option.number if match else None


def without_style(text: str) -> str:
    return text.replace(EMOJI_STYLE, "").replace(TEXT_STYLE, "")


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("🚀", "🚀"),
        (" 🚀\n", "🚀"),
        (":rocket:", "🚀"),
        (":+1:", "👍"),
        (":thumbsup:", "👍"),
        (":heart:", "❤️"),
        (":keycap_2:", "2️⃣"),
        ("\u2764", "\u2764\ufe0f"),
        ("\u2764\ufe0e", "\u2764\ufe0f"),
        ("👍\ufe0f", "👍"),
        ("©", "©\ufe0f"),
        ("👍🏽", "👍🏽"),
        ("☝\ufe0f🏽", "☝🏽"),
        ("👩‍👩‍👧‍👦", "👩‍👩‍👧‍👦"),
        ("🏳\u200d🌈", "🏳️\u200d🌈"),
        ("🇩🇪", "🇩🇪"),
        ("🏴󠁧󠁢󠁳󠁣󠁴󠁿", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"),
        ("2️⃣", "2️⃣"),
        ("2\u20e3", "2️⃣"),
    ],
)
def test_field_with_exactly_one_emoji_is_that_emoji_fully_qualified(field: str, shown: str) -> None:
    assert emoji_of_field(field, 2) == EmojiField(shown, replaced=False)


@pytest.mark.parametrize("field", [None, "", "  "])
def test_missing_field_is_a_question_mark_that_nobody_complains_about(field: str | None) -> None:
    assert emoji_of_field(field, 1) == EmojiField("❓", replaced=False)


@pytest.mark.parametrize(
    "field",
    [
        "🚀🔥",
        "🚀 🔥",
        "go 🚀",
        "rocket",
        ":no_such_code:",
        ":rocket::fire:",
        "1",
        "#",
        "*",
        "🇩",
        "3️⃣",
        "#️⃣",
        "🔟",
        ":one:",
        7,
        True,
        ["🚀"],
        {"emoji": "🚀"},
        pytest.param("🚀" * 5_000, id="long"),
        pytest.param(":" * 5_000, id="colons"),
        "\ufe0f",
        "\ud800",
    ],
)
def test_field_with_anything_else_counts_as_missing_and_is_told(field: object) -> None:
    assert emoji_of_field(field, 2) == EmojiField("❓", replaced=True)


def test_ten_is_the_keycap_of_the_tenth_option_only() -> None:
    assert emoji_of_field("🔟", 10) == EmojiField("🔟", replaced=False)


def test_every_emoji_is_kept_with_and_without_its_style() -> None:
    pictures = [shown for shown in EVERY_EMOJI if not shown.endswith("\u20e3") and shown != "🔟"]
    for read in (pictures, map(without_style, pictures)):
        assert [emoji_of_field(shown, 1) for shown in read] == [EmojiField(shown, replaced=False) for shown in pictures]


@pytest.mark.parametrize(("number", "key"), [(1, "1\ufe0f\u20e3"), (9, "9\ufe0f\u20e3"), (10, "🔟")])
def test_keycap_shows_its_number(number: int, key: str) -> None:
    assert keycap(number) == key


@pytest.mark.parametrize("number", [-1, 0, 11])
def test_number_without_a_keycap_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="1 to 10"):
        keycap(number)


def test_button_has_the_emoji_style_where_the_code_point_allows_it() -> None:
    """The Matrix specification asks for U+FE0F on every code point with an emoji variation sequence."""
    emojis = ("🚀", "👍", "🔍", "❤️", "👍🏽", "🏳️\u200d🌈", "🇩🇪", "⌚")
    assert buttons_for(emojis) == ("🚀", "👍\ufe0f", "🔍\ufe0f", "❤️", "👍🏽", "🏳️\u200d🌈", "🇩🇪", "⌚\ufe0f")


def test_options_that_share_an_emoji_have_their_keycaps_as_buttons() -> None:
    assert buttons_for(("🚀", "❓", "🔥", "❓", "🚀")) == ("1️⃣", "2️⃣", "🔥", "4️⃣", "5️⃣")


def test_the_same_emoji_with_and_without_style_is_shared() -> None:
    assert buttons_for(("\u2764", "\u2764\ufe0f")) == ("1️⃣", "2️⃣")


def test_skin_tones_are_emoji_of_their_own() -> None:
    assert buttons_for(("👍", "👍🏽")) == ("👍\ufe0f", "👍🏽")


@pytest.mark.parametrize("key", ["\u2764", "\u2764\ufe0f", "\u2764\ufe0e"])
@pytest.mark.parametrize("offered", ["\u2764", "\u2764\ufe0f"])
def test_reaction_in_another_form_selects_the_same_picture(offered: str, key: str) -> None:
    """R1"""
    assert match_key(options("🚀", offered), key) == KeyMatch(options("🚀", offered)[1], as_number=False)


@pytest.mark.parametrize("key", ["2\ufe0f\u20e3", "2\u20e3", "2"])
def test_keycap_selects_by_number_whatever_the_button_is(key: str) -> None:
    """R1"""
    for offered in (options("🚀", "🔥"), options("❓", "❓"), options("1️⃣", "2️⃣")):
        assert match_key(offered, key) == KeyMatch(offered[1], as_number=True)


def test_tenth_keycap_selects_the_tenth_option() -> None:
    assert selected(options(*"🚀🔥🍎🍐🍊🍋🍌🍉🍇🍓"), "🔟") == 10
    assert selected(options("🚀", "🔥"), "🔟") is None


@pytest.mark.parametrize("key", ["👍", "👍\ufe0f", "👍🏽", "👍🏿"])
@pytest.mark.parametrize("offered", ["👍", "👍🏻"])
def test_skin_tone_does_not_matter_where_one_option_has_the_emoji(offered: str, key: str) -> None:
    """R2"""
    assert selected(options("🚀", offered), key) == 2


@pytest.mark.parametrize(("key", "number"), [("👍", 1), ("👍\ufe0f", 1), ("👍🏽", 2), ("👍🏻", None)])
def test_skin_tone_decides_where_two_options_have_the_emoji(key: str, number: int | None) -> None:
    """R2"""
    assert selected(options("👍", "👍🏽"), key) == number


@pytest.mark.parametrize(
    ("offered", "key"), [("🤝", "🫱🏻\u200d🫲🏿"), ("👭", "👩🏻\u200d🤝\u200d👩🏿"), ("💑", "💑🏽")]
)
def test_two_skin_tones_do_not_matter_either(offered: str, key: str) -> None:
    """R2"""
    assert selected(options("🚀", offered), key) == 2


@pytest.mark.parametrize("key", ["❓", "❓\ufe0f", "👍", "👍🏽"])
def test_shared_emoji_selects_nothing(key: str) -> None:
    assert selected(options("❓", "👍", "❓", "👍"), key) is None


def test_tone_of_its_own_is_exact_beside_shared_emoji() -> None:
    offered = options("👍", "👍", "👍🏽")
    assert [selected(offered, key) for key in ("👍", "👍🏽", "👍🏿", "1️⃣", "3️⃣")] == [None, 3, None, 1, 3]


@pytest.mark.parametrize(
    "key",
    [
        "",
        "\ufe0f",
        "🔥",
        "3️⃣",
        "0️⃣",
        "3",
        "01",
        " 1",
        "11",
        "１",
        "🏽",
        ":rocket:",
        "🚀🚀",
        "<b>🚀</b>",
        "mxc://example.org/a",
        "\ud800",
        "\0",
        "Label 1",
        pytest.param("🚀" * 10_240, id="long"),
        pytest.param("\ufe0f" * 10_240 + "🚀", id="much style"),
    ],
)
def test_any_other_key_selects_nothing(key: str) -> None:
    """R10"""
    assert match_key(options("🚀", "👍"), key) is None


def test_no_options_match_no_key() -> None:
    assert match_key((), "1️⃣") is None


FIELDS = st.one_of(st.sampled_from(EVERY_EMOJI), st.text(max_size=3), st.none(), st.sampled_from(["👍", "👍🏽", "❓"]))


@settings(deadline=None)
@given(st.lists(FIELDS, min_size=1, max_size=10))
def test_every_button_and_every_keycap_selects_its_own_option(fields: list[str | None]) -> None:
    offered = options(*(emoji_of_field(field, number).emoji for number, field in enumerate(fields, 1)))
    assert len({without_style(option.button) for option in offered}) == len(offered)
    assert all(TEXT_STYLE not in option.button + option.emoji for option in offered)
    for option in offered:
        for key in (option.button, without_style(option.button), keycap(option.number)):
            assert selected(offered, key) == option.number


@settings(deadline=None)
@given(st.text())
def test_no_key_and_no_field_is_too_strange(text: str) -> None:
    assert isinstance(emoji_of_field(text, 1), EmojiField)
    assert selected(options("🚀", "👍"), text) in {None, 1, 2}
