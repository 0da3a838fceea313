"""What AlterConfigs and IncrementalAlterConfigs have in common: from wishes to what became of each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.api.configs.loggers import alter_levels
from barnabas.api.configs.resources import kind_of, require_for, resource_of
from barnabas.api.configs.rules import alteration_rules
from barnabas.api.context import Node, RequestContext
from barnabas.config.edits import Edit, Operation
from barnabas.config.resources import ResourceKind
from barnabas.metadata.config_alteration import Alteration, Altered, decide_alter
from barnabas.policy import AlterConfigPolicy, ConfigResource, ConfigResourceType
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError


class WishedEdit(NamedTuple):
    """One config as a request has it; the number of the operation may mean nothing."""

    key: str
    operation: int
    value: str | None


class Wish(NamedTuple):
    """One resource as a request has it; type and name may mean nothing."""

    resource_type: int
    resource_name: str
    edits: Sequence[WishedEdit]
    #: whether what no edit names is taken away
    replaces: bool


Outcome = KafkaError | None  #: why a wish was refused


async def alter(context: RequestContext, wishes: Sequence[Wish], *, validate_only: bool) -> list[Outcome]:
    """Alter each resource for itself; levels of loggers at once, everything else in one transaction."""
    counts = Counter((wish.resource_type, wish.resource_name) for wish in wishes)
    outcomes: list[Outcome] = [None] * len(wishes)
    alterations: dict[int, Alteration] = {}
    for index, wish in enumerate(wishes):
        try:
            if counts[wish.resource_type, wish.resource_name] > 1:
                message = f"Resource '{wish.resource_name}' is named more than once."
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
            alteration = _alteration(context, wish)
            if alteration.resource.kind is ResourceKind.BROKER_LOGGER:
                alter_levels(alteration.edits, validate_only=validate_only)
            else:
                alterations[index] = alteration
        except KafkaError as error:
            outcomes[index] = error
    for index, outcome in (await _commit(context, alterations, validate_only)).items():
        outcomes[index] = outcome
    return outcomes


def _alteration(context: RequestContext, wish: Wish) -> Alteration:
    kind = kind_of(wish.resource_type)
    if kind is ResourceKind.BROKER_LOGGER and wish.replaces:
        message = "Levels of loggers can be altered one by one only, with IncrementalAlterConfigs."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    resource = resource_of(kind, wish.resource_name, context.node.broker_id)
    require_for(context, AclOperation.ALTER_CONFIGS, resource)
    edits = [Edit(edit.key, _operation(edit), edit.value) for edit in wish.edits]
    return Alteration(resource, edits, wish.replaces)


def _operation(edit: WishedEdit) -> Operation:
    try:
        return Operation(edit.operation)
    except ValueError:
        known = ", ".join(f"{each.value} ({each.name})" for each in Operation)
        message = f"Operation {edit.operation} on '{edit.key}' is unknown: there are {known}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message) from None


async def _commit(
    context: RequestContext, alterations: Mapping[int, Alteration], validate_only: bool
) -> dict[int, Outcome]:
    """Commit what the rules and the policies let pass; the outcomes by the indexes of the wishes."""
    refused = await _refused(context.node, alterations)
    passed = {index: each for index, each in alterations.items() if index not in refused}
    altered = await _write(context.node, list(passed.values()), validate_only=validate_only)
    return {**refused, **{index: each.error for index, each in zip(passed, altered, strict=True)}}


async def _refused(node: Node, alterations: Mapping[int, Alteration]) -> dict[int, Outcome]:
    """Those that fail anyway, and those that a policy refuses.

    Policies take their time, and what they are told depends on the request alone: so they are asked once, for what
    would pass as things stand, and not again when the commit meets a conflict.
    """
    refused: dict[int, Outcome] = {}
    if not node.policies.guards_alteration:
        return refused
    judged = await _write(node, list(alterations.values()), validate_only=True)
    for index, each in zip(alterations, judged, strict=True):
        try:
            if each.error is not None:
                raise each.error
            resource = ConfigResource(ConfigResourceType(each.resource.kind), each.resource.name)
            altered = AlterConfigPolicy.RequestMetadata(resource, each.edited)
            await node.policies.check_alter_config(altered, each.removed)
        except KafkaError as error:
            refused[index] = error
    return refused


async def _write(node: Node, alterations: Sequence[Alteration], *, validate_only: bool) -> list[Altered]:
    return await node.metadata.write(
        lambda image: decide_alter(
            image, alterations, alteration_rules(node, image), validate_only=validate_only
        )
    )
