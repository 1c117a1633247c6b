"""The chart as Helm itself renders it, and what Kubernetes says of the result; nothing is fetched."""

import copy
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from tests.support.shared import ROOT, lacking

CHART = ROOT / "helm" / "llm-gateway"
RELEASE = "prod"
NAMESPACE = "ai"
SHARED_STORES: dict[str, Any] = {
    "state": {"secret": "redis"},
    "database": {"secret": "postgres", "key": "uri"},
}
Resource = dict[str, Any]
EVERYTHING: dict[str, Any] = {
    "replicas": 3,
    "workers": 2,
    "image": {"digest": "sha256:" + "0" * 64, "pullSecrets": ["registry"]},
    "config": {"gateway.yaml": {"server": {"max_in_flight": 500}}},
    "restartOnConfigChange": True,
    "stores": SHARED_STORES,
    "admin": {"secret": "admin"},
    "secrets": {
        "env": {"OPENAI_API_KEY": {"secret": "providers", "key": "openai"}},
        "envFrom": ["more"],
        "files": {"acme": "acme-keys"},
    },
    "environment": {"GATEWAY_TELEMETRY__LOG_LEVEL": "debug"},
    "service": {"annotations": {"note": "x"}},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-buffering": "off"},
        "hosts": ["llm.example.com", "*.llm.example.com"],
        "tls": [{"secretName": "tls", "hosts": ["llm.example.com"]}],
    },
    "autoscaling": {"enabled": True},
    "networkPolicy": {
        "from": [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "10.0.0.0/8"}}],
        "admin": {"podLabels": {"app": "prometheus"}},
        "extraEgress": [{"ports": [{"port": 8000, "protocol": "TCP"}]}],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "serviceAccount": {"annotations": {"note": "x"}},
    "podAnnotations": {"note": "x"},
    "podLabels": {"team": "x"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
}
"""Values that ask for every part of the chart."""


class Refused(AssertionError):
    """The chart takes these values not; says what Helm prints."""


def render(values: Mapping[str, Any] | None = None, release: str = RELEASE) -> list[Resource]:
    """Return the resources of a release, in the order of the files; `Refused` says why there are none."""
    helm = _helm()
    texts: dict[str, str]
    with helm.Chart.load(CHART) as chart:
        try:
            texts = chart.render(dict(values or {}), name=release, namespace=NAMESPACE)
        except helm.HelmError as error:
            raise Refused(str(error)) from error
    files = [text for name, text in sorted(texts.items()) if name.endswith(".yaml")]
    found = [document for text in files for document in yaml.safe_load_all(text)]
    return [cast("Resource", document) for document in found if document is not None]


def notes(values: Mapping[str, Any] | None = None) -> str:
    """Return what is printed after an installation."""
    helm = _helm()
    with helm.Chart.load(CHART) as chart:
        texts: dict[str, str] = chart.render(dict(values or {}), name=RELEASE, namespace=NAMESPACE)
    return texts["llm-gateway/templates/NOTES.txt"]


def complaints() -> list[str]:
    """Return what `helm lint --strict` has to say, below advice."""
    report = _helm().lint(CHART, strict=True)
    said = [each["error"] for each in report["messages"] if each["severity"] > 1]
    return [*report["errors"], *said]


def over(values: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return values with others in the place of some."""
    return {**copy.deepcopy(dict(values)), **more}


def one(resources: Sequence[Resource], kind: str, name: str | None = None) -> Resource:
    """Return the only resource of a kind, or the one of that name."""
    found = [
        each
        for each in resources
        if each["kind"] == kind and name in {None, each["metadata"]["name"]}
    ]
    assert len(found) == 1, f"{len(found)} of kind {kind}"
    return found[0]


def kinds(resources: Sequence[Resource]) -> set[str]:
    """Return the kinds that are there."""
    return {each["kind"] for each in resources}


def validate(resource: Resource, version: str) -> None:
    """Let the strict schema of a Kubernetes version read a resource; fails where it is refused."""
    kubernetes = pytest.importorskip("kubernetes_validate")
    kubernetes.validate(resource, version, strict=True)


def container(resources: Sequence[Resource]) -> Resource:
    """Return the only container of the deployment."""
    (found,) = one(resources, "Deployment")["spec"]["template"]["spec"]["containers"]
    return cast("Resource", found)


def plain_environ(resources: Sequence[Resource], secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the container, with the values that its Secrets hold as `name/key`."""
    found: dict[str, str] = {}
    for variable in container(resources)["env"]:
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        assert (reference is None) == ("value" in variable)
        found[variable["name"]] = (
            variable["value"]
            if reference is None
            else secrets[f"{reference['name']}/{reference['key']}"]
        )
    return found


def mount(config_map: Resource, folder: Path, version: int = 1) -> Path:
    """Lay a ConfigMap into a folder as the kubelet does, in the place of an older version.

    Names are links into `..data`, which is a link to a hidden folder and is replaced in one step.
    """
    data, own = config_map["data"], folder / f"..2026_11_30_12_00_00.{version}"
    own.mkdir(parents=True)
    for name, text in data.items():
        (own / name).write_text(text, encoding="utf-8")
    link = folder / "..data"
    old = link.resolve() if link.is_symlink() else None
    (folder / "..data_tmp").symlink_to(own.name)
    (folder / "..data_tmp").rename(link)
    for name in data:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data", name))
    for each in folder.iterdir():
        if each.is_symlink() and not each.exists():
            each.unlink()
    if old is not None:
        shutil.rmtree(old)
    return folder


def _helm() -> Any:
    try:
        import helm_python
    except ImportError:
        lacking("helm-python-sdk")
    return helm_python
