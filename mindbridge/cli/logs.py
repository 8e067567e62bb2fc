"""The log: event names with ids, for people on a terminal, as JSON lines elsewhere."""

import json
import logging
from datetime import UTC, datetime
from typing import TextIO


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(stream: TextIO, level: int = logging.INFO) -> None:
    """Sends the log to `stream`."""
    handler = logging.StreamHandler(stream)
    people = logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S")
    handler.setFormatter(people if stream.isatty() else _JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("nio").setLevel(logging.ERROR)
