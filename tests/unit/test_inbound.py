"""Reading events that anyone could have written."""

import json
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindbridge.events import Edit, Message, OwnMembership, Reaction, Redaction, RoomEvent, Tombstone, Unreadable
from mindbridge.ids import EventId, UserId
from mindbridge.matrix.ciphertext import in_the_clear
from mindbridge.matrix.inbound import read_event

OWN = UserId("@assistant:example.org")
ALICE = "@alice:example.org"
HELLO, QUESTION = EventId("$hello"), EventId("$question")
BASE: dict[str, Any] = {"event_id": "$event", "sender": ALICE, "server_ts": 1_700_000_000_000}


def name_of(user: UserId) -> str:
    return f"name of {user}"


def event(event_type: str, content: Any, **changes: Any) -> dict[str, Any]:
    return {
        "event_id": "$event",
        "sender": ALICE,
        "origin_server_ts": 1_700_000_000_000,
        "type": event_type,
        "content": content,
    } | changes


def read(source: object) -> RoomEvent | None:
    return read_event(source, OWN, name_of)


def read_message(**content: Any) -> RoomEvent | None:
    return read(event("m.room.message", {"msgtype": "m.text", "body": "hello"} | content))


def message(**changes: Any) -> Message:
    said: dict[str, Any] = {"sender_name": f"name of {ALICE}", "text": "hello"}
    return Message(**(BASE | said | changes))


def in_reply_to(event_id: object) -> dict[str, Any]:
    return {"m.in_reply_to": {"event_id": event_id}}


# Messages


def test_message_is_read_with_its_sender_name_and_text() -> None:
    assert read_message() == message()


@pytest.mark.parametrize(("msgtype", "is_notice"), [("m.text", False), ("m.emote", False), ("m.notice", True)])
def test_text_emotes_and_notices_are_messages_and_notices_are_known_as_such(msgtype: str, is_notice: bool) -> None:  # noqa: FBT001
    assert read_message(msgtype=msgtype) == message(is_notice=is_notice)


@pytest.mark.parametrize("msgtype", ["m.image", "m.file", "m.audio", "m.location", "", None, 1, ["m.text"], {}])
def test_message_without_words_can_not_matter(msgtype: object) -> None:
    assert read_message(msgtype=msgtype) == RoomEvent(**BASE)


@pytest.mark.parametrize("body", [None, 2, 2.0, True, ["2"], {"2": "2"}])
def test_message_whose_body_is_no_text_can_not_matter(body: object) -> None:
    assert read_message(body=body) == RoomEvent(**BASE)


def test_html_is_kept_for_finding_mentions() -> None:
    assert read_message(formatted_body="<b>hello</b>") == message(formatted_text="<b>hello</b>")
    assert read_message(formatted_body=["<b>"]) == message()


def test_redacted_message_can_not_matter() -> None:
    assert read(event("m.room.message", {})) == RoomEvent(**BASE)


# Relations


def test_thread_message_with_fallback_is_no_reply() -> None:
    """T1"""
    relation = {"rel_type": "m.thread", "event_id": "$root", "is_falling_back": True, **in_reply_to("$latest")}
    assert read_message(**{"m.relates_to": relation}) == message(thread_id="$root")


@pytest.mark.parametrize(
    "falling_back", [{"is_falling_back": False}, {}, {"is_falling_back": "true"}, {"is_falling_back": 1}]
)
def test_thread_message_without_fallback_is_a_real_reply(falling_back: dict[str, Any]) -> None:
    """T1"""
    relation = {"rel_type": "m.thread", "event_id": "$root", **falling_back, **in_reply_to("$question")}
    assert read_message(**{"m.relates_to": relation}) == message(thread_id="$root", reply_to="$question")


def test_thread_message_that_replies_to_nothing_is_in_its_thread() -> None:
    assert read_message(**{"m.relates_to": {"rel_type": "m.thread", "event_id": "$root"}}) == message(thread_id="$root")


def test_reply_outside_threads_is_a_real_reply_whatever_it_says_of_falling_back() -> None:
    """T1"""
    for falling_back in ({}, {"is_falling_back": True}, {"is_falling_back": False}):
        relation = in_reply_to("$question") | falling_back
        assert read_message(**{"m.relates_to": relation}) == message(reply_to="$question")


