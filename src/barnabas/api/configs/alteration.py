"""The common part of AlterConfigs and IncrementalAlterConfigs."""

import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from barnabas.api.audit import Results
from barnabas.api.configs.loggers import alter_levels
from barnabas.api.configs.resources import kind_of, require_for, resource_of
from barnabas.api.configs.rules import alteration_rules
from barnabas.api.context import RequestContext
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.metadata.configs import ConfigAlteration, ConfigAlterationResult, config_resource, decide_alter
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.policy import AlterConfigPolicy, ConfigResource, ConfigResourceType
from barnabas.policy.policies import Policies
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError

ResultT = TypeVar("ResultT")

_KINDS = frozenset(ResourceKind)


class RequestedEdit(NamedTuple):
    """One config of a request; the number of the operation may be invalid."""

    key: str
    operation: int
    value: str | None


class RequestedAlteration(NamedTuple):
    """One resource of a request; type and name may be invalid."""

    resource_type: int
    resource_name: str
    edits: Sequence[RequestedEdit]
    #: remove all configs that no edit names
    replaces: bool


Outcome = KafkaError | None  #: the error of an alteration; None if it succeeded


async def alter(
    context: RequestContext, requested: Sequence[RequestedAlteration], *, validate_only: bool
) -> list[Outcome]:
    """Alter each resource on its own: levels of loggers immediately, everything else in one commit if possible."""
    counts = await context.compute(
        lambda: Counter(
            (alteration_request.resource_type, alteration_request.resource_name)
            for alteration_request in requested
        )
    )
    outcomes: list[Outcome] = [None] * len(requested)
    alterations: dict[int, ConfigAlteration] = {}
    resources: set[Resource] = set()
    async for index, alteration_request in context.each(enumerate(requested)):
        try:
            if counts[alteration_request.resource_type, alteration_request.resource_name] > 1:
                raise _duplicate_error(alteration_request)
            alteration = await _alteration(context, alteration_request)
            if alteration.resource in resources:
                raise _duplicate_error(alteration_request)  # a broker whose id is written in two ways
            resources.add(alteration.resource)
            if alteration.resource.kind is ResourceKind.BROKER_LOGGER:
                _alter_levels(context, alteration, validate_only=validate_only)
            else:
                alterations[index] = alteration
        except KafkaError as error:
            outcomes[index] = error.without_traceback()
    for index, outcome in (await _commit(context, alterations, validate_only)).items():
        outcomes[index] = outcome
    return outcomes


def _alter_levels(context: RequestContext, alteration: ConfigAlteration, *, validate_only: bool) -> None:
    levels = alter_levels(alteration.edits, validate_only=validate_only)
    for logger, (before, after) in levels.items():
        context.record_change(config_resource(*alteration.resource), logger, before, after)


def _duplicate_error(requested: RequestedAlteration) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REQUEST, f"Resource '{requested.resource_name}' is named more than once."
    )


async def _alteration(context: RequestContext, requested: RequestedAlteration) -> ConfigAlteration:
    kind = kind_of(requested.resource_type)
    if kind is ResourceKind.BROKER_LOGGER and requested.replaces:
        message = "Levels of loggers can only be altered with IncrementalAlterConfigs."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    resource = resource_of(kind, requested.resource_name, context.broker.broker_id)
    await require_for(context, AclOperation.ALTER_CONFIGS, resource)
    edits = await context.compute(_edits, requested)
    return ConfigAlteration(resource, edits, requested.replaces)


def _edits(requested: RequestedAlteration) -> list[AlterConfigOp]:
    return [AlterConfigOp(edit.key, _operation(edit), edit.value) for edit in requested.edits]


def _operation(edit: RequestedEdit) -> OpType:
    try:
        return OpType(edit.operation)
    except ValueError:
        known = ", ".join(f"{op_type.value} ({op_type.name})" for op_type in OpType)
        message = f"Operation {edit.operation} on '{edit.key}' is unknown: there are {known}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message) from None


async def _commit(
    context: RequestContext, alterations: Mapping[int, ConfigAlteration], validate_only: bool
) -> dict[int, Outcome]:
    """Commit what the rules and the policies allow; return the outcomes by index of the request."""
    if alterations:  # levels of loggers can be altered while the store is not available
        await context.broker.metadata.catch_up()
    policies = context.policies

    async def check_and_write() -> dict[int, Outcome]:
        refused: dict[int, Outcome] = {}
        checked: dict[int, ConfigAlterationResult] = {}
        if policies.guards_alteration:
            trial = await _write(context, alterations, {}, validate_only=True)
            refused = {index: await alteration_error(policies, result) for index, result in trial.items()}
            refused = {index: error for index, error in refused.items() if error is not None}
            checked = {index: result for index, result in trial.items() if index not in refused}
        passed = {index: result for index, result in alterations.items() if index not in refused}
        altered = await _write(context, passed, checked, validate_only=validate_only)
        return {**refused, **{index: result.error for index, result in altered.items()}}

    return await until_unchanged(check_and_write)


class ChangedSincePolicyCheck(Exception):
    """Configs have changed since the policies were evaluated, so that the edits would have another result."""


async def until_unchanged(check_and_write: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """Evaluate the policies and commit, again for as long as configs change in between.

    Policies take time, so they are evaluated before the commit, for the configs of that moment.
    """
    while True:
        with contextlib.suppress(ChangedSincePolicyCheck):
            return await check_and_write()


async def alteration_error(policies: Policies, altered: ConfigAlterationResult) -> Outcome:
    """Return why an alteration fails anyway, or why a policy refuses it."""
    if altered.error is not None:
        return altered.error
    resource = ConfigResource(ConfigResourceType(altered.resource.kind), altered.resource.name)
    try:
        metadata = AlterConfigPolicy.RequestMetadata(resource, altered.edited)
        await policies.check_alter_config(metadata, altered.removed)
    except KafkaError as error:
        return error.without_traceback()
    return None


async def _write(
    context: RequestContext,
    alterations: Mapping[int, ConfigAlteration],
    checked: Mapping[int, ConfigAlterationResult],
    *,
    validate_only: bool,
) -> dict[int, ConfigAlterationResult]:
    """Commit, unless the result would differ from `checked`.

    :raises ChangedSincePolicyCheck: If it would differ.
    """

    def decide(
        image: MetadataImage, part: Sequence[tuple[int, ConfigAlteration]]
    ) -> Decision[list[ConfigAlterationResult]]:
        rules = alteration_rules(context.broker, image)
        altered = [alteration for _, alteration in part]
        decision = decide_alter(image, altered, rules, validate_only=validate_only)
        for (index, _), result in zip(part, decision.response, strict=True):
            if result.error is None and index in checked and result != checked[index]:
                raise ChangedSincePolicyCheck
        return decision

    altered = await context.write_each(
        list(alterations.items()),
        decide,
        lambda item, error: ConfigAlterationResult(item[1].resource, error=error),
    )
    return dict(zip(alterations, altered, strict=True))


def config_results(_request: Any, response: Any) -> Results:
    """Read the results for the audit. Unknown types of resources are mistakes of the client, and not audited."""
    for result in response.responses:
        if result.resource_type in _KINDS:
            resource = config_resource(ResourceKind(result.resource_type), result.resource_name)
            yield resource, result.error_code, result.error_message
