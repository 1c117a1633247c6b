"""For authors of middleware: run a chain without a server, and check a class against what every kind promises.

from gateway.testing import Conformance, failing, run, saying

class TestStamp(Conformance):
    middleware = Stamp
    options = {"text": "hi"}

def test_stamps_the_request() -> None:
    done = run(Stamp, {"text": "hi"}, model=saying("hello"))
    assert done.asked[0]["user"] == "hi"
"""

from gateway.testing.conformance import Conformance
from gateway.testing.runner import Done, Script, failing, run, running, saying, sending

__all__ = ["Conformance", "Done", "Script", "failing", "run", "running", "saying", "sending"]
