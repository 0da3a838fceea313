"""Sessions in etcd: keys with a lease, which etcd removes if the lease is not kept alive."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.metadata.store import SessionInUse, StoreError
from barnabas.stores.etcd_gateway import Gateway, Refused
from barnabas.stores.etcd_keys import Keys, compare_revision, get, got, put, revision_of
from barnabas.telemetry.logs import get_logger

#: A lease is kept alive so many times within its time to live.
KEEPALIVES_COUNT = 3

#: After a change of its leader, etcd extends all leases by the time of an election.
EXTENSION_S = 5.0

#: How often it is tried again to open the session of a process that may have ended.
RETRY_S = 0.5

#: How long the end of the sessions is awaited when the store is closed.
CLOSE_TIMEOUT_S = 2.0

_log = get_logger("barnabas.stores")


class EtcdSessions:
    """The sessions of this process, each with a lease of its own."""

    def __init__(self, gateway: Gateway, keys: Keys, timeout_ms: int) -> None:
        """:param timeout_ms: Time to live of the leases; etcd counts whole seconds."""
        self._gateway = gateway
        self._keys = keys
        self._timeout_s = math.ceil(timeout_ms / 1000)
        self._leases: dict[str, str] = {}  #: key -> lease id
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self.lost_leases_count = 0

    async def open(self, key: str, value: bytes, conditions: Sequence[Mapping[str, Any]] = ()) -> int:
        """Write the key with a lease; return etcd's revision. See `metadata.store.Store`.

        :param conditions: What must be true of other keys, or it is as if the session were in use.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_s + EXTENSION_S
        is_waiting = False
        while (revision := await self._try(key, value, conditions)) is None:
            if loop.time() > deadline:
                raise SessionInUse(f"the session {key} is open in another process")
            if not is_waiting:
                is_waiting = True
                _log.info("waiting for the session of an earlier process to end", session=key)
            await asyncio.sleep(RETRY_S)
        return revision

    async def _try(self, key: str, value: bytes, conditions: Sequence[Mapping[str, Any]]) -> int | None:
        """Return etcd's revision; None if the key has another lease."""
        lease_id = self._leases.get(key) or await self._grant(key)
        name = self._keys.item(key)
        writes = [put(name, value, lease_id), put(self._keys.last, "")]
        present_revision = 0
        for _ in range(2):  # the second time over the key of this process
            transaction: dict[str, Any] = {
                "compare": [compare_revision(name, present_revision), *conditions],
                "success": writes,
                "failure": [get(name)],
            }
            try:
                response = await self._gateway.call("/v3/kv/txn", transaction, is_repeatable=False)
            except Refused as refused:
                if not refused.is_not_found:  # the lease has ended
                    raise StoreError(refused.message) from refused
                self._drop(key)
                return None
            if response.get("succeeded"):
                return revision_of(response)
            found = got(response)
            if found is None or found.get("lease") != lease_id:
                return None
            present_revision = int(found["mod_revision"])
        return None

    async def _grant(self, key: str) -> str:
        try:
            response = await self._gateway.call("/v3/lease/grant", {"TTL": str(self._timeout_s)})
        except Refused as refused:
            raise StoreError(refused.message) from refused
        lease_id = str(response["ID"])
        self._leases[key] = lease_id
        self._keeping[key] = asyncio.get_running_loop().create_task(
            self._keep_alive(key, lease_id), name=f"etcd-lease-{key}"
        )
        return lease_id

    async def _keep_alive(self, key: str, lease_id: str) -> None:
        while True:
            await asyncio.sleep(self._timeout_s / KEEPALIVES_COUNT)
            try:
                response = await self._gateway.call("/v3/lease/keepalive", {"ID": lease_id}, is_urgent=True)
            except (StoreError, Refused) as error:
                _log.warning("cannot keep a session alive", session=key, why=str(error))
                continue
            if int(response.get("TTL", 0)) <= 0:
                _log.warning("etcd has ended a session of this process", session=key)
                self.lost_leases_count += 1
                self._leases.pop(key, None)
                self._keeping.pop(key, None)
                return

    def _drop(self, key: str) -> str | None:
        keeping = self._keeping.pop(key, None)
        if keeping is not None:
            keeping.cancel()
        return self._leases.pop(key, None)

    async def revoke(self, key: str) -> None:
        """End the lease of a session, and remove its key if it is there."""
        lease_id = self._drop(key)
        if lease_id is None:
            return
        try:
            await self._gateway.call("/v3/lease/revoke", {"ID": lease_id})
        except Refused as refused:
            if not refused.is_not_found:
                raise StoreError(refused.message) from refused

    async def close(self) -> None:
        """End all sessions, as if the process had ended."""
        keeping = list(self._keeping.values())
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                for key in list(self._leases):
                    await self.revoke(key)
        except (TimeoutError, StoreError) as error:
            _log.warning("sessions end by their timeout", why=str(error) or "etcd does not answer")
        for key in list(self._leases):
            self._drop(key)
        await asyncio.gather(*keeping, return_exceptions=True)
