"""Delegation tokens for tasks (KIP-48): executors get a token of limited lifetime instead of the user's password, or of
the secret with which the driver gets its tokens of OAUTHBEARER.
"""

import os

from barnabas.base.clock import Clock
from barnabas.client.admin.delegation_tokens import DelegationTokenAdmin, IssuedToken
from barnabas.client.auth.sasl import MECHANISMS, SaslLogin
from barnabas.client.auth.tokens import NoToken, claims_of
from barnabas.client.core.cluster import ClusterClient
from barnabas.reading.option_values import OptionError, flag
from barnabas.wire.errors import ErrorCode, KafkaError

OPTION = "delegationTokens"

#: The default of the option; `barnabas spark-submit --delegation-tokens` sets it.
VARIABLE = "BARNABAS_SPARK_DELEGATION_TOKENS"


def uses_delegation_tokens(option: str, login: SaslLogin | None) -> bool:
    """Whether tasks are to log in with tokens.

    :param option: The option's value; empty if it is not given.
    :raises OptionError: If the option is set, but the client may not create tokens.
    """
    may_create = login is not None and not login.is_delegation_token
    if not option:
        return may_create and flag(VARIABLE, os.environ.get(VARIABLE, "false"))
    is_set = flag(OPTION, option)
    if is_set and not may_create:
        message = f"option '{OPTION}' is '{option}': it needs a login by {', '.join(MECHANISMS)}"
        raise OptionError(f"{message}, and without a delegation token")
    return is_set


async def task_login(cluster: ClusterClient, login: SaslLogin, clock: Clock) -> SaslLogin:
    """Return a login by a token of the user.

    An existing token is used for half of its lifetime. So planning, which has no state, creates few of them.

    :raises KafkaError: If the broker refuses.
    :raises OptionError: If the broker takes the user from another claim of a token of OAUTHBEARER.
    """
    admin, user = DelegationTokenAdmin(cluster), f"User:{await _user(login)}"
    own = [
        token
        for token in await admin.describe([user])
        if token.owner == token.requester == user and not token.renewers  # others could end the token
    ]
    token = max(own, key=lambda token: token.expires_ms, default=None)
    if token is None or not _is_fresh(token, clock.wall_ms()):
        token = await admin.create()
        if token.owner != user:
            await admin.expire(token.hmac)  # the next plan would not find it
            raise _unknown_user(token.owner, user, has_claims=login.token_source is not None)
    return SaslLogin(login.mechanism_of_tokens, token.token_id, token.password, is_delegation_token=True)


async def _user(login: SaslLogin) -> str:
    """Return the user as brokers name it: no API returns that before a token is created."""
    if login.token_source is None:
        return login.user
    try:
        claims = claims_of(await login.tokens.current(login.token_source))
    except NoToken as error:
        raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
    return str(claims.get(login.token_source.subject_claim, ""))


def _unknown_user(owner: str, user: str, *, has_claims: bool) -> OptionError:
    if has_claims:
        hint = "set option 'kafka.sasl.oauthbearer.sub.claim.name' to the claim that brokers use"
        return OptionError(
            f"brokers know this client as '{owner}', but its token of OAUTHBEARER names '{user}': {hint}"
        )
    reason = f"brokers know this client as '{owner}', not as '{user}', so its tokens would not be found again"
    return OptionError(f"{reason}: set option '{OPTION}' to false")


def _is_fresh(token: IssuedToken, now_ms: int) -> bool:
    return token.expires_ms - now_ms > (token.expires_ms - token.issued_ms) / 2
