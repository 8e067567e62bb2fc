"""What an account may send, as its homeserver's answers teach it."""

import json
from dataclasses import asdict, dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindbridge.bridge.budget import LEARNED_FOR_MS, QUIET_MS, Budget

START = 1_800_000_000_000
ABSURD_TIMES = [-(10**12), -1, 0, 1, 10**9, 10**15]


@dataclass
class Server:
    """Synapse's leaky bucket for one account."""

    burst: float
    per_second: float
    level: float = 0.0
    at_ms: int = START

    def retry_after(self, now_ms: int) -> int | None:
        """Takes an event (None) or refuses it: milliseconds until there is room."""
        level = max(0.0, self.level - (now_ms - self.at_ms) / 1_000 * self.per_second)
        if level > self.burst - 1:
            return int((level - self.burst + 1) / self.per_second * 1_000)
        self.level, self.at_ms = level + 1, now_ms
        return None


@dataclass
class Account:
    """A sender that keeps the rule: messages at once, extras when the budget lets them go."""

    server: Server
    budget: Budget
    now_ms: int = START
    extras: int = 0
    refused_messages: int = 0
    refused_extras: int = 0
    refused_until_ms: int = START

    def message(self) -> None:
        while not self._send(is_message=True):
            self.refused_messages += 1
            self.now_ms = self.refused_until_ms

    def pass_time(self, milliseconds: int) -> None:
        """Sends what extras may go in that time."""
        end_ms = self.now_ms + milliseconds
        while self.extras:
            ready_ms = max(self.now_ms + self.budget.wait_for_extra(self.now_ms), self.refused_until_ms)
            if ready_ms > end_ms:
                break
            self.now_ms = ready_ms
            if self.budget.wait_for_extra(ready_ms) == 0:
                sent = self._send(is_message=False)
                self.extras -= sent
                self.refused_extras += not sent
        self.now_ms = end_ms

    def _send(self, *, is_message: bool) -> bool:
        retry_after = self.server.retry_after(self.now_ms)
        if retry_after is None:
            self.budget = self.budget.sent(self.now_ms, is_message=is_message)
            return True
        self.budget = self.budget.limited(self.now_ms, retry_after)
        self.refused_until_ms = self.now_ms + retry_after + 1
        return False


def after(events: int, budget: Budget | None = None, *, now_ms: int = START) -> Budget:
    """The budget after some events at once, the first of them a message."""
    budget = budget or Budget.unknown()
    for number in range(events):
        budget = budget.sent(now_ms, is_message=number == 0)
    return budget


def extras_at_once(budget: Budget, now_ms: int = START) -> int:
    """How many extras may go at one moment."""
    count = 0
    while count < 1_000 and budget.wait_for_extra(now_ms) == 0:
        budget = budget.sent(now_ms, is_message=False)
        count += 1
    return count


def full(burst: float, per_second: float) -> Budget:
    """A budget that knows its server, at a full bucket."""
    return Budget(burst, START, burst, per_second, START, START, START)


# Synapse's default limits


def test_a_question_and_its_five_buttons_go_at_once() -> None:
    asked = Budget.unknown().sent(START, is_message=True)
    assert extras_at_once(asked) >= 5


def test_after_a_question_with_five_buttons_three_more_messages_find_room_at_the_server() -> None:
    account = Account(Server(10, 0.2), Budget.unknown())
    account.message()
    account.extras = 50
    account.pass_time(0)
    assert account.extras == 44
    for _ in range(3):
        account.message()
    assert account.refused_messages == 0


def test_a_held_button_goes_when_the_reserve_is_free_again() -> None:
    held = after(8, after(1).limited(START, 5_000), now_ms=START + 60_000)
    wait = held.wait_for_extra(START + 60_000)
    assert wait > 0
    assert held.wait_for_extra(START + 60_000 + wait - 1) > 0
    assert held.wait_for_extra(START + 60_000 + wait) == 0


def test_a_refusal_at_the_default_limits_teaches_exactly_those() -> None:
    budget = after(10).limited(START, 5_000)
    assert (budget.burst, budget.per_second, budget.level) == pytest.approx((10, 0.2, 10))
    assert budget.wait_for_extra(START) == 20_000


