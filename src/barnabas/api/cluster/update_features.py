"""UpdateFeatures (57), v0-v2: set the levels of the cluster's features, all or none (KIP-584).

v1: types of upgrade, validation only (KIP-778).  v2: no results per feature.

As in Apache Kafka, version 0 cannot request a downgrade, and the timeout is ignored.
Errors: INVALID_UPDATE_VERSION, CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.audit import cluster_result
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.features import FeatureUpdate, decide_update_features, supported_features
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


def error_response(request: UpdateFeaturesRequest, error: KafkaError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message or None)


@serves(
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    0,
    2,
    error_response=error_response,
    audit=cluster_result,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    await require_cluster(context, AclOperation.ALTER)
    updates = [
        FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
        async for update in context.each(request.feature_updates)
    ]
    supported = supported_features(context.broker.apis)
    await context.write(
        lambda image: decide_update_features(
            image.finalized_features,
            supported,
            updates,
            broker_id=context.broker.broker_id,
            validate_only=request.validate_only,
        )
    )
    # Apache Kafka writes a message for success, too, and clients may show it.
    results = [
        UpdatableFeatureResult(update.feature, ErrorCode.NONE, ErrorCode.NONE.name)
        async for update in context.each(request.feature_updates)
    ]
    return UpdateFeaturesResponse(error_message=None, results=results)