@pytest.mark.parametrize(
    "relation",
    [
        None,
        "m.thread",
        [],
        {"rel_type": "m.thread"},
        {"rel_type": "m.thread", "event_id": 1},
        {"rel_type": "m.thread", "event_id": ["$root"], "is_falling_back": True},
        {"rel_type": ["m.thread"], "event_id": "$root"},
        {"rel_type": "m.reference", "event_id": "$root"},
        {"m.in_reply_to": None},
        {"m.in_reply_to": "$question"},
        {"m.in_reply_to": ["$question"]},
        {"m.in_reply_to": {"event_id": None}},
        {"m.in_reply_to": {"event_id": 7}},
        {"m.in_reply_to": {}},
    ],
    ids=json.dumps,
)
def test_message_with_a_broken_or_foreign_relation_stands_alone(relation: object) -> None:
    assert read_message(**{"m.relates_to": relation}) == message()


def test_thread_that_is_broken_leaves_a_reply_what_it_is() -> None:
    relation = {"rel_type": "m.thread", "is_falling_back": True, **in_reply_to("$question")}
    assert read_message(**{"m.relates_to": relation}) == message(reply_to="$question")


# Edits


def edit(new_content: object, **changes: Any) -> dict[str, Any]:
    content = {
        "msgtype": "m.text",
        "body": "* 2",
        "m.new_content": new_content,
        "m.relates_to": {"rel_type": "m.replace", "event_id": "$hello"},
    }
    return event("m.room.message", content | changes)


def test_edit_is_an_edit_and_no_message() -> None:
    """S4"""
    assert read(edit({"msgtype": "m.text", "body": "2"})) == Edit(**BASE, original=HELLO, text="2")


@pytest.mark.parametrize(
    "new_content", [None, "2", ["2"], {}, {"body": None}, {"body": 2}, {"body": {}}], ids=json.dumps
)
def test_edit_without_new_text_is_still_an_edit(new_content: object) -> None:
    """S4"""
    assert read(edit(new_content)) == Edit(**BASE, original=HELLO, text="")


@pytest.mark.parametrize("original", [None, 3, {}, ["$hello"]], ids=json.dumps)
def test_edit_of_nothing_can_not_matter(original: object) -> None:
    """S4"""
    broken = edit({"body": "2"}, **{"m.relates_to": {"rel_type": "m.replace", "event_id": original}})
    assert read(broken) == RoomEvent(**BASE)


def test_edit_that_replies_is_still_only_an_edit() -> None:
    """S4"""
    relation = {"rel_type": "m.replace", "event_id": "$hello", **in_reply_to("$question")}
    assert read(edit({"body": "2"}, **{"m.relates_to": relation})) == Edit(**BASE, original=HELLO, text="2")


# Mentions and metadata


@pytest.mark.parametrize(
    ("mentions", "read_as"),
    [
        ({"user_ids": [OWN]}, {OWN}),
        ({"user_ids": [OWN, ALICE, OWN]}, {OWN, ALICE}),
        ({"user_ids": [OWN, 7, None, [ALICE], {"a": 1}]}, {OWN}),
        ({"user_ids": []}, set()),
        ({"room": True}, set()),
        ({}, set()),
        (None, set()),
        ("@assistant:example.org", set()),
        ([OWN], set()),
        ({"user_ids": OWN}, set()),
        ({"user_ids": {OWN: True}}, set()),
        ({"user_ids": 7}, set()),
    ],
    ids=lambda value: repr(sorted(value)) if isinstance(value, set) else repr(value),
)
def test_mentions_that_a_client_states_are_the_ones_that_are_user_ids(mentions: object, read_as: set[str]) -> None:
    assert read_message(**{"m.mentions": mentions}) == message(mentions=frozenset(read_as))


def test_client_that_says_nothing_of_mentions_is_told_from_one_that_mentions_nobody() -> None:
    assert read_message() == message(mentions=None)
    assert read_message(**{"m.mentions": {}}) == message(mentions=frozenset())


