# The C types of key_table.py, for Cython; Python does not read this.
cimport cython

cdef long long _INT64_MAX
cdef unsigned long long _ALL_BITS, _SOME, _RANDOM, _LYGENERA, _TEDBYTES

@cython.locals(
    added_count=Py_ssize_t, index=Py_ssize_t, row=Py_ssize_t, size=cython.longlong, offset=cython.longlong,
    one=cython.ulonglong, other=cython.ulonglong, slot=Py_ssize_t,
)
cpdef (Py_ssize_t, Py_ssize_t, long long) put_rows(
    long long[::1] slots, Py_ssize_t slots_count, Py_ssize_t room_count, long long latest_offset,
    const long long[::1] secret, const unsigned char[::1] data, const long long[::1] rows, Py_ssize_t first,
    Py_ssize_t end, long long first_offset, const long long[::1] offsets, const long long[::1] key_positions,
    const long long[::1] key_sizes
) noexcept nogil

@cython.locals(row=Py_ssize_t, one=cython.ulonglong, other=cython.ulonglong)
cpdef void mark_obsolete(
    const long long[::1] slots, Py_ssize_t slots_count, long long latest_offset, const long long[::1] secret,
    const unsigned char[::1] data, Py_ssize_t first, Py_ssize_t end, const long long[::1] offsets,
    const long long[::1] key_positions, const long long[::1] key_sizes, unsigned char[::1] obsolete
) noexcept nogil

@cython.locals(slot=Py_ssize_t, step=Py_ssize_t, first=cython.longlong, second=cython.longlong)
cdef inline Py_ssize_t _find(
    const long long[::1] slots, Py_ssize_t slots_count, unsigned long long one, unsigned long long other
) noexcept nogil

@cython.locals(
    a=cython.ulonglong, b=cython.ulonglong, c=cython.ulonglong, d=cython.ulonglong, word=cython.ulonglong,
    length=cython.ulonglong, one=cython.ulonglong, _=cython.longlong,
)
cpdef (unsigned long long, unsigned long long) digest(
    const unsigned char[::1] data, Py_ssize_t position, long long size, unsigned long long secret,
    unsigned long long other_secret
) noexcept nogil

@cython.locals(word=cython.ulonglong, byte=cython.ulonglong, index=cython.int)
cdef inline unsigned long long _read_word(
    const unsigned char[::1] data, Py_ssize_t position, int size
) noexcept nogil

@cython.locals(_=cython.int)
cdef inline (unsigned long long, unsigned long long, unsigned long long, unsigned long long) _mix(
    unsigned long long a, unsigned long long b, unsigned long long c, unsigned long long d, int rounds_count
) noexcept nogil

cdef inline unsigned long long _rotate(unsigned long long word, int bits_count) noexcept nogil

cdef inline unsigned long long _cut(unsigned long long word) noexcept nogil

cdef inline long long _signed(unsigned long long word) noexcept nogil
