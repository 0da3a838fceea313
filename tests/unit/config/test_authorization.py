import pytest

from barnabas.config.authorization import allows_if_no_acl, super_users
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.load import load_broker_config


def test_super_users_are_separated_by_semicolons_because_names_may_have_commas() -> None:
    config = BrokerConfig({"super.users": "User:CN=a,O=b; User:c ;"})
    assert super_users(config) == {"User:CN=a,O=b", "User:c"}
    assert super_users(BrokerConfig({})) == frozenset()


@pytest.mark.parametrize("text", ["alice", "User:a;b", ":x"])
def test_a_super_user_without_a_type_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError, match=r"super\.users.*Type:name"):
        load_broker_config(settings=[f"super.users={text}"])


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("TRUE", True), ("yes", False), ("", False)])
def test_allow_everyone_if_no_acl_found_needs_the_word_true(text: str, expected: bool) -> None:
    assert allows_if_no_acl(BrokerConfig({"allow.everyone.if.no.acl.found": text})) is expected
