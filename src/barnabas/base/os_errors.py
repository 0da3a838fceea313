"""What the operating system says about an error."""

import os


def reason_of(error: OSError) -> str:
    """Return the system's reason, such as "Connection refused", without the address that asyncio puts in its place."""
    is_of_system = error.errno is not None and error.errno > 0  # errors of name resolution are negative
    return os.strerror(error.errno or 0) if is_of_system else error.strerror or str(error)
