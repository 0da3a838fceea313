"""Files in directories and objects in object stores, behind one protocol."""

from barnabas.objects.opening import open_store as open_store
