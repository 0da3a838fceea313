"""RollbackResource (32000), v0: restore a resource's configs, ACLs, quotas and users to a revision of the audit.

An API of Barnabas. Differences are JSON, without secrets; `notes` describe what is not restored.

Errors: INVALID_REQUEST, RESOURCE_NOT_FOUND, UNKNOWN_TOPIC_OR_PARTITION, POLICY_VIOLATION, INVALID_CONFIG,
SECURITY_DISABLED, TOPIC_, GROUP_, CLUSTER_AUTHORIZATION_FAILED.
"""

import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.api.audit import Results
from barnabas.api.authorization import ask_authorizer, require, require_cluster, require_now
from barnabas.api.configs.alteration import ChangedSincePolicyCheck, alteration_error, until_unchanged
from barnabas.api.configs.resources import resource_of
from barnabas.api.configs.rules import alteration_rules
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.security.acls import require_authorizer
from barnabas.config.config_resource import EVERY_BROKER, ResourceKind
from barnabas.metadata.acls import ACLS
from barnabas.metadata.audit.rollback import RollbackRules, RolledBack, decide_rollback
from barnabas.metadata.configs import ConfigAlterationResult
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.policy.rules import AclAction
from barnabas.wire.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire.barnabas_messages.rollback_resource import (
    RestoredKey,
    RollbackResourceRequest,
    RollbackResourceResponse,
)
from barnabas.wire.errors import ErrorCode, KafkaError


def error_response(request: RollbackResourceRequest, error: KafkaError) -> RollbackResourceResponse:
    return RollbackResourceResponse(
        error_code=error.code, error_message=error.message or None, resource=request.resource
    )


def audit(request: RollbackResourceRequest, response: RollbackResourceResponse) -> Results:
    return [(request.resource, response.error_code, response.error_message)]


@serves(
    RollbackResourceRequest,
    RollbackResourceResponse,
    0,
    0,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: RollbackResourceRequest) -> RollbackResourceResponse:
    """Decide, evaluate the policies, and commit everything or nothing."""
    await _require_for(context, request.resource)

    async def check_and_write() -> RolledBack:
        checked = await _write(context, request, validate_only=True)
        if context.policies.guards_alteration and checked.altered is not None:
            error = await alteration_error(context.policies, checked.altered)
            if error is not None:
                raise error
        if request.validate_only:
            return checked
        return await _write(context, request, validate_only=False, checked=checked.altered)

    return _response(request, await until_unchanged(check_and_write))


async def _write(
    context: RequestContext,
    request: RollbackResourceRequest,
    *,
    validate_only: bool,
    checked: ConfigAlterationResult | None = None,
) -> RolledBack:
    policies = context.policies
    await ask_authorizer(context, AclOperation.ALTER, ResourceType.CLUSTER, [CLUSTER_NAME])

    def authorize(record_types: frozenset[str]) -> None:
        if ACLS.name in record_types:
            require_now(context, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
            require_authorizer(context)

    def decide(image: MetadataImage) -> Decision[RolledBack]:
        rules = RollbackRules(
            alteration_rules(context.broker, image),
            functools.partial(policies.check_acl, AclAction.CREATE),
            functools.partial(policies.check_acl, AclAction.DELETE),
            authorize,
        )
        decision = decide_rollback(
            image, request.resource, request.revision, rules, validate_only=validate_only
        )
        if not validate_only and decision.response.altered != checked:
            raise ChangedSincePolicyCheck
        return decision

    return await context.write(decide)


async def _require_for(context: RequestContext, resource: str) -> None:
    """Check the permissions that the APIs of a resource's parts require; those for ACLs are checked separately.

    :raises KafkaError: INVALID_REQUEST for a resource that cannot be rolled back.
    """
    kind, slash, name = resource.partition("/")
    if not slash or kind not in _REQUIRED:
        kinds = ", ".join(f"{resource_kind}/NAME" for resource_kind in sorted(_REQUIRED))
        message = f"'{resource}' cannot be rolled back: {kinds} are, as topic/orders."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    await _REQUIRED[kind](context, name)


async def _alter_topic(context: RequestContext, name: str) -> None:
    if name.endswith("*"):  # names of topics do not contain it: a prefix, or all topics
        await require_cluster(context, AclOperation.ALTER)
    else:
        await require(context, AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, name)


async def _alter_group(context: RequestContext, name: str) -> None:
    await require(context, AclOperation.ALTER_CONFIGS, ResourceType.GROUP, name)


async def _alter_broker(context: RequestContext, name: str) -> None:
    await require_cluster(context, AclOperation.ALTER_CONFIGS)
    if name != EVERY_BROKER:
        resource_of(ResourceKind.BROKER, name, context.broker.broker_id)


async def _alter_cluster_configs(context: RequestContext, _name: str) -> None:
    await require_cluster(context, AclOperation.ALTER_CONFIGS)


async def _alter_cluster(context: RequestContext, _name: str) -> None:
    await require_cluster(context, AclOperation.ALTER)


_REQUIRED: dict[str, Callable[[RequestContext, str], Awaitable[None]]] = {
    "broker": _alter_broker,
    "client-metrics": _alter_cluster_configs,
    "cluster": _alter_cluster,
    "delegation-token": _alter_cluster,
    "group": _alter_group,
    "quota": _alter_cluster_configs,
    "topic": _alter_topic,
    "transactional-id": _alter_cluster,
    "user": _alter_cluster,
}


def _response(request: RollbackResourceRequest, rolled_back: RolledBack) -> RollbackResourceResponse:
    keys = [
        RestoredKey(difference.key, _text(difference.before), _text(difference.after))
        for difference in rolled_back.differences
    ]
    return RollbackResourceResponse(resource=request.resource, keys=keys, notes=list(rolled_back.notes))


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