def test_forged_question_is_a_message_with_a_claim() -> None:
    """R12"""
    claim = {"version": 1, "question_id": "question_1", "state": "open"}
    assert read_message(**{"dev.mindbridge.question": claim}) == message(question_id="question_1")


@pytest.mark.parametrize(
    "claim", [None, "question_1", ["question_1"], {}, {"question_id": 1}, {"question_id": {}}], ids=json.dumps
)
def test_broken_claim_is_none(claim: object) -> None:
    """R12"""
    assert read_message(**{"dev.mindbridge.question": claim}) == message()


# Reactions


def reaction(target: object, key: object, rel_type: object = "m.annotation") -> dict[str, Any]:
    return event("m.reaction", {"m.relates_to": {"rel_type": rel_type, "event_id": target, "key": key}})


@pytest.mark.parametrize(
    "key",
    [
        "🚀",
        "❤",
        "❤\ufe0f",
        "",
        " ",
        "x" * 10_240,
        "<img src=x onerror=alert(1)>",
        "mxc://example.org/abc",
        ":rocket:",
        "\0",
        "2",
    ],
    ids=lambda key: ascii(key[:12]),
)
def test_reaction_with_any_key_is_read_as_it_is(key: str) -> None:
    """R10"""
    read_as = Reaction(**BASE, sender_name=f"name of {ALICE}", target=QUESTION, key=key)
    assert read(reaction("$question", key)) == read_as


@pytest.mark.parametrize(
    "source",
    [
        reaction(None, "🚀"),
        reaction("$question", None),
        reaction("$question", 1),
        reaction(["$question"], "🚀"),
        reaction("$question", "🚀", "m.thread"),
        reaction("$question", "🚀", None),
        event("m.reaction", {}),
        event("m.reaction", {"m.relates_to": []}),
        event("m.reaction", None),
    ],
    ids=json.dumps,
)
def test_broken_or_withdrawn_reaction_can_not_matter(source: object) -> None:
    """R10"""
    assert read(source) == RoomEvent(**BASE)


# Redactions and memberships


@pytest.mark.parametrize(
    "source",
    [
        event("m.room.redaction", {"redacts": "$click"}),
        event("m.room.redaction", {}, redacts="$click"),
        event("m.room.redaction", {"redacts": "$click"}, redacts="$click"),
        event("m.room.redaction", {"redacts": 1}, redacts="$click"),
        event("m.room.redaction", {"redacts": "$click"}, redacts=1),
    ],
    ids=json.dumps,
)
def test_redaction_is_read_in_the_form_of_every_room_version(source: object) -> None:
    assert read(source) == Redaction(**BASE, target=EventId("$click"))


@pytest.mark.parametrize("content", [{}, None, {"redacts": 1}, {"redacts": ["$click"]}], ids=json.dumps)
def test_redaction_of_nothing_can_not_matter(content: object) -> None:
    assert read(event("m.room.redaction", content)) == RoomEvent(**BASE)


@pytest.mark.parametrize(
    ("content", "membership"),
    [
        ({"membership": "invite"}, "invite"),
        ({"membership": "join"}, "join"),
        ({"membership": "ban"}, "ban"),
        ({}, "leave"),
        (None, "leave"),
        ({"membership": 1}, "leave"),
    ],
    ids=json.dumps,
)
def test_own_membership_is_read(content: object, membership: str) -> None:
    assert read(event("m.room.member", content, state_key=OWN)) == OwnMembership(**BASE, membership=membership)


@pytest.mark.parametrize(
    "changes", [{"state_key": ALICE}, {}, {"state_key": None}, {"state_key": [OWN]}], ids=json.dumps
)
def test_membership_of_someone_else_can_not_matter(changes: dict[str, Any]) -> None:
    assert read(event("m.room.member", {"membership": "join"}, **changes)) == RoomEvent(**BASE)


# What can't be trusted at all


@pytest.mark.parametrize(
    "event_type", ["m.room.topic", "m.room.encrypted", "m.sticker", "", None, 1, ["m.reaction"], {}], ids=json.dumps
)
def test_event_of_another_kind_can_not_matter(event_type: Any) -> None:
    assert read(event(event_type, {"body": "2", "msgtype": "m.text"})) == RoomEvent(**BASE)


