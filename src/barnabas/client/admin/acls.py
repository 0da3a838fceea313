"""Requests about ACLs."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.client.core.errors import check, error_for
from barnabas.wire.acls import AclBinding, AclFilter
from barnabas.wire.barnabas_messages.describe_acl_use import DescribeAclUseResponse
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from barnabas.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def describe_acls_request(acl_filter: AclFilter) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=acl_filter.resource_type,
        resource_name_filter=acl_filter.resource_name,
        pattern_type_filter=acl_filter.pattern_type,
        principal_filter=acl_filter.principal,
        host_filter=acl_filter.host,
        operation=acl_filter.operation,
        permission_type=acl_filter.permission,
    )


def parse_describe_acls_response(response: DescribeAclsResponse) -> list[AclBinding]:
    """Return the ACLs of a response.

    :raises KafkaError: If the request was refused.
    """
    check(response.error_code, response.error_message)
    return [
        AclBinding.from_codes(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for resource in response.resources
        for acl in resource.acls
    ]


class AclUse(NamedTuple):
    """When ACLs have allowed or denied something, as recorded since a time; in ms since the epoch."""

    since_ms: int
    last_used_ms: Mapping[AclBinding, int]
    created_ms: Mapping[AclBinding, int]  #: of ACLs that were created since then


def combine_acl_use_responses(responses: Iterable[DescribeAclUseResponse]) -> AclUse:
    """Combine the responses of all brokers: the time since which all have recorded, the last uses and creations.

    :raises KafkaError: If a broker refused the request.
    """
    since_ms, last_used_ms, created_ms = 0, dict[AclBinding, int](), dict[AclBinding, int]()
    for response in responses:
        check(response.error_code, response.error_message)
        since_ms = max(since_ms, response.since)
        for acl in response.acls:
            binding = AclBinding.from_codes(
                acl.resource_type,
                acl.resource_name,
                acl.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for times_ms, time_ms in ((last_used_ms, acl.last_used), (created_ms, acl.created)):
                if time_ms >= 0:
                    times_ms[binding] = max(times_ms.get(binding, 0), time_ms)
    return AclUse(since_ms, last_used_ms, created_ms)


def create_acls_request(bindings: Iterable[AclBinding]) -> CreateAclsRequest:
    return CreateAclsRequest(creations=[acl_creation(binding) for binding in bindings])


def acl_creation(binding: AclBinding) -> AclCreation:
    """Return one ACL of a CreateAcls request."""
    return AclCreation(
        resource_type=binding.resource_type,
        resource_name=binding.resource_name,
        resource_pattern_type=binding.pattern_type,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission,
    )


def parse_create_acls_response(response: CreateAclsResponse) -> list[KafkaError | None]:
    """Return the error of each ACL, in the order of the request; None for success."""
    return [error_for(result.error_code, result.error_message) for result in response.results]


def delete_acls_request(filters: Iterable[AclFilter]) -> DeleteAclsRequest:
    return DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=acl_filter.resource_type,
                resource_name_filter=acl_filter.resource_name,
                pattern_type_filter=acl_filter.pattern_type,
                principal_filter=acl_filter.principal,
                host_filter=acl_filter.host,
                operation=acl_filter.operation,
                permission_type=acl_filter.permission,
            )
            for acl_filter in filters
        ]
    )


def parse_delete_acls_response(
    response: DeleteAclsResponse,
) -> list[dict[AclBinding, KafkaError | None] | KafkaError]:
    """Return the ACLs that each filter matched, in the order of the request, with their errors; None for success."""
    return [
        error_for(result.error_code, result.error_message) or dict(map(_deletion_error, result.matching_acls))
        for result in response.filter_results
    ]


def _deletion_error(acl: DeleteAclsMatchingAcl) -> tuple[AclBinding, KafkaError | None]:
    binding = AclBinding.from_codes(
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
    return binding, error_for(acl.error_code, acl.error_message)
