"""The attributes of a client that subscriptions match."""

from barnabas.api.context import RequestContext
from barnabas.base.ids import uuid_to_text


def attributes_of(context: RequestContext, instance_id: bytes) -> dict[str, str]:
    """Return the attributes by name (`ClientMetricsConfigs`)."""
    connection = context.connection
    return {
        "client_instance_id": uuid_to_text(instance_id),
        "client_id": context.client_id or "",
        "client_software_name": connection.client_software_name,
        "client_software_version": connection.client_software_version,
        "client_source_address": connection.client_host,
        "client_source_port": str(connection.client_port),
    }
