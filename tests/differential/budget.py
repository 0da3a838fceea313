"""How much is tried: DIFFERENTIAL_EXAMPLES histories, 150 when it is not set."""

import os

FIXED_EXAMPLES = 150

EXAMPLES = int(os.environ.get("DIFFERENTIAL_EXAMPLES", FIXED_EXAMPLES))
#: Without a wish of its own a run sends the same requests each time.
IS_FIXED = "DIFFERENTIAL_EXAMPLES" not in os.environ