def test_a_refusal_tells_when_there_is_room_for_one() -> None:
    refused = after(10).limited(START, 2_500)
    assert refused.burst == pytest.approx(10.5)
    assert refused.wait_for_extra(START) == 2_500 + 15_000


def test_an_event_taken_a_little_early_teaches_nothing() -> None:
    budget = full(10, 0.2).sent(START + 4_000, is_message=True)
    assert (budget.burst, budget.per_second) == (10, 0.2)


def test_probing_costs_one_refusal_and_then_the_reserve_is_kept() -> None:
    account = Account(Server(10, 0.2), Budget.unknown())
    account.message()
    account.extras = 30
    account.pass_time(60_000)
    assert account.refused_extras == 1
    account.extras += 100
    account.pass_time(600_000)
    account.message()
    assert (account.refused_extras, account.refused_messages) == (1, 0)


# Other limits


def test_five_buttons_get_out_where_the_burst_is_two() -> None:
    account = Account(Server(2, 0.2), Budget.unknown())
    account.message()
    account.extras = 5
    account.pass_time(60_000)
    assert account.extras == 0


def test_buttons_get_out_where_one_event_fills_the_bucket() -> None:
    account = Account(Server(1, 0.2), Budget.unknown())
    account.message()
    account.extras = 5
    account.pass_time(60_000)
    assert account.extras == 0


def test_forty_events_over_the_burst_without_a_refusal_make_the_budget_irrelevant() -> None:
    generous = after(50)
    assert extras_at_once(generous) == 1_000


def test_without_a_known_limit_held_buttons_go_after_some_quiet() -> None:
    held = after(10)
    assert held.wait_for_extra(START) == QUIET_MS
    assert held.wait_for_extra(START + QUIET_MS) == 0


def test_buttons_do_not_probe_while_messages_go() -> None:
    held = after(10).sent(START + QUIET_MS - 1, is_message=True)
    assert held.wait_for_extra(START + QUIET_MS) == QUIET_MS - 1


def test_with_a_known_limit_quiet_releases_nothing() -> None:
    held = after(10).limited(START, 5_000)
    assert held.wait_for_extra(START + QUIET_MS) > 0


def test_a_refusal_is_forgotten_after_a_day() -> None:
    refused = after(10).limited(START, 5_000)
    later = START + LEARNED_FOR_MS
    assert after(10, refused, now_ms=later).wait_for_extra(later) > QUIET_MS
    assert after(10, refused, now_ms=later + 1).wait_for_extra(later + 1) == QUIET_MS


def test_a_long_retry_time_lowers_the_rate() -> None:
    assert after(10).limited(START, 20_000).per_second == pytest.approx(0.05)


def test_events_taken_from_a_full_bucket_raise_the_rate() -> None:
    budget = full(10, 0.2)
    for second in range(1, 61):
        budget = budget.sent(START + second * 1_000, is_message=True)
    assert budget.per_second == pytest.approx(1)
    assert budget.burst == 10


def test_events_taken_after_the_bucket_was_empty_raise_the_burst() -> None:
    budget = after(20, full(10, 0.2), now_ms=START + 3_600_000)
    assert (budget.burst, budget.per_second) == (20, 0.2)


def test_a_refusal_in_spite_of_room_lowers_the_rate_and_not_the_burst() -> None:
    budget = full(10, 0.2)
    for number in range(3):
        budget = budget.sent(START + (number + 1) * 10_000, is_message=False)
    budget = budget.limited(START + 30_000, 10_000)
    assert (budget.burst, budget.per_second) == pytest.approx((10, 0.1))


@pytest.mark.parametrize("retry_after_ms", ABSURD_TIMES)
def test_absurd_retry_times_leave_sane_limits(retry_after_ms: int) -> None:
    budget = after(10).limited(START, retry_after_ms)
    assert 1 <= budget.burst <= 11
    assert 1 / 60 <= budget.per_second <= 0.2
    assert 0 < budget.wait_for_extra(START) <= 600_000


def test_a_clock_that_was_set_back_holds_nothing_for_longer() -> None:
    budget = after(10).limited(START, 5_000)
    assert budget.wait_for_extra(START - 1) <= budget.wait_for_extra(START)
    assert budget.wait_for_extra(START - LEARNED_FOR_MS * 365) == 0
    assert after(3, budget, now_ms=START - 60_000).wait_for_extra(START - 60_000) == 0


