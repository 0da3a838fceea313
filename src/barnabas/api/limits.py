"""What one request may ask of the thread that serves all clients."""

#: A request without records is read as a whole.
REQUEST_BYTES_MAX = 8 << 20

#: What takes time is not the bytes of a request but its elements, all arrays together: millions of empty names would
#: take half a minute to answer, and half a gigabyte. A fetch of fifty thousand topics fits.
REQUEST_ELEMENTS_MAX = 100_000
