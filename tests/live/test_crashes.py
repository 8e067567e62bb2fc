"""A bridge that is killed at any step loses nothing and repeats nothing (contract, section 7.1)."""

import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import zip_longest
from pathlib import Path

import pytest
from aiohttp import web

from mindbridge.steps import Side, Step
from tests.live.conftest import NewBridge, NewPerson, NewProxy
from tests.live.conversation import buttons_of, is_edit_of, is_message, is_notice, is_question, said_in
from tests.live.crashes import CHOSEN, SIDES, Stage, both_sides, kind_of, side_by_side
from tests.live.killed_bridge import PROGRAM, Point, kill_at, points_passed
from tests.live.person import Event
from tests.live.proxy import SEND, Next, Request, forget_transactions, limit, lose, refuse_with

MESSAGE, BUTTON = "/send/m.room.message/", "/send/m.reaction/"

# How often each step is reached, ADMIT and CLAIM at least. CLAIM: at first without a delivery or with the edit, for
# each event that is sent, to acknowledge the last of them, and after that one came back.
ASKING = {
    Step.ADMIT: 2,
    Step.START_TURN: 1,
    Step.CALL_AGENT: 1,
    Step.END_TURN: 1,
    Step.CLAIM: 6,
    Step.SEND_MESSAGE: 1,
    Step.SEND_BUTTON: 2,
}
ANSWERING = {
    Step.ADMIT: 2,
    Step.START_TURN: 1,
    Step.CALL_AGENT: 1,
    Step.END_TURN: 1,
    Step.CLAIM: 6,
    Step.SEND_EDIT: 1,
    Step.SEND_MESSAGE: 1,
    Step.SEND_REDACTION: 2,
}
VARYING = {Step.ADMIT, Step.CLAIM}
STARTING = (Step.PREPARE, Step.CLOSE_REMOVED, Step.RECORD_ACCOUNT, Step.REQUEUE_PARKED, Step.FORGET)

NOT_KILLED = {
    Step.MARK_GAP: (
        "committed before the position that it belongs to, and the same when it is done again",
        "test_clicks_in_a_gap_that_cannot_be_read_count_and_withdrawn_ones_do_not",
    ),
    Step.CLOSE_COMPARED: (
        "the question stays marked until it is done, and it is the same when it is done again",
        "test_agent_that_asks_otherwise_after_a_backup_was_put_back_is_not_answered_by_what_is_in_the_room",
    ),
    Step.TELL_UNREAD: (
        "it records one notice whose id is the same when it is done again",
        "test_sender_is_told_once_in_each_room_and_later_ones_too",
    ),
    Step.RETRY_TURN: (
        "one statement of a command of its own, whose user sees whether it was done",
        "test_turn_that_failed_three_times_is_parked_with_one_notice_until_it_is_run_again",
    ),
}
"""Why a bridge need not be killed there, and the test that covers the step."""


@pytest.fixture
def new_talk(new_person: NewPerson, new_bridge: NewBridge) -> Stage:
    return Stage(new_person, new_bridge)


# A question and its answer


@pytest.mark.parametrize("how", ["reaction", "number"])
async def test_question_and_answer_reach_the_steps_at_which_the_bridge_is_killed(how: str, new_talk: Stage) -> None:
    talk = await new_talk()

    async def passed_until_rest(begin: int) -> Counter[tuple[Step, Side]]:
        await talk.at_rest()
        return Counter(points_passed(talk.bridge.folder)[begin:])

    begin = len(points_passed(talk.bridge.folder))
    assert {step for step, _ in points_passed(talk.bridge.folder)} == {*STARTING, *VARYING}
    await talk.say("ask me")
    question = await talk.question()
    asking = await passed_until_rest(begin)
    begin = len(points_passed(talk.bridge.folder))
    answer = await talk.answer(question, how)
    await talk.check_end(question, answer)
    answering = await passed_until_rest(begin)

    for passed, expected in ((asking, ASKING), (answering, ANSWERING)):
        for side in SIDES:
            times = {step: number for (step, each), number in passed.items() if each == side}
            assert all(times[step] >= expected[step] for step in VARYING), times
            assert times | {step: expected[step] for step in VARYING} == expected


async def test_bridge_killed_while_it_asks_and_while_it_takes_a_reaction_does_both_once(new_talk: Stage) -> None:
    """S3, S10"""

    async def run(asking: Point | None, answering: Point) -> None:
        talk = await new_talk()
        if asking is None:
            await talk.say("ask me")
        else:
            await talk.killed_at(asking, talk.say("ask me"))
        question = await talk.question()
        await talk.at_rest()
        answer = await talk.killed_at(answering, talk.answer(question, "reaction"))
        await talk.check_end(question, answer)
        await talk.bridge.stop(signal.SIGKILL)

    pairs = zip_longest(both_sides(ASKING), both_sides(ANSWERING))
    await side_by_side({f"{one}, then {two}": partial(run, one, two) for one, two in pairs})


