"""What a server, or a proxy before it, says with an error."""

import json
import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from mindbridge.matrix.client import read_error

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def asked_ms(headers: dict[str, str] | None = None, **body: Any) -> float | None:
    said = {"errcode": "M_LIMIT_EXCEEDED", "error": "no"} | body
    return read_error(429, headers or {}, json.dumps(said).encode()).asked_ms


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (1500, 1500),
        (1500.5, 1500.5),
        ("1500", 1500),
        (" 1500.0 ", 1500),
        (-70, -70),
        (10**400, math.inf),
        ("1e400", math.inf),
        *((odd, None) for odd in (None, True, "soon", "", [1500], {"ms": 1500}, math.nan, "nan")),
    ],
)
def test_body_says_how_long_in_a_number_of_any_kind(value: Any, milliseconds: float | None) -> None:
    assert asked_ms(retry_after_ms=value) == milliseconds


@pytest.mark.parametrize(
    ("header", "milliseconds"),
    [
        ("7", 7_000),
        ("0.5", 500),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90_000),
        (format_datetime(NOW - timedelta(seconds=90)), -90_000),
        ("Mon, 30 Nov 2026 12:00:05 -0000", 5_000),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("Mon, 30 Nov 99999999999999 12:00:00 GMT", None),
        ("Mon, 30 Nov 2026 12:00:00 +9999999999999999", None),
    ],
)
def test_header_says_how_long_where_the_body_does_not(header: str, milliseconds: float | None) -> None:
    headers = {"Retry-After": header, "Date": format_datetime(NOW, usegmt=True)}
    assert asked_ms(headers) == milliseconds
    assert asked_ms(headers, retry_after_ms="soon") == milliseconds
    assert asked_ms(headers, retry_after_ms=1500) == 1500
    assert read_error(429, headers, b"<html>").asked_ms == milliseconds


def test_time_in_the_header_counts_from_the_bridges_clock_where_the_server_tells_no_time() -> None:
    header = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    for headers in ({"Retry-After": header}, {"Retry-After": header, "Date": "today"}):
        asked = asked_ms(headers)
        assert asked is not None
        assert 0 < asked <= 3_600_000


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"5", b"\xff\xfe", b"[" * 5_000, b'{"errcode": 7, "error": []}']
)
def test_body_that_is_no_matrix_error_says_nothing(body: bytes) -> None:
    error = read_error(502, {}, body)
    assert (error.status, error.errcode, error.words, error.asked_ms) == (502, None, "unknown error", None)


def test_words_are_cut_and_an_error_without_words_is_one() -> None:
    error = read_error(403, {}, json.dumps({"errcode": "M_" + "X" * 10_000, "error": "no\n\ud800" * 10_000}).encode())
    assert (error.errcode, error.words) == ("M_" + "X" * 198, "no??" * 50)
    assert read_error(403, {}, b'{"errcode": "M_FORBIDDEN"}').errcode == "M_FORBIDDEN"
