"""Open the store of a location."""

from importlib.util import find_spec
from pathlib import Path

from barnabas.objects.directory_store import DirectoryStore
from barnabas.objects.location import Location, LocationError
from barnabas.objects.settings import StoreSettings
from barnabas.objects.store import ObjectStore


def open_store(location: Location, settings: StoreSettings | None = None) -> ObjectStore:
    """Return the store at a location; nothing is read or created yet.

    :param settings: For object stores; they precede the environment, as obstore reads it.
    :raises LocationError: A setting is not valid, or the package for object stores is not installed.
    """
    if isinstance(location, Path):
        if settings is not None and settings.values:
            raise LocationError(f"{location} is a path: store options apply only to object stores")
        return DirectoryStore(location)
    if find_spec("obstore") is None:
        message = f"{location}: obstore, which object stores need, is not installed: pip install '.[objects]'"
        raise LocationError(f"{message} in a checkout of Barnabas")
    from barnabas.objects.bucket_store import BucketStore  # obstore is an optional dependency

    return BucketStore(location, settings or StoreSettings())
