# The C types of walk.py, for Cython; Python does not read this.
cimport cython

cdef int _NONE, _CUT_OFF, _BYTES_BEHIND, _RECORD_SIZE, _OFFSET_DELTA, _TIMESTAMP, _HEADERS_COUNT
cdef int _HEADER_WITHOUT_KEY, _TOO_MANY_HEADERS, _NO_KEY, _TOO_EARLY, _TOO_LATE, _OFFSET
cdef int _LZ4_FLAGS_MASK, _LZ4_FLAGS, _LZ4_BLOCK_CHECKSUM, _LZ4_CONTENT_SIZE, _LZ4_CONTENT_CHECKSUM
cdef int _FAILED, _NO_TIMESTAMP, _INT32_SHIFT_MAX, _INT64_SHIFT_MAX
cdef long long _INT32_MAX, _INT64_MAX, _INT64_MIN

@cython.locals(
    size=Py_ssize_t, end=Py_ssize_t, length=cython.longlong, delta_ms=cython.longlong, timestamp_ms=cython.longlong,
    largest_ms=cython.longlong, key_size=cython.longlong, problem=cython.int,
)
cpdef (int, Py_ssize_t, Py_ssize_t, long long, long long) walk(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t index, Py_ssize_t count,
    long long base_timestamp_ms, long long earliest_ms, long long latest_ms, bint needs_keys,
    long long headers_count_max
) noexcept nogil

cpdef (int, Py_ssize_t, Py_ssize_t, long long, long long) walk_unlocked(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t index, Py_ssize_t count,
    long long base_timestamp_ms, long long earliest_ms, long long latest_ms, bint needs_keys,
    long long headers_count_max
)

@cython.locals(
    row=Py_ssize_t, batch=Py_ssize_t, at=Py_ssize_t, position=Py_ssize_t, body_end=Py_ssize_t, end=Py_ssize_t,
    base_offset=cython.longlong, last_delta=cython.longlong, base_ms=cython.longlong, is_append_time=cython.longlong,
    delta_min_ms=cython.longlong, delta_max_ms=cython.longlong, _=cython.longlong, size=cython.longlong,
    delta_ms=cython.longlong, offset_delta=cython.longlong,
)
cpdef (int, Py_ssize_t) scan_records(
    const unsigned char[::1] data, const long long[::1] batches, Py_ssize_t batches_count, Py_ssize_t width,
    long long[::1] starts, long long[::1] ends, long long[::1] offsets, long long[::1] timestamps_ms,
    long long[::1] key_positions, long long[::1] key_sizes, long long[::1] value_positions, long long[::1] value_sizes
) noexcept nogil

cpdef (int, Py_ssize_t) scan_records_unlocked(
    const unsigned char[::1] data, const long long[::1] batches, Py_ssize_t batches_count, Py_ssize_t width,
    long long[::1] starts, long long[::1] ends, long long[::1] offsets, long long[::1] timestamps_ms,
    long long[::1] key_positions, long long[::1] key_sizes, long long[::1] value_positions, long long[::1] value_sizes
)

@cython.locals(
    total=cython.longlong, nulls_count=cython.longlong, row=Py_ssize_t, end=Py_ssize_t, position=Py_ssize_t,
    count=cython.longlong,
)
cpdef (long long, Py_ssize_t) count_headers(
    const unsigned char[::1] data, Py_ssize_t rows_count, const long long[::1] starts, const long long[::1] ends,
    int[::1] offsets, unsigned char[::1] validity
) noexcept nogil

@cython.locals(
    header=Py_ssize_t, row=Py_ssize_t, end=Py_ssize_t, position=Py_ssize_t, count=cython.longlong, size=cython.longlong,
)
cpdef Py_ssize_t scan_headers(
    const unsigned char[::1] data, Py_ssize_t rows_count, const long long[::1] starts, const long long[::1] ends,
    long long[::1] key_positions, long long[::1] key_sizes, long long[::1] value_positions, long long[::1] value_sizes
) noexcept nogil

@cython.locals(size=Py_ssize_t, flags=cython.int, position=Py_ssize_t, block=Py_ssize_t)
cpdef Py_ssize_t lz4_frame_end(const unsigned char[::1] data) noexcept

@cython.locals(offset_delta=cython.longlong, key_size=cython.longlong, count=cython.longlong, problem=cython.int)
cdef inline (int, Py_ssize_t, long long, long long) _walk_fields(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, Py_ssize_t index, long long headers_left
) noexcept nogil

@cython.locals(
    byte=cython.longlong, size=cython.longlong, end=Py_ssize_t, delta_ms=cython.longlong, offset_delta=cython.longlong,
)
cdef inline (long long, long long, Py_ssize_t, Py_ssize_t) _scan_deltas(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t body_end
) noexcept nogil

@cython.locals(byte=cython.longlong, key_size=cython.longlong, key_position=Py_ssize_t, size=cython.longlong)
cdef inline (Py_ssize_t, long long, Py_ssize_t, long long) _scan_fields(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end
) noexcept nogil

@cython.locals(size=cython.longlong)
cdef inline (int, Py_ssize_t) _skip_headers(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, long long count
) noexcept nogil

@cython.locals(size=cython.longlong)
cdef inline (long long, Py_ssize_t) _skip_field(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end
) noexcept nogil

@cython.locals(number=cython.ulonglong, byte=cython.ulonglong, shift=cython.int)
cdef inline (long long, Py_ssize_t) _read_varint(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, int shift_max
) noexcept nogil
