from barnabas.net.creation_rate import WAIT_MS_MAX, Admission, ConnectionPacer, CreationRates


def waits(
    rates: CreationRates,
    count: int,
    *,
    listener: str = "A",
    now_ms: int = 50_000,
    pacer: ConnectionPacer | None = None,
) -> list[int]:
    """Return how long each of some connections has to wait that come at the same time; none is refused."""
    pacer = pacer or ConnectionPacer()
    admissions = [pacer.admit(rates, listener, now_ms) for _ in range(count)]
    assert not any(admission.is_refused for admission in admissions)
    return [admission.delay_ms for admission in admissions]


def test_without_a_limit_no_connection_waits() -> None:
    assert waits(CreationRates(), 1_000) == [0] * 1_000


def test_connections_beyond_a_burst_wait_for_their_turn() -> None:
    assert waits(CreationRates(of_broker=4), 8) == [0, 0, 0, 0, 0, 250, 500, 750]


def test_a_steady_pace_within_the_limit_never_waits() -> None:
    pacer, rates = ConnectionPacer(), CreationRates(of_broker=10)
    admissions = [pacer.admit(rates, "A", 100 * number) for number in range(100)]
    assert admissions == [Admission(0, is_refused=False)] * 100


def test_connections_that_waited_are_not_waited_for_later() -> None:
    pacer, rates = ConnectionPacer(), CreationRates(of_broker=4)
    waits(rates, 8, pacer=pacer)
    assert waits(rates, 2, pacer=pacer, now_ms=60_000) == [0, 0]


def test_each_listener_has_its_own_limit_below_that_of_the_broker() -> None:
    rates = CreationRates(of_broker=10, of_listeners={"A": 2})
    pacer = ConnectionPacer()
    assert waits(rates, 4, pacer=pacer) == [0, 0, 0, 500]
    assert waits(rates, 8, listener="B", pacer=pacer) == [0] * 7 + [100]


def test_the_limit_of_the_broker_is_not_for_other_brokers() -> None:
    rates = CreationRates(of_broker=1, protected_listener="BROKERS")
    pacer = ConnectionPacer()
    assert waits(rates, 20, listener="BROKERS", pacer=pacer) == [0] * 20
    assert waits(rates, 3, pacer=pacer) == [0, 0, 1_000]


def test_a_connection_that_would_wait_too_long_is_refused_and_does_not_delay_others() -> None:
    pacer, rates = ConnectionPacer(), CreationRates(of_broker=1)
    longest = max(waits(rates, 2 + WAIT_MS_MAX // 1_000, pacer=pacer))
    assert longest == WAIT_MS_MAX
    refused = [pacer.admit(rates, "A", 50_000) for _ in range(100)]
    assert refused == [Admission(0, is_refused=True)] * 100
    assert waits(rates, 1, pacer=pacer, now_ms=51_000) == [WAIT_MS_MAX]
    assert pacer.statistics() == {"delayed_count": 11, "refused_count": 100}


def test_a_limit_of_0_counts_as_1() -> None:
    assert waits(CreationRates(of_broker=0), 3) == [0, 0, 1_000]
