"""How an account stands in its rooms: its name, where it is, and what it may do there."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass

from mindbridge.config.faults import quoted
from mindbridge.config.schema import AgentConfig
from mindbridge.doctor.findings import Check, Finding, Status
from mindbridge.ids import AgentName, RoomId
from mindbridge.matrix.errors import MatrixError
from mindbridge.matrix.session import Session
from mindbridge.matrix.standing import Power, Standing

ASK_SECONDS = 8.0
MOST_ROOMS = 20
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Rooms:
    """The rooms of an account: those that it is in, and the configured ones that it is not in."""

    joined: tuple[RoomId, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]


async def room_checks(agent: AgentName, config: AgentConfig, session: Session) -> list[Finding]:
    """Looks at the account's name, rooms and power, with a bounded number of requests and within `ASK_SECONDS`."""
    standing = session.standing
    deadline = asyncio.get_running_loop().time() + ASK_SECONDS
    joined: list[RoomId] = []

    async def named() -> Finding:
        return display_name_check(agent, config.display_name, await standing.display_name())

    async def placed() -> Finding:
        rooms = await _rooms(config.rooms, standing)
        joined.extend(rooms.joined)
        return rooms_check(agent, session.user_id, rooms)

    async def allowed() -> Finding:
        return await _permissions(agent, joined, standing)

    async def asked(name: Check, work: Coroutine[None, None, Finding]) -> Finding:
        try:
            async with asyncio.timeout_at(deadline):
                return await work
        except (MatrixError, TimeoutError) as error:
            why = str(error) or f"no answer within {ASK_SECONDS:g} s"
            return Finding(name, agent, Status.WARN, f"could not be asked: {why}", "try again later")

    findings = [] if config.display_name is None else [await asked("display_name", named())]
    findings.append(await asked("rooms", placed()))
    if joined:
        findings.append(await asked("permissions", allowed()))
    return findings


def display_name_check(agent: AgentName, configured: str | None, shown: str | None) -> Finding:
    """Compares the account's display name with the configured one."""
    if shown == configured:
        return Finding("display_name", agent, Status.OK, quoted(shown or ""))
    found = f"{'none' if shown is None else quoted(shown)} in place of {quoted(configured or '')}"
    advice = "`mindbridge run` sets it at its start; where it stays, the homeserver lets nobody change names"
    return Finding("display_name", agent, Status.WARN, found, advice)


async def _rooms(configured: tuple[str, ...], standing: Standing) -> Rooms:
    joined = await standing.joined_rooms()
    asked = configured[:MOST_ROOMS]
    found = {room: await standing.resolve(room) for room in asked}
    wanted = [room_id for room_id in found.values() if room_id in joined]
    return Rooms(
        joined=tuple(dict.fromkeys([*wanted, *joined])),  # so that the configured ones are looked at first
        missing=tuple(room for room, room_id in found.items() if room_id is not None and room_id not in joined),
        unknown=tuple(room for room, room_id in found.items() if room_id is None),
    )


def rooms_check(agent: AgentName, account: str, rooms: Rooms) -> Finding:
    """Whether the account is in its configured rooms."""
    number = len(rooms.joined)
    found = f"in {number} room{'s' * (number != 1)}" if number else "in no room yet"
    if not rooms.missing and not rooms.unknown:
        return Finding("rooms", agent, Status.OK, found, None if number else f"invite {account} to a room")
    advice = []
    if rooms.missing:
        found += f", not in {', '.join(rooms.missing)}"
        advice.append(f"`mindbridge run` joins `rooms` at its start; where that is refused, invite {account}")
    if rooms.unknown:
        found += f", and there is no {', '.join(rooms.unknown)}"
        advice.append("correct the name in `rooms`, or give it to a room")
    return Finding("rooms", agent, Status.WARN, found, "; ".join(advice))


async def _permissions(agent: AgentName, joined: Sequence[RoomId], standing: Standing) -> Finding:
    looked_at = joined[:MOST_ROOMS]
    answers = dict(zip(looked_at, await asyncio.gather(*(_power(standing, room) for room in looked_at)), strict=True))
    lacking = {room: power for room, power in answers.items() if isinstance(power, Power) and what_it_lacks(power)}
    names = {room: await standing.room_name(room) for room in list(lacking)[:_MOST_SHOWN]}
    errors = [error for error in answers.values() if isinstance(error, MatrixError)]
    return permissions_check(agent, lacking, names, errors, looked_at=len(looked_at), joined=len(joined))


async def _power(standing: Standing, room: RoomId) -> Power | MatrixError:
    """The account's power in a room, or why that can't be told, so that one room does not hide the others."""
    try:
        return await standing.power(room)
    except MatrixError as error:
        return error


def permissions_check(
    agent: AgentName,
    lacking: Mapping[RoomId, Power],
    names: Mapping[RoomId, str | None],
    errors: Sequence[MatrixError],
    *,
    looked_at: int,
    joined: int,
) -> Finding:
    """Tells in which rooms the account may not do all that it needs.

    Args:
        agent: whose account it is.
        lacking: the rooms in which its power is too little.
        names: those of them that are to be shown, with their names.
        errors: why it can't be told of other rooms.
        looked_at: in how many rooms that was looked at.
        joined: how many rooms it is in.
    """
    if lacking:
        shown = [_lack(room, name, lacking[room]) for room, name in names.items()]
        if len(lacking) > len(shown):
            shown.append(f"something in {len(lacking) - len(shown)} more")
        advice = (
            "give the account that power in the room's permissions, or lower what is needed; without buttons, typed "
            "numbers still count"
        )
        return Finding("permissions", agent, Status.WARN, f"too little power for {'; '.join(shown)}", advice)
    if errors:
        found = f"{len(errors)} of {looked_at} rooms could not be asked: {errors[0]}"
        return Finding("permissions", agent, Status.WARN, found, "try again later")
    of_these = f"the first {looked_at} of its {joined} rooms" if looked_at < joined else "all its rooms"
    return Finding("permissions", agent, Status.OK, f"messages, buttons and redactions are allowed in {of_these}")


def _lack(room: RoomId, name: str | None, power: Power) -> str:
    called = f"{quoted(name)} ({room})" if name else room
    return f"{', '.join(what_it_lacks(power))} in {called}: it has {power.own:g}"


def what_it_lacks(power: Power) -> list[str]:
    """What the account may not do in a room, each with the event's type and the power that it takes."""
    needs = (
        ("messages", "m.room.message", power.messages),
        ("buttons", "m.reaction", power.buttons),
        ("taking buttons away", "m.room.redaction", power.redactions),
    )
    return [f"{what} ({event_type} takes {needed})" for what, event_type, needed in needs if power.own < needed]
