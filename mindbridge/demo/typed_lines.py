"""Lines from standard input, be it a terminal, a pipe or a file, without holding up anything else meanwhile."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import TextIO

_CHUNK_BYTES = 65_536


async def typed_lines(stdin: TextIO | None) -> AsyncIterator[str]:
    """Give each line as it comes, without its end, until nothing more can come.

    Args:
        stdin: `sys.stdin`, which is None in a process that was started without one.
    """
    rest = b""
    while stdin is not None and (chunk := await _read(stdin.fileno())):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


async def _read(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(descriptor, readable.set)
    except PermissionError:  # a file, which is always readable and can't be waited for
        pass
    else:
        try:
            await readable.wait()
        finally:
            loop.remove_reader(descriptor)
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except OSError:  # the terminal is gone
        return b""
