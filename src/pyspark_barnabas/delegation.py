"""Delegation tokens for tasks (KIP-48): executors get a token of limited lifetime instead of the user's password."""

import os
from dataclasses import replace

from barnabas.base.clock import Clock
from barnabas.client.admin.delegation_tokens import DelegationTokenAdmin, IssuedToken
from barnabas.client.auth.sasl import PASSWORD_MECHANISMS, SaslLogin
from barnabas.client.core.cluster import ClusterClient
from barnabas.wire.scram import MECHANISMS_BY_TITLE
from pyspark_barnabas.option_values import OptionError, flag

OPTION = "delegationTokens"

#: The default of the option; `barnabas spark-submit --delegation-tokens` sets it.
VARIABLE = "BARNABAS_SPARK_DELEGATION_TOKENS"

_MECHANISM_DEFAULT = "SCRAM-SHA-256"


def uses_delegation_tokens(option: str, login: SaslLogin | None) -> bool:
    """Whether tasks are to log in with tokens.

    :param option: The option's value; empty if it is not given.
    :raises OptionError: If the option is set, but the client does not log in with a password.
    """
    has_password = (
        login is not None and login.mechanism in PASSWORD_MECHANISMS and not login.is_delegation_token
    )
    if not option:
        return has_password and flag(VARIABLE, os.environ.get(VARIABLE, "false"))
    is_set = flag(OPTION, option)
    if is_set and not has_password:
        mechanisms = ", ".join(PASSWORD_MECHANISMS)
        message = f"option '{OPTION}' is '{option}': it needs a login with a password ({mechanisms})"
        raise OptionError(message)
    return is_set


async def task_login(cluster: ClusterClient, login: SaslLogin, clock: Clock) -> SaslLogin:
    """Return a login by a token of the user.

    An existing token is used for half of its lifetime. So planning, which has no state, creates few of them.

    :raises KafkaError: If the broker refuses.
    """
    admin, user = DelegationTokenAdmin(cluster), f"User:{login.user}"
    own = [
        token
        for token in await admin.describe([user])
        if token.owner == token.requester == user and not token.renewers  # others could end the token
    ]
    token = max(own, key=lambda token: token.expires_ms, default=None)
    if token is None or not _is_fresh(token, clock.wall_ms()):
        token = await admin.create()
    mechanism = login.mechanism if login.mechanism in MECHANISMS_BY_TITLE else _MECHANISM_DEFAULT
    return replace(
        login, mechanism=mechanism, user=token.token_id, password=token.password, is_delegation_token=True
    )


def _is_fresh(token: IssuedToken, now_ms: int) -> bool:
    return token.expires_ms - now_ms > (token.expires_ms - token.issued_ms) / 2