async def test_bridge_killed_while_it_takes_a_number_takes_it_once(new_talk: Stage) -> None:
    """S3"""

    async def run(point: Point) -> None:
        talk = await new_talk()
        await talk.say("ask me")
        question = await talk.question()
        await talk.at_rest()
        answer = await talk.killed_at(point, talk.answer(question, "number"))
        await talk.check_end(question, answer)
        await talk.bridge.stop(signal.SIGKILL)

    # What is claimed does not depend on how the question was answered.
    points = [point for point in both_sides(ANSWERING) if point.step is not Step.CLAIM]
    await side_by_side({str(point): partial(run, point) for point in points})


# Other steps


async def start(side: Side, new_talk: Stage) -> None:
    """Killed again and again while it starts, it takes an answer that was given meanwhile once."""
    talk = await new_talk()
    await talk.say("ask me")
    question = await talk.question()
    await talk.bridge.stop(signal.SIGKILL)
    answer = await talk.answer(question, "reaction")
    for step in STARTING:
        kill_at(talk.bridge.folder, Point(step, side))
        await talk.bridge.launch(PROGRAM)
        await talk.ended_itself()
    await talk.bridge.start(PROGRAM)
    await talk.check_end(question, answer)


async def hold(point: Point, new_talk: Stage, new_proxy: NewProxy) -> None:
    """A limited reply is sent once."""
    proxy = await new_proxy()
    talk = await new_talk(homeserver=proxy.url)
    limited = proxy.rule(limit(100), "PUT", MESSAGE, times=1)
    await talk.killed_at(point, talk.say("hello"))
    await talk.alice.wait_for(talk.room, is_message("You said: hello"))
    await talk.quiet()
    assert said_in(talk.alice, talk.room, talk.account) == ["You said: hello"]
    assert limited.done == 1


async def acknowledge(point: Point, new_talk: Stage, new_proxy: NewProxy) -> None:
    """A button that the server says to have already is there once."""

    async def forward_and_call_it_a_duplicate(request: Request, forward: Next) -> web.StreamResponse:
        await forward()
        return await refuse_with(400, "M_DUPLICATE_ANNOTATION")(request, forward)

    proxy = await new_proxy()
    talk = await new_talk(homeserver=proxy.url)
    proxy.rule(forward_and_call_it_a_duplicate, "PUT", BUTTON, times=1)
    await talk.killed_at(point, talk.say("ask me"))
    question = await talk.question()
    await talk.check_end(question, await talk.answer(question, "reaction"))


async def find(point: Point, new_talk: Stage, new_proxy: NewProxy) -> None:
    """A question whose acknowledgement was lost, and whose transaction the server has forgotten, is there once."""
    proxy = await new_proxy()
    talk = await new_talk(homeserver=proxy.url)
    proxy.rule(forget_transactions(), "PUT", SEND)
    proxy.rule(lose, "PUT", MESSAGE, times=1)
    await talk.killed_at(point, talk.say("ask me"))
    question = await talk.question()
    await talk.check_end(question, await talk.answer(question, "reaction"))


async def refuse(point: Point, new_talk: Stage, new_proxy: NewProxy) -> None:
    """A question whose buttons are refused says so once."""
    proxy = await new_proxy()
    talk = await new_talk(homeserver=proxy.url)
    proxy.rule(refuse_with(403, "M_FORBIDDEN"), "PUT", BUTTON)
    await talk.killed_at(point, talk.say("ask me"))
    question = await talk.alice.wait_for(talk.room, is_question())
    told = await talk.alice.wait_for(talk.room, is_edit_of(question["event_id"]))
    await talk.answer(question, "number")
    await talk.alice.wait_for(talk.room, is_message(CHOSEN))
    await talk.alice.wait_for(talk.room, is_edit_of(question["event_id"]), after=told["event_id"])
    await talk.quiet()
    assert Counter(map(kind_of, talk.sent())) == {"m.room.message": 2, "edit": 2}
    assert await buttons_of(talk.alice, talk.room, question["event_id"]) == []


async def learn(point: Point, new_talk: Stage, _new_proxy: NewProxy) -> None:
    """More messages than the server was known to take are each answered once."""
    talk = await new_talk()

    async def say_much() -> str:
        said = [await talk.say(f"number {number}") for number in range(14)]
        return said[-1]

    last = await talk.killed_at(point, say_much())
    await talk.alice.wait_for(talk.room, lambda event: _is_in_thread(event, last))
    await talk.quiet()
    said = Counter(said_in(talk.alice, talk.room, talk.account))
    assert said == {f"You said: number {number}": 1 for number in range(14)}


def _is_in_thread(event: Event, root: str) -> bool:
    return bool(event["content"].get("m.relates_to", {}).get("event_id") == root)


