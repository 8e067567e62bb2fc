"""Looking for a delivery that was tried before, without a word from the server: is it in the room?"""

from mindbridge.journal.outbox import Outbox
from mindbridge.journal.records import Delivery
from mindbridge.matrix.content import with_target
from mindbridge.matrix.errors import Refused
from mindbridge.matrix.past import Found, Past, TooFarBack


class CantTell(Exception):
    """The room doesn't say whether the server took the delivery; `str()` is the reason."""


async def find(past: Past, outbox: Outbox, delivery: Delivery) -> Found | None:
    """The delivery's event, None where the room has none.

    Args:
        past: the account's view of its rooms.
        outbox: what is known of other deliveries, one of which may have the same content.
        delivery: what was tried.

    Raises:
        CantTell: the room can't be read, or too much came since.
        MatrixError: there was no usable answer; to be tried again.
    """
    content = with_target(delivery.content, delivery.target_event)
    room, target = delivery.room_id, delivery.target_event
    try:
        match delivery.kind:
            case "button" if target is not None:
                return await past.button(room, target, content["m.relates_to"]["key"])
            case "edit" if target is not None:
                return await past.edit(room, target, content)
            case "redaction" if target is not None:
                return await past.redaction(room, target)
            case _:
                found = await past.sent(room, content, delivery.delivery_id, delivery.attempted_since)
                others = await outbox.acknowledged_events([each.event_id for each in found])
                return next((each for each in reversed(found) if each.event_id not in others), None)
    except (Refused, TooFarBack) as error:
        raise CantTell(str(error)) from error
