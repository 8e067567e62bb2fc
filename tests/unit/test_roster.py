"""Who is who, and who responds (contract, section 2)."""

from typing import Any

import pytest

from mindbridge.bridge.roster import Roster, thread_of
from mindbridge.events import Message
from mindbridge.ids import AgentName, EventId, UserId
from tests.unit.sample_room import (
    ALICE,
    BOB,
    BOT,
    CRITIC,
    CRITIC_USER,
    HELPER,
    HELPER_USER,
    STRANGER,
    agent,
    message,
    room,
    roster,
)

THREAD = EventId("$root")


def mentioned(text: str, formatted_text: str = "", mentions: frozenset[str] | None = None) -> set[AgentName]:
    said = message(text, formatted_text=formatted_text, mentions=mentions)
    return set(roster().mentions(said))


def responding(
    who: Roster, said: Message, *, members: frozenset[UserId] | None = None, took_part: tuple[AgentName, ...] = ()
) -> set[AgentName]:
    shown = room(said, members=members)
    return {name for name in (HELPER, CRITIC) if who.responds(name, said, shown, took_part=name in took_part)}


# Who is who


@pytest.mark.parametrize(
    ("user", "is_person", "may_talk", "agent_name"),
    [
        (ALICE, True, True, None),
        (STRANGER, True, False, None),
        (BOT, False, False, None),
        (HELPER_USER, False, False, HELPER),
        (CRITIC_USER, False, False, CRITIC),
        (UserId("@helper:example.org.evil"), True, False, None),
        (UserId("@Helper:example.org"), True, True, None),
    ],
)
def test_everyone_is_a_person_an_agent_or_a_bot(
    user: UserId,
    is_person: bool,  # noqa: FBT001
    may_talk: bool,  # noqa: FBT001
    agent_name: AgentName | None,
) -> None:
    who = roster()
    assert (who.is_person(user), who.may_talk(user), who.agent_of(user)) == (is_person, may_talk, agent_name)


def test_agent_that_is_not_configured_is_nobody() -> None:
    assert roster().agent(AgentName("former")) is None


def test_only_people_are_counted_in_a_room() -> None:
    everyone = frozenset({ALICE, BOB, STRANGER, BOT, HELPER_USER, CRITIC_USER})
    assert roster().people_in(room(members=everyone)) == 3
    assert roster().people_in(room(members=frozenset({ALICE, BOT, HELPER_USER, CRITIC_USER}))) == 1


# Mentions


@pytest.mark.parametrize(
    ("text", "formatted_text"),
    [
        (HELPER_USER, ""),
        (f"{HELPER_USER}: hello", ""),
        (f"hello {HELPER_USER}.", ""),
        (f"hello {HELPER_USER}, how are you?", ""),
        (f"({HELPER_USER})", ""),
        (f"hello {HELPER_USER}\nnext line", ""),
        ("hello @HELPER:EXAMPLE.ORG", ""),
        ("Helper: hi", f'<a href="https://matrix.to/#/{HELPER_USER}">Helper</a>: hi'),
        ("Helper: hi", '<a href="https://matrix.to/#/%40helper%3Aexample.org">Helper</a>: hi'),
        ("Helper: hi", '<a href="https://matrix.to/#/%40helper:example.org">Helper</a>: hi'),
        ("Helper: hi", '<a href="https://matrix.to/#/@helper%3aexample.org">Helper</a>: hi'),
        ("Helper: hi", f'<a href="https://matrix.to/#/{HELPER_USER}?via=example.org">Helper</a>: hi'),
        (f"[Helper](https://matrix.to/#/{HELPER_USER}) hi", ""),
    ],
)
def test_without_stated_mentions_a_user_id_or_link_in_the_text_is_one(text: str, formatted_text: str) -> None:
    assert mentioned(text, formatted_text) == {HELPER}


@pytest.mark.parametrize(
    "text",
    [
        "helper",
        "@helper",
        "Helper: hello",
        "helper:example.org",
        "@helper:example.com",
        "@helper:example.org.uk",
        "@helper:example.organisation",
        "@helper:example.org:8448",
        "@helper:example.org-two.net",
        "@helper2:example.org",
        "@thehelper:example.org",
        "https://matrix.to/#/%40helper%3Aexample.org.uk",
        "@helper:exampleXorg",
        "",
    ],
)
def test_text_that_is_only_like_a_user_id_is_no_mention(text: str) -> None:
    assert mentioned(text) == set()


