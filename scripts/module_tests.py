"""What the tests of the modules for Python and Node.js share."""

import os


def environment(build, **more):
    """That of a test on the pair of tiny models in the build folder `build`. Neither the user's cache
    nor his settings are touched."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("OUTRIDER_")}
    return {**own, "OUTRIDER_TINY": str(build / "tests"),
            "OUTRIDER_CACHE": str(build / "tests" / "cache"), "OUTRIDER_PROBE_BUDGET_MS": "300",
            "OMP_WAIT_POLICY": "passive", **more}