@pytest.mark.parametrize(
    "source",
    [
        None,
        7,
        "event",
        [],
        {},
        event("m.room.message", {}, event_id=None),
        event("m.room.message", {}, event_id=7),
        event("m.room.message", {}, sender=None),
        event("m.room.message", {}, sender=["@alice:example.org"]),
        event("m.room.message", {}, origin_server_ts=None),
        event("m.room.message", {}, origin_server_ts="1700000000000"),
        event("m.room.message", {}, origin_server_ts=1.7e12),
    ],
    ids=json.dumps,
)
def test_what_has_no_id_sender_or_time_is_no_event(source: object) -> None:
    assert read(source) is None


def test_transaction_id_is_believed_only_of_own_events() -> None:
    unsigned = {"unsigned": {"transaction_id": "delivery_1"}}
    own = read(event("m.room.topic", {}, sender=OWN, **unsigned))
    forged = read(event("m.room.topic", {}, **unsigned))
    assert own == RoomEvent(**(BASE | {"sender": OWN}), transaction_id="delivery_1")
    assert forged == RoomEvent(**BASE)


@pytest.mark.parametrize(
    "unsigned", [None, [], "x", {"transaction_id": 1}, {"transaction_id": ["delivery_1"]}], ids=json.dumps
)
def test_broken_transaction_id_is_none(unsigned: object) -> None:
    assert read(event("m.room.topic", {}, sender=OWN, unsigned=unsigned)) == RoomEvent(**(BASE | {"sender": OWN}))


@pytest.mark.parametrize(
    ("server_ts", "year"), [(2**53, 9999), (2**63, 9999), (2**200, 9999), (-1, 1970), (-(2**200), 1970)]
)
def test_time_that_no_calendar_holds_is_cut_to_one_that_it_does(server_ts: int, year: int) -> None:
    found = read(event("m.room.message", {"msgtype": "m.text", "body": "2"}, origin_server_ts=server_ts))
    assert isinstance(found, Message)
    assert datetime.fromtimestamp(found.server_ts / 1000, UTC).year == year


def test_half_characters_in_a_text_do_not_reach_what_can_not_hold_them() -> None:
    found = read(
        json.loads(json.dumps(event("m.room.message", {"msgtype": "m.text", "body": "two \ud800 halves \udc00"})))
    )
    assert found == message(text="two ? halves ?")