def test_a_clock_that_was_set_back_does_not_delay_the_quiet() -> None:
    held = after(10)
    assert held.wait_for_extra(START - 1_000) == QUIET_MS - 1_000
    assert held.wait_for_extra(START - QUIET_MS) == 0


def test_a_budget_survives_json() -> None:
    budget = after(12).limited(START, 4_321).sent(START + 99, is_message=True)
    assert Budget(**json.loads(json.dumps(asdict(budget)))) == budget


# What holds of any server and any sending

bursts = st.integers(1, 50)
rates = st.floats(0.05, 10)
gaps = st.lists(st.tuples(st.integers(0, 120_000), st.integers(0, 7)), min_size=1, max_size=60)


def talk(account: Account, gaps: list[tuple[int, int]], messages: int, per_second: float) -> None:
    """Messages with extras behind them; of the messages at most so many at once, and so many each second."""
    allowance = 0.0
    for gap_ms, extras in gaps:
        missing_ms = int(max(0.0, 1 - allowance) / per_second * 1_000) + 2
        pause_ms = max(gap_ms, missing_ms)
        account.pass_time(pause_ms)
        allowance = min(messages, allowance + pause_ms / 1_000 * per_second) - 1
        account.message()
        account.extras += extras


@settings(max_examples=100, deadline=None)
@given(st.integers(4, 50), rates, gaps)
def test_no_message_waits_behind_extras_once_the_limits_are_known(
    burst: int, per_second: float, gaps: list[tuple[int, int]]
) -> None:
    account = Account(Server(burst, per_second, level=burst), full(burst, per_second))
    talk(account, gaps, int(min(3, 0.3 * burst)), per_second)
    assert (account.refused_messages, account.refused_extras) == (0, 0)


@settings(max_examples=100, deadline=None)
@given(st.integers(4, 50), gaps)
def test_after_the_first_refusal_no_message_waits_behind_extras_at_the_default_rate(
    burst: int, gaps: list[tuple[int, int]]
) -> None:
    account = Account(Server(burst, 0.2), Budget.unknown())
    account.message()
    account.extras = burst + 10
    while not account.refused_extras:
        account.pass_time(1_000)
    talk(account, gaps, int(min(3, 0.3 * burst)), 0.2)
    assert (account.refused_messages, account.refused_extras) == (0, 1)


@settings(max_examples=100, deadline=None)
@given(bursts, rates)
def test_whatever_the_limits_many_extras_get_out_with_few_refusals(burst: int, per_second: float) -> None:
    account = Account(Server(burst, per_second), Budget.unknown())
    account.message()
    account.extras = 100
    account.pass_time(int(100 / min(per_second, 0.2) * 1_000) * 2 + 60_000)
    assert account.extras == 0
    # A server that takes one event at a time leaves nothing to learn by: each may be tried a moment too early.
    assert account.refused_extras <= (100 if burst == 1 else 5)


@settings(max_examples=100, deadline=None)
@given(gaps)
def test_without_limits_no_extra_waits_longer_than_the_quiet(gaps: list[tuple[int, int]]) -> None:
    account = Account(Server(10**9, 10**9), Budget.unknown())
    for gap_ms, extras in gaps:
        account.message()
        account.extras += extras
        account.pass_time(QUIET_MS)
        assert account.extras == 0
        account.pass_time(gap_ms)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-10_000_000, 10_000_000),
            st.none() | st.sampled_from(ABSURD_TIMES) | st.integers(0, 20_000),
            st.booleans(),
        ),
        max_size=60,
    )
)
def test_no_history_and_no_clock_makes_a_wait_negative_or_long(history: list[tuple[int, int | None, bool]]) -> None:
    budget, now_ms = Budget.unknown(), START
    for step_ms, retry_after, is_message in history:
        now_ms += step_ms
        if retry_after is None:
            budget = budget.sent(now_ms, is_message=is_message)
        else:
            budget = budget.limited(now_ms, retry_after)
        wait = budget.wait_for_extra(now_ms)
        assert 0 <= wait <= 600_000
        assert budget.wait_for_extra(now_ms + wait) == 0
