"""Options of the whole suite."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("local", deadline=None, max_examples=100)
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=200,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "local")
