"""What the command line says of itself is so."""

import pytest

from gateway.__main__ import main
from gateway.cli.discover import LOCAL

WRITTEN = {
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
    "sglang": "SGLang",
}


def test_discover_names_every_kind_whose_port_it_asks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    shown = " ".join(capsys.readouterr().out.split())

    assert {row.kind for row in LOCAL} == set(WRITTEN)
    assert [name for name in WRITTEN.values() if name not in shown] == []