async def delay_turn(point: Point, new_talk: Stage, _new_proxy: NewProxy) -> None:
    """An agent that failed is asked again and its reply is sent once."""
    talk = await new_talk()
    talk.bridge.script({"help": {"fails": 1}})
    await talk.killed_at(point, talk.say("help"))
    await talk.alice.wait_for(talk.room, is_message("You said: help"))
    await talk.quiet()
    assert said_in(talk.alice, talk.room, talk.account) == ["You said: help"]
    turns = talk.bridge.turns()
    assert len({turn["turn_id"] for turn in turns}) == 1
    assert [turn["attempt"] for turn in turns] == ([1, 1, 2] if point.side == "before" else [1, 2])


async def park_turn(point: Point, new_talk: Stage, _new_proxy: NewProxy) -> None:
    """A parked turn is told once, and replied to once in the end."""
    backend = {"type": "python", "python": "agent:reply", "attempts": 1}
    talk = await new_talk(settings={"assistant": {"backend": backend}})
    talk.bridge.script({"help": {"needs": "luck"}})
    await talk.killed_at(point, talk.say("help"))
    await talk.alice.wait_for(talk.room, is_notice(talk.account))
    talk.bridge.allow("luck")
    await talk.say("hello")
    for text in ("hello", "help"):
        await talk.alice.wait_for(talk.room, is_message(f"You said: {text}"))
    await talk.quiet()
    messages = [event["content"] for event in talk.sent()]
    assert Counter(content["msgtype"] for content in messages) == {"m.notice": 1, "m.text": 2}
    texts = {content["body"] for content in messages if content["msgtype"] == "m.text"}
    assert texts == {"You said: hello", "You said: help"}


async def record_membership(point: Point, new_talk: Stage, _new_proxy: NewProxy) -> None:
    """A stranger's invitation is declined, and all else goes on."""
    talk = await new_talk(access={"users": ["@alice-*:*"]})
    mallory = await new_talk.new_person("Mallory")
    room = await talk.killed_at(point, mallory.create_room(invite=[talk.account]))
    await talk.say("hello")
    await talk.alice.wait_for(talk.room, is_message("You said: hello"))
    await talk.quiet()
    assert said_in(talk.alice, talk.room, talk.account) == ["You said: hello"]
    assert (await mallory.state(room, "m.room.member", talk.account))["membership"] == "leave"
    assert await mallory.members(room) == {mallory.user_id: "Mallory"}


async def settle_upgrade(point: Point, new_talk: Stage, _new_proxy: NewProxy) -> None:
    """The room that replaces one with an open question is told so once."""
    talk = await new_talk()
    await talk.say("ask me")
    await talk.question()
    place = ("rooms", talk.room)
    await talk.alice.call("PUT", *place, "state", "m.room.join_rules", "", json={"join_rule": "public"})

    async def upgrade() -> str:
        answer = await talk.alice.call("POST", *place, "upgrade", json={"new_version": "11"})
        return str(answer["replacement_room"])

    talk.room = await talk.killed_at(point, upgrade())
    await talk.alice.wait_for(talk.room, is_notice(talk.account))
    await talk.quiet()
    assert [kind_of(event) for event in talk.sent()] == ["m.room.message"]


Crash = Callable[[Point, Stage, NewProxy], Awaitable[None]]

ELSEWHERE: dict[Step, Crash] = {
    Step.HOLD: hold,
    Step.ACKNOWLEDGE: acknowledge,
    Step.FIND: find,
    Step.REFUSE: refuse,
    Step.LEARN: learn,
    Step.DELAY_TURN: delay_turn,
    Step.PARK_TURN: park_turn,
    Step.SEND_NOTICE: park_turn,
    Step.RECORD_MEMBERSHIP: record_membership,
    Step.SETTLE_UPGRADE: settle_upgrade,
}


async def test_bridge_killed_when_something_goes_wrong_or_it_starts_loses_and_repeats_nothing(
    new_talk: Stage, new_proxy: NewProxy
) -> None:
    runs: dict[str, Callable[[], Awaitable[None]]] = {
        f"{side} each step of a start": partial(start, side, new_talk) for side in SIDES
    }
    for point in both_sides(dict.fromkeys(ELSEWHERE, 1)):
        runs[str(point)] = partial(ELSEWHERE[point.step], point, new_talk, new_proxy)
    await side_by_side(runs)


def test_bridge_is_killed_at_every_step_but_those_with_a_reason() -> None:
    killed_at = {*ASKING, *ANSWERING, *STARTING, *ELSEWHERE}
    assert killed_at | set(NOT_KILLED) == set(Step)
    assert not killed_at & set(NOT_KILLED)
    tests = "\n".join(path.read_text("utf-8") for path in Path(__file__).parents[1].rglob("test_*.py"))
    for reason, test in NOT_KILLED.values():
        assert reason
        assert f"def {test}(" in tests
