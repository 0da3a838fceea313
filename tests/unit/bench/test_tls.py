"""Costs are compared with plaintext of the same kind, broker and run."""

from pathlib import Path

import pytest
from bench.measures import Measure, Metric
from bench.report import Result
from bench.tls.listeners import LISTENERS, MUTUAL, PLAINTEXT, TLS_1_2, TLS_SCRAM, SecurityMode, Site
from bench.tls.measures import acls
from bench.tls.report import Cost, costs_table, document
from bench.tls.run import costs_of


def measure_of(*names: str) -> tuple[Measure, list[Result]]:
    """Return a measure of requests, and the results of one round: Kafka takes twice as long in each."""
    metrics = {name: Metric(f"{name} of a request", "µs", 0.6, "rate" in name) for name in names}
    results = [
        Result(metric, [200.0 * number], [100.0 * number])
        for number, metric in enumerate(metrics.values(), 1)
    ]
    return Measure("requests", lambda broker, size: {}, metrics), results


def test_each_way_is_compared_with_plaintext() -> None:
    [plain, secure] = costs_of(*measure_of("plaintext", "TLS 1.3"))
    assert (plain.result, secure.plaintext) == (plain.plaintext, plain.result)
    assert costs_table([secure]).splitlines()[-1] == (
        "| TLS 1.3 of a request | µs | 200 | 100 | **2.00** | 400 | 200 | **2.00** |"
    )


def test_kinds_are_not_mixed_and_rates_are_no_costs() -> None:
    costs = costs_of(*measure_of("cpu plaintext", "cpu TLS 1.3", "rate plaintext", "rate TLS 1.3"))
    assert [cost.result.metric.text for cost in costs] == [
        "cpu plaintext of a request",
        "cpu TLS 1.3 of a request",
    ]


def test_a_metric_without_plaintext_has_no_cost() -> None:
    assert costs_of(*measure_of("p50", "p99")) == []


def test_the_error_of_a_binary_fraction_is_no_cost() -> None:
    metric = Metric("TLS 1.3", "µs", None)
    cost = Cost(Result(metric, [2.0], [0.1 + 0.2]), Result(metric, [2.0], [0.3]))
    assert costs_table([cost]).splitlines()[-1] == "| TLS 1.3 | µs | 0.3 | 0 | **1.00** | 2 | 0 | **1.00** |"


def test_the_document_has_both_comparisons_and_the_machine() -> None:
    measure, results = measure_of("plaintext", "TLS 1.3")
    guarded = Result(Metric("with ACLs", "µs", 1.1), [10.0], [11.0], against_itself=True)
    text = document([*results, guarded], costs_of(measure, results), 3, {"kernel": "Linux 6"})
    assert "there are 3 rounds" in " ".join(text.split())
    assert "- kernel: Linux 6" in text
    assert "| TLS 1.3 of a request | µs | 400 | 200 | **0.50** | ≤ 0.6 | yes |" in text
    assert "| TLS 1.3 of a request | µs | 200 | 100 | **2.00** | 400 | 200 | **2.00** |" in text
    assert "| with ACLs | µs | 10 | 11 | **1.10** | ≤ 1.1 | yes |" in text


@pytest.mark.parametrize(
    ("mode", "flags"),
    [
        (PLAINTEXT, set()),
        (TLS_1_2, {"authority", "tls_version"}),
        (MUTUAL, {"authority", "tls_version", "certificate"}),
        (TLS_SCRAM, {"authority", "tls_version", "user", "password"}),
    ],
)
def test_clients_have_what_their_security_mode_needs(
    tmp_path: Path, mode: SecurityMode, flags: set[str]
) -> None:
    site = Site(tmp_path)
    assert set(site.flags(mode)) == flags
    properties = site.client_config(mode).read_text()
    assert f"security.protocol={mode.protocol}\n" in properties
    assert ("ssl.truststore.location" in properties) is mode.is_encrypted
    assert ("ssl.keystore.location" in properties) is mode.has_certificate
    assert ("sasl.jaas.config" in properties) is mode.logs_in


def test_every_listener_has_its_protocol(tmp_path: Path) -> None:
    protocols = Site(tmp_path).broker_settings()["listener.security.protocol.map"].split(",")
    assert {f"{name}:{protocol}" for name, protocol in LISTENERS.items()} <= set(protocols)


def test_ten_thousand_acls_are_of_other_users() -> None:
    principals = [acl.principal for acl in acls()]
    assert sum(principal != "User:ANONYMOUS" for principal in principals) == 10_000
    assert "User:ANONYMOUS" in principals