def test_user_id_that_begins_like_anothers_is_not_the_others() -> None:
    who = roster(critic={"account": {"user_id": "@helper:example.org.uk", "password": "secret"}})
    longer, shorter = message("hi @helper:example.org.uk!"), message("hi @helper:example.org!")
    assert (set(who.mentions(longer)), set(who.mentions(shorter))) == ({CRITIC}, {HELPER})


def test_several_agents_can_be_mentioned_at_once() -> None:
    assert mentioned(f"{HELPER_USER} and {CRITIC_USER}") == {HELPER, CRITIC}


def test_where_a_client_states_mentions_only_those_count() -> None:
    assert mentioned(f"hello {HELPER_USER}", mentions=frozenset()) == set()
    assert mentioned(f"hello {HELPER_USER}", mentions=frozenset({CRITIC_USER})) == {CRITIC}
    assert mentioned("hello", mentions=frozenset({HELPER_USER, ALICE})) == {HELPER}


# Who responds

PAIR = frozenset({HELPER_USER, ALICE})


def test_mentioned_agents_respond_whatever_is_configured() -> None:
    said = message("hello", mentions=frozenset({HELPER_USER}))
    for respond in ("auto", "always", "mention"):
        assert HELPER in responding(roster(helper={"respond": respond}), said)


def test_nobody_responds_to_a_message_among_many_that_mentions_nobody() -> None:
    assert responding(roster(), message("hello")) == set()


def test_agent_goes_on_in_a_thread_in_which_it_took_part() -> None:
    said = message("go on", thread_id=THREAD)
    assert responding(roster(), said, took_part=(HELPER,)) == {HELPER}
    assert responding(roster(), said, took_part=(HELPER, CRITIC)) == {HELPER, CRITIC}


def test_mention_of_another_agent_ends_an_agents_part_in_its_thread() -> None:
    said = message("and you?", thread_id=THREAD, mentions=frozenset({CRITIC_USER}))
    assert responding(roster(), said, took_part=(HELPER,)) == {CRITIC}


def test_mention_of_a_person_leaves_the_thread_with_its_agent() -> None:
    said = message("what do you think?", thread_id=THREAD, mentions=frozenset({BOB}))
    assert responding(roster(), said, took_part=(HELPER,)) == {HELPER}


def test_agent_alone_with_the_sender_always_responds() -> None:
    for said in (
        message("hello"),
        message("hello", thread_id=THREAD),
        message("hello", mentions=frozenset()),
        message("hello", mentions=frozenset({CRITIC_USER})),
    ):
        assert HELPER in responding(roster(), said, members=PAIR)


@pytest.mark.parametrize("third", [BOB, CRITIC_USER, BOT, STRANGER])
def test_any_third_member_ends_being_alone(third: UserId) -> None:
    assert responding(roster(), message("hello"), members=PAIR | {third}) == set()


def test_agent_that_responds_always_needs_no_mention() -> None:
    who = roster(helper={"respond": "always"})
    assert responding(who, message("hello")) == {HELPER}
    assert responding(who, message("hello", mentions=frozenset({CRITIC_USER}))) == {HELPER, CRITIC}


@pytest.mark.parametrize(
    ("changes", "members", "took_part"),
    [({}, None, ()), ({"thread_id": THREAD}, None, (HELPER,)), ({}, PAIR, ())],
    ids=["room", "thread", "pair"],
)
def test_agent_that_responds_to_mentions_is_silent_without_one(
    changes: dict[str, Any], members: frozenset[UserId] | None, took_part: tuple[AgentName, ...]
) -> None:
    who = roster(helper={"respond": "mention"})
    assert responding(who, message("hello", **changes), members=members, took_part=took_part) == set()


# Where the reply goes


def test_reply_goes_to_the_messages_thread_or_starts_one() -> None:
    threaded = agent("@x:example.org")
    assert thread_of(threaded, message("hello", "$hello")) == "$hello"
    assert thread_of(threaded, message("hello", "$hello", thread_id=THREAD)) == THREAD


def test_reply_of_an_agent_without_threads_goes_to_the_main_timeline() -> None:
    flat = agent("@x:example.org", threads=False)
    assert thread_of(flat, message("hello", "$hello")) is None
    assert thread_of(flat, message("hello", "$hello", thread_id=THREAD)) is None
