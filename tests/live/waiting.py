"""Waiting for a condition, with a bound."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

POLL_SECONDS = 0.02


async def wait_until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 20) -> None:
    """Until the condition holds; TimeoutError where it does not in time."""
    async with asyncio.timeout(seconds):
        while True:
            holds = condition()
            if await holds if inspect.isawaitable(holds) else holds:
                return
            await asyncio.sleep(POLL_SECONDS)
