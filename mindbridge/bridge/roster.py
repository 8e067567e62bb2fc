"""Who is who: the configured agents and the people who may talk to them."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from mindbridge.config.schema import AgentConfig, Config
from mindbridge.events import JoinedRoom, Message
from mindbridge.ids import AgentName, EventId, UserId


@dataclass(frozen=True, slots=True)
class Roster:
    """The configuration, asked about people and agents."""

    config: Config

    def agent(self, name: AgentName) -> AgentConfig | None:
        """The agent's configuration, None where it is not configured (any more)."""
        return self.config.agents.get(name)

    def agent_of(self, user: UserId) -> AgentName | None:
        """The configured agent that `user` is the account of."""
        for name, agent in self.config.agents.items():
            if agent.account.user_id == user:
                return AgentName(name)
        return None

    def is_person(self, user: UserId) -> bool:
        """Whether `user` is neither a configured agent nor one of `access.bots`."""
        return self.agent_of(user) is None and not self.config.access.is_bot(user)

    def may_talk(self, user: UserId) -> bool:
        """Whether `user` is a person in `access.users`."""
        return self.is_person(user) and self.config.access.allows(user)

    def people_in(self, room: JoinedRoom) -> int:
        """How many joined members of the room are people."""
        return sum(1 for user in room.members if self.is_person(user))

    def mentions(self, message: Message) -> frozenset[AgentName]:
        """The agents that a message mentions: by `m.mentions`, else by user id or matrix.to link in its text."""
        return frozenset(
            AgentName(name)
            for name, agent in self.config.agents.items()
            if _is_mentioned(agent.account.user_id, message)
        )

    def responds(self, name: AgentName, message: Message, room: JoinedRoom, *, took_part: bool) -> bool:
        """Whether the agent answers an ordinary message (contract, section 2, `respond`).

        Args:
            name: the agent.
            message: from someone who may talk.
            room: where it was said.
            took_part: whether the agent had a turn in the message's thread before.
        """
        agent = self.config.agents[name]
        mentioned = self.mentions(message)
        if name in mentioned or agent.respond == "always":
            return True
        if agent.respond == "mention":
            return False
        if took_part and not mentioned:
            return True
        return room.members - {agent.account.user_id} == {message.sender}


def thread_of(agent: AgentConfig, message: Message) -> EventId | None:
    """The thread that a reply to `message` goes to; None in the main timeline."""
    return (message.thread_id or message.event_id) if agent.threads else None


def _is_mentioned(user_id: str, message: Message) -> bool:
    if message.mentions is not None:
        return user_id in message.mentions
    words = unquote(f"{message.text}\n{message.formatted_text}")
    return re.search(rf"{re.escape(user_id)}(?![\w.:-]*\w)", words, re.IGNORECASE) is not None
