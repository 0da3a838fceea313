import pytest

from barnabas.client.core.address import BrokerAddress, parse_bootstrap


def test_several_brokers_are_separated_by_commas_and_the_port_defaults_to_9092() -> None:
    assert parse_bootstrap("a:1, b") == (BrokerAddress("a", 1), BrokerAddress("b", 9092))


def test_a_sequence_of_brokers_is_accepted() -> None:
    assert parse_bootstrap(["a:1", "b:2"]) == (BrokerAddress("a", 1), BrokerAddress("b", 2))


@pytest.mark.parametrize("text", ["[::1]:9093", "[::1]", "::1"])
def test_ipv6_hosts_are_in_brackets_or_alone(text: str) -> None:
    (address,) = parse_bootstrap(text)
    assert address.host == "::1"
    assert str(address) == f"[::1]:{address.port}"


@pytest.mark.parametrize("text", ["host:", ":9092", "host:port", "host:0", "host:65536", "host:²"])
def test_an_invalid_address_is_an_error_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid broker address: expected host:port"):
        parse_bootstrap(text)


@pytest.mark.parametrize("text", ["", " , "])
def test_an_empty_list_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="invalid bootstrap"):
        parse_bootstrap(text)
