import pytest

from barnabas.stores.etcd_http import EtcdEndpoint
from barnabas.stores.etcd_url import EtcdUrl, parse_etcd_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("etcd://h1", EtcdUrl((EtcdEndpoint("h1", 2379),), "barnabas")),
        (
            "etcd://h1:1,h2, [::1]:3",
            EtcdUrl((EtcdEndpoint("h1", 1), EtcdEndpoint("h2", 2379), EtcdEndpoint("::1", 3)), "barnabas"),
        ),
        ("etcds://h1/a/b/", EtcdUrl((EtcdEndpoint("h1", 2379, is_tls=True),), "a/b")),
    ],
)
def test_a_url_has_endpoints_and_a_prefix(url: str, expected: EtcdUrl) -> None:
    assert parse_etcd_url(url) == expected


@pytest.mark.parametrize(
    "part", ["", ":1", "h:0", "h:70000", "h:x", "h:-1", "user@h", "[::1", "h?x", "h#x", "h1 h2:1"]
)
def test_what_is_not_an_endpoint_is_named(part: str) -> None:
    with pytest.raises(ValueError, match="is not an endpoint of etcd: expected HOST:PORT") as raised:
        parse_etcd_url(f"etcd://h1,{part}/p")
    assert f"'{part}'" in str(raised.value)


def test_an_endpoint_prints_as_a_url() -> None:
    assert [str(EtcdEndpoint("h", 1)), str(EtcdEndpoint("::1", 2, is_tls=True))] == [
        "http://h:1",
        "https://[::1]:2",
    ]