JSON_KEYS = st.sampled_from(
    [
        *["body", "formatted_body", "format", "msgtype", "content", "m.new_content", "m.mentions", "user_ids"],
        *["m.relates_to", "rel_type", "event_id", "key", "m.in_reply_to", "is_falling_back", "redacts", "membership"],
        *["dev.mindbridge.question", "question_id", "unsigned", "transaction_id"],
    ]
)
WORDS = st.sampled_from(
    ["m.annotation", "m.thread", "m.replace", "m.text", "m.notice", "join", "$root", OWN, ALICE, "2", "\ud800", "\0"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(JSON_KEYS | st.text(max_size=3), inner, max_size=6),
    max_leaves=12,
)
TYPES = st.sampled_from(["m.room.message", "m.reaction", "m.room.redaction", "m.room.member", "m.room.topic"])
MAPPINGS = st.dictionaries(JSON_KEYS, JSON, max_size=8)
EVENTS = st.fixed_dictionaries(
    {"event_id": WORDS, "sender": WORDS, "origin_server_ts": st.integers(), "type": TYPES, "content": MAPPINGS},
    optional={"unsigned": JSON, "redacts": JSON, "state_key": JSON},
)


@given(JSON | EVENTS | st.fixed_dictionaries({}, optional=dict.fromkeys(event("", None), JSON)))
def test_no_json_makes_reading_fail(source: object) -> None:
    found = read(source)
    assert found is None or isinstance(found, RoomEvent)


@given(EVENTS)
def test_all_that_is_read_can_be_written_down(source: object) -> None:
    found = read_event(source, OWN, lambda _: "half \ud800")
    assert found is not None
    assert datetime.fromtimestamp(found.server_ts / 1000, UTC).year in range(1970, 10_000)
    for field in fields(found):
        value = getattr(found, field.name)
        if isinstance(value, str):
            value.encode()


@pytest.mark.parametrize("falling_back", [{}, {"rel_type": "m.thread", "event_id": "$root", "is_falling_back": True}])
def test_quote_that_a_client_puts_before_a_reply_is_no_part_of_the_text(falling_back: dict[str, Any]) -> None:
    """T2"""
    relation = falling_back | in_reply_to("$other")
    read = read_message(body="> <@bob:example.org> 1. Yes\n\n2", **{"m.relates_to": relation})
    assert isinstance(read, Message)
    assert read.text == "2"


def test_quote_in_a_message_that_replies_to_nothing_stays() -> None:
    """T2"""
    read = read_message(body="> <@bob:example.org> 1. Yes\n\n2")
    assert isinstance(read, Message)
    assert read.text == "> <@bob:example.org> 1. Yes\n\n2"


def test_change_of_the_own_profile_is_no_change_of_membership() -> None:
    source = {
        "event_id": "$e",
        "sender": "@helper:example.org",
        "origin_server_ts": 1,
        "type": "m.room.member",
        "state_key": "@helper:example.org",
        "content": {"membership": "join", "displayname": "Helper"},
        "unsigned": {"prev_content": {"membership": "join"}},
    }
    assert type(read_event(source, OWN, name_of)) is RoomEvent


def test_tombstone_names_the_room_that_replaces_this_one() -> None:
    """A5"""
    upgraded = read(event("m.room.tombstone", {"replacement_room": "!new:example.org"}, state_key=""))
    assert isinstance(upgraded, Tombstone)
    assert upgraded.replacement == "!new:example.org"


@pytest.mark.parametrize("replacement", [None, "", 7, ["!new"], "new", "#alias:example.org", "!" + "x" * 10_000])
def test_tombstone_that_names_no_room_can_not_matter(replacement: object) -> None:
    """A5"""
    shown = read(event("m.room.tombstone", {"replacement_room": replacement}, state_key=""))
    assert type(shown) is RoomEvent


def test_tombstone_that_is_no_state_can_not_matter() -> None:
    assert type(read(event("m.room.tombstone", {"replacement_room": "!new:example.org"}))) is RoomEvent


# Encrypted events

CIPHERTEXT: dict[str, Any] = {
    "type": "m.room.encrypted",
    "event_id": "$hidden",
    "sender": "@alice:example.org",
    "origin_server_ts": 1_000,
    "content": {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "AwgA", "session_id": "s"},
}


def test_event_whose_key_is_not_there_is_unreadable_and_keeps_all_of_itself_and_its_thread() -> None:
    relation = {"rel_type": "m.thread", "event_id": "$root"}
    source = CIPHERTEXT | {"content": {**CIPHERTEXT["content"], "m.relates_to": relation}}
    read_now = read_event(source, OWN, name_of)
    assert isinstance(read_now, Unreadable)
    assert (read_now.event_id, read_now.thread_id, json.loads(read_now.source)) == ("$hidden", "$root", source)


@pytest.mark.parametrize("relation_is", ["inside", "outside"])
def test_reaction_that_was_encrypted_is_one(relation_is: str) -> None:
    relates = {"m.relates_to": {"rel_type": "m.annotation", "event_id": "$question", "key": "🚀"}}
    outside = {**CIPHERTEXT["content"], **(relates if relation_is == "outside" else {})}
    inside = {"type": "m.reaction", "content": relates if relation_is == "inside" else {}, "room_id": "!room"}
    read_now = read_event(in_the_clear(CIPHERTEXT | {"content": outside}, inside), OWN, name_of)
    assert isinstance(read_now, Reaction)
    assert (read_now.event_id, read_now.target, read_now.key) == ("$hidden", "$question", "🚀")


@pytest.mark.parametrize("inside", [5, {}, {"type": "m.room.redaction", "content": {}, "redacts": "$q"}])
def test_what_was_encrypted_and_is_no_event_is_not_waited_for(inside: object) -> None:
    read_now = read_event(in_the_clear(CIPHERTEXT, inside), OWN, name_of)
    assert type(read_now) is RoomEvent
