"""Limits of one request, because one thread serves all clients."""

#: A request without records is received as a whole.
REQUEST_BYTES_MAX = 8 << 20

#: Maximum number of elements, all arrays together: their number takes time, not their bytes. Millions of empty names
#: would take half a minute and half a gigabyte. A fetch of fifty thousand topics is below the limit.
REQUEST_ELEMENTS_MAX = 100_000
