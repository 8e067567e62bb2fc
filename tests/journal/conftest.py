"""A journal of its own for each test, in a real file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mindbridge.journal.database import Database
from mindbridge.journal.outbox import Outbox


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """An open journal."""
    opened = await Database.open(tmp_path / "home")
    yield opened
    await opened.close()


@pytest.fixture
def outbox(database: Database) -> Outbox:
    """Sending, as the journal sees it."""
    return Outbox(database)
