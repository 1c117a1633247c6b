"""LiteLLM's proxy, in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import payload
from benchmarks.subjects import packages
from benchmarks.subjects.base import Launch

_KEY: Final = "sk-bench"
_CONFIG: Final = """
model_list:
{models}
general_settings:
  master_key: {key}
litellm_settings:
  telemetry: false
  request_timeout: 120
"""


class LiteLLM:
    name = "litellm"
    label = "LiteLLM (Python)"

    def launch(self, folder: Path, port: int, upstream_port: int) -> Launch | None:
        program = packages.python_program("litellm", "litellm")
        parameters = f"api_base: http://127.0.0.1:{upstream_port}/v1, api_key: sk-upstream"
        models = "\n".join(
            f"  - {{model_name: {name}, litellm_params: {{model: openai/{name}, {parameters}}}}}"
            for name in payload.MODELS
        )
        config = folder / "litellm.yaml"
        config.write_text(_CONFIG.format(models=models, key=_KEY))
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
        return Launch(
            [str(program), "--config", str(config), *arguments],
            environment={
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_MODE": "PRODUCTION",
                "LITELLM_LOG": "ERROR",
            },
            folder=folder,
            ready_path="/health/liveliness",
            ready_timeout_s=90.0,
            headers={"authorization": f"Bearer {_KEY}"},
        )

    def install(self) -> None:
        packages.install_python("litellm", ["litellm[proxy]"])
