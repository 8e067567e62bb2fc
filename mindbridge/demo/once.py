"""The scripted conversation of `mindbridge demo --once`."""

from dataclasses import dataclass

from mindbridge.demo.client import Client, NotSeenError
from mindbridge.demo.conversation import Conversation
from mindbridge.demo.stage import Stage
from mindbridge.demo.timeline import Message
from mindbridge.ids import EventId, UserId

_SECONDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """What the person did, by event id."""

    hello: EventId
    click: EventId
    late_click: EventId
    number: EventId
    call: EventId


async def play(stage: Stage, client: Client) -> Acts:
    """Play the person's part: hello, a click, a second click too late, a number, a word to the second agent.

    Raises:
        NotSeenError: something that had to come did not.
        HomeserverError: the homeserver is gone or refused something.
    """
    person, room_id = client.person, client.room_id
    await client.wait_until(stage.has_everyone, "the agents to join the room", seconds=_SECONDS)
    hello = await person.say(room_id, "hello", mentioned=[stage.assistant])
    first = await _question_after(client, hello, stage.assistant)
    click = await person.react(room_id, first.event_id, _button(first, 1))
    await _question_after(client, click, stage.assistant)
    late_click = await person.react(room_id, first.event_id, _button(first, 2))
    await _message_after(client, late_click, stage.assistant, "the word that this question was answered already")
    number = await person.say(room_id, "2", thread=hello)
    await _question_after(client, number, stage.assistant)
    call = await person.say(room_id, "@helper are you there?", mentioned=[stage.helper])
    await _message_after(client, call, stage.helper, "the second agent's answer")
    return Acts(hello=hello, click=click, late_click=late_click, number=number, call=call)


async def _message_after(client: Client, act: EventId, agent: UserId, what: str) -> None:
    await client.wait_until(lambda seen: bool(_said(seen, act, agent)), what, seconds=_SECONDS)


async def _question_after(client: Client, act: EventId, agent: UserId) -> Message:
    """The question that the agent asked after the act, as soon as it has all its buttons."""

    def asked(conversation: Conversation) -> list[Message]:
        return [message for message in _said(conversation, act, agent) if message.question is not None]

    await client.wait_until(
        lambda seen: any(seen.is_complete(message) for message in asked(seen)),
        "the agent's question with all its buttons",
        seconds=_SECONDS,
    )
    return asked(client.conversation)[0]


def _said(conversation: Conversation, act: EventId, agent: UserId) -> list[Message]:
    return [event for event in conversation.after(act) if isinstance(event, Message) and event.sender == agent]


def _button(question: Message, number: int) -> str:
    for option in question.options:
        if option.number == number:
            return option.button
    raise NotSeenError(f"the question {question.event_id} offers no option {number}")
