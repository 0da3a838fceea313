"""Addresses about the registry itself."""

from typing import Any

from barnabas import __version__
from barnabas.registry.call import RegistryCall, RegistryRoute


async def root(call: RegistryCall) -> dict[str, Any]:
    return {}


async def list_contexts(call: RegistryCall) -> list[str]:
    """Return the only context, which is the default one."""
    return ["."]


async def show_id(call: RegistryCall) -> dict[str, Any]:
    """Return the id of the Kafka cluster."""
    clusters = {
        "kafka-cluster": call.registry.cluster.metadata.cluster_id,
        "schema-registry-cluster": "schema-registry",
    }
    return {"id": "", "scope": {"path": [], "clusters": clusters}}


async def show_version(call: RegistryCall) -> dict[str, str]:
    return {"version": __version__, "commitId": "barnabas"}


ROUTES = (
    RegistryRoute("GET", "/", root),
    RegistryRoute("GET", "/contexts", list_contexts),
    RegistryRoute("GET", "/v1/metadata/id", show_id),
    RegistryRoute("GET", "/v1/metadata/version", show_version),
)
