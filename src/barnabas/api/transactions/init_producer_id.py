"""InitProducerId (22), v0-v6: an id for an idempotent or transactional producer (KIP-98).

v3: the producer's current id and epoch (KIP-360).  v4: PRODUCER_FENCED.  v6: two-phase commit (KIP-939).
Errors: INVALID_REQUEST for an id without an epoch or an empty transactional id; INVALID_TRANSACTION_TIMEOUT,
CONCURRENT_TRANSACTIONS, PRODUCER_FENCED; UNSUPPORTED_VERSION for keeping a prepared transaction;
COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE; TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.authorization import allowed_any, require, require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.transactions.error_mapping import map_fenced_error
from barnabas.base.ids import ProducerIdAndEpoch
from barnabas.config.broker_config import BrokerConfig
from barnabas.transactions.initialization import Initialization
from barnabas.transactions.transaction import NEVER_MS, TransactionMetadata
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NONE = -1
FIRST_VERSION_WITH_PRODUCER_FENCED = 4


def error_response(request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    """Return the error, without an id."""
    return InitProducerIdResponse(error_code=error.code, producer_id=NONE, producer_epoch=NONE)


@serves(InitProducerIdRequest, InitProducerIdResponse, 0, 6, error_response=error_response)
async def handle(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Return a new producer id with epoch 0, or that of a transactional id with the next epoch."""
    await _authorize(context, request)
    broker = context.broker
    expected = _expected(request)
    if request.transactional_id is None:
        return InitProducerIdResponse(producer_id=await broker.producer_ids.next(), producer_epoch=0)
    _check(broker.config, request)
    timeout_ms = NEVER_MS if request.enable2_pc else request.transaction_timeout_ms
    initialization = Initialization(request.transactional_id, timeout_ms, expected)
    await broker.producer_ids.ready()
    with map_fenced_error(context.api_version, FIRST_VERSION_WITH_PRODUCER_FENCED):
        initialized: TransactionMetadata = await broker.transactions.handle_request(
            initialization.transactional_id,
            lambda shard, result, pending: shard.initialize(result, pending, initialization),
        )
    return InitProducerIdResponse(
        producer_id=initialized.producer_id, producer_epoch=initialized.producer_epoch
    )


async def _authorize(context: RequestContext, request: InitProducerIdRequest) -> None:
    """Check the permission: WRITE on any topic suffices for an idempotent producer (KIP-679)."""
    if request.transactional_id is not None:
        await require(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        if request.enable2_pc:
            two_phase_commit = AclOperation.TWO_PHASE_COMMIT
            await require(context, two_phase_commit, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not await allowed_any(context, AclOperation.WRITE, ResourceType.TOPIC):
        await require_cluster(context, AclOperation.IDEMPOTENT_WRITE)


def _expected(request: InitProducerIdRequest) -> ProducerIdAndEpoch | None:
    """Return the current id and epoch of the producer.

    :raises KafkaError: INVALID_REQUEST.
    """
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        message = (
            f"Producer id {request.producer_id} and epoch {request.producer_epoch} do not go together: "
            "both must be known, or both -1."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if request.producer_id == NONE:
        return None
    return ProducerIdAndEpoch(request.producer_id, request.producer_epoch)


def _check(config: BrokerConfig, request: InitProducerIdRequest) -> None:
    """Check the request of a transactional producer.

    :raises KafkaError: INVALID_REQUEST, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION,
        INVALID_TRANSACTION_TIMEOUT.
    """
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
    if request.enable2_pc and not config.boolean("transaction.two.phase.commit.enable"):
        message = "Two-phase commit is off: transaction.two.phase.commit.enable is false."
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, message)
    if request.keep_prepared_txn:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Prepared transactions are not supported.")
    longest_ms = config.integer("transaction.max.timeout.ms")
    if not request.enable2_pc and not 0 < request.transaction_timeout_ms <= longest_ms:
        message = (
            f"The transaction timeout of {request.transaction_timeout_ms} ms is out of bounds: "
            f"1 to {longest_ms} (transaction.max.timeout.ms) are allowed."
        )
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT, message)
