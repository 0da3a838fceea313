"""Number of histories to try: DIFFERENTIAL_EXAMPLES, by default 100."""

import os

FIXED_EXAMPLES = 100

EXAMPLES = int(os.environ.get("DIFFERENTIAL_EXAMPLES", FIXED_EXAMPLES))
#: By default a run sends the same requests each time.
IS_FIXED = "DIFFERENTIAL_EXAMPLES" not in os.environ
