"""The chart renders what Kubernetes takes and what the gateway promises; odd values stay what they are."""

import signal
import socket
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from gateway.config.settings import variables
from tests.support.chart import (
    CHART,
    EVERYTHING,
    NAMESPACE,
    SHARED_STORES,
    Resource,
    complaints,
    container,
    kinds,
    mount,
    notes,
    one,
    over,
    plain_environ,
    render,
    validate,
)
from tests.support.gateway import http, run_cli, run_gateway, wait_for
from tests.support.redis_server import redis_server
from tests.support.shared import ROOT

pytestmark = pytest.mark.bug("K42")


@pytest.mark.parametrize("version", ["1.27", "1.31", "1.37"])
@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["nothing", "everything"])
def test_every_resource_is_one_that_kubernetes_takes(values: dict[str, Any], version: str) -> None:
    resources = render(values)

    for resource in resources:
        assert resource["metadata"]["namespace"] == NAMESPACE
        if resource["kind"] != "ServiceMonitor":
            validate(resource, version)


def test_what_is_asked_for_is_there_and_nothing_else() -> None:
    always = {"Deployment", "Service", "ServiceAccount", "NetworkPolicy"}

    assert kinds(render()) == always
    assert kinds(render(EVERYTHING)) == always | {
        "ConfigMap",
        "HorizontalPodAutoscaler",
        "Ingress",
        "PodDisruptionBudget",
        "ServiceMonitor",
    }


def test_helm_has_nothing_to_complain_of() -> None:
    assert complaints() == []


def test_the_chart_and_the_product_have_one_version() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert f'\nversion = "{chart["appVersion"]}"\n' in project


def test_each_selector_finds_the_pods_and_only_those_of_this_release() -> None:
    resources = render(over(EVERYTHING, podLabels={"app.kubernetes.io/instance": "other"}))
    labels = one(resources, "Deployment")["spec"]["template"]["metadata"]["labels"]
    spec = one(resources, "Deployment")["spec"]
    services = [each for each in resources if each["kind"] == "Service"]
    selectors = [
        spec["selector"]["matchLabels"],
        one(resources, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        one(resources, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        *(each["spec"]["selector"] for each in services),
    ]

    for selector in selectors:
        assert selector["app.kubernetes.io/instance"] == "prod"
        assert selector.items() <= labels.items()


def test_clients_and_operators_have_services_and_ports_apart() -> None:
    resources = render(EVERYTHING)
    data = one(resources, "Service", "prod-llm-gateway")["spec"]
    admin = one(resources, "Service", "prod-llm-gateway-admin")["spec"]
    (rule, wildcard) = one(resources, "Ingress")["spec"]["rules"]

    assert [port["targetPort"] for port in data["ports"]] == ["http"]
    assert [port["targetPort"] for port in admin["ports"]] == ["admin"]
    assert admin["type"] == "ClusterIP"
    assert wildcard["host"] == "*.llm.example.com"
    assert rule["http"]["paths"][0]["backend"]["service"] == {
        "name": "prod-llm-gateway",
        "port": {"name": "http"},
    }


def test_prometheus_asks_the_admin_service_alone() -> None:
    resources = render(EVERYTHING)
    selector = one(resources, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    services = [each for each in resources if each["kind"] == "Service"]

    assert [
        each["metadata"]["name"]
        for each in services
        if selector.items() <= each["metadata"]["labels"].items()
    ] == ["prod-llm-gateway-admin"]
    assert one(resources, "ServiceMonitor")["metadata"]["labels"]["release"] == "prometheus"


def test_the_admin_port_is_open_to_the_named_namespace_alone() -> None:
    (data, admin) = one(render(EVERYTHING), "NetworkPolicy")["spec"]["ingress"]

    assert [port["port"] for port in data["ports"]] == ["http"]
    assert [port["port"] for port in admin["ports"]] == ["admin"]
    assert admin["from"] == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
            "podSelector": {"matchLabels": {"app": "prometheus"}},
        }
    ]


def test_pods_reach_names_providers_and_their_stores_but_no_metadata_service() -> None:
    spec = one(render(EVERYTHING), "NetworkPolicy")["spec"]
    opened = [[port["port"] for port in rule["ports"]] for rule in spec["egress"]]
    (_, https, *_) = spec["egress"]

    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert opened == [[53, 53], [443], [6379], [5432], [8000]]
    assert https["to"] == [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}},
        {"ipBlock": {"cidr": "::/0", "except": ["fd00:ec2::/32"]}},
    ]
    assert [
        rule["ports"][0]["port"] for rule in one(render(), "NetworkPolicy")["spec"]["egress"]
    ] == [
        53,
        443,
    ]


def test_the_pod_runs_without_rights_and_writes_only_where_it_may() -> None:
    resources = render(EVERYTHING)
    pod = one(resources, "Deployment")["spec"]["template"]["spec"]
    own = container(resources)

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert f"--uid {pod['securityContext']['runAsUser']} " in (ROOT / "Dockerfile").read_text()
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert own["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = [each["mountPath"] for each in own["volumeMounts"] if not each.get("readOnly")]
    assert writable == ["/data", "/tmp"]
    assert all("subPath" not in each for each in own["volumeMounts"])


@pytest.mark.fault("L-2")
@pytest.mark.parametrize(
    ("announce", "running", "margin", "least"), [(5, 120, 10, 135), (0.3, 0.5, 5, 7), (0, 0, 5, 5)]
)
def test_the_pod_lives_longer_than_it_drains(
    announce: float, running: float, margin: int, least: int
) -> None:
    drain = {
        "announceSeconds": announce,
        "runningSeconds": running,
        "marginSeconds": margin,
    }
    resources = render({"drain": drain})
    environ = plain_environ(resources, {})
    pod = one(resources, "Deployment")["spec"]["template"]["spec"]

    assert pod["terminationGracePeriodSeconds"] == least
    assert float(environ["GATEWAY_SERVER__ANNOUNCE_S"]) == announce
    assert float(environ["GATEWAY_SERVER__DRAIN_S"]) == running
    assert "lifecycle" not in container(resources)


def test_no_pod_goes_before_another_is_ready_where_stores_are_shared() -> None:
    spec = one(render(over(EVERYTHING, autoscaling={"enabled": False})), "Deployment")["spec"]

    assert spec["replicas"] == 3
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert one(render(), "Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_the_autoscaler_owns_the_number_of_pods() -> None:
    resources = render(EVERYTHING)
    scaler = one(resources, "HorizontalPodAutoscaler")["spec"]

    assert "replicas" not in one(resources, "Deployment")["spec"]
    assert scaler["scaleTargetRef"]["name"] == one(resources, "Deployment")["metadata"]["name"]
    assert one(resources, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_a_changed_configuration_restarts_pods_only_when_asked() -> None:
    def notes_of(values: dict[str, Any]) -> dict[str, str]:
        meta: Resource = one(render(values), "Deployment")["spec"]["template"]["metadata"]
        return meta.get("annotations", {})

    before: dict[str, Any] = {"config": {"a.yaml": {"models": {}}}}
    after: dict[str, Any] = {"config": {"a.yaml": {"stacks": {}}}}

    assert notes_of(before) == notes_of(after) == {}
    restarting = [notes_of({**each, "restartOnConfigChange": True}) for each in (before, after)]
    assert restarting[0] != restarting[1]


def test_the_notes_say_what_is_for_a_trial_alone() -> None:
    assert "the first key is in the log" in notes()
    assert "one pod, and a short pause" in notes()
    assert "pause" not in notes(EVERYTHING)


def test_every_variable_of_the_pod_is_one_that_the_gateway_reads() -> None:
    own = [each["name"] for each in container(render(EVERYTHING))["env"]]
    ours = {name for name in own if name.startswith("GATEWAY_")} - {"GATEWAY_ADMIN_KEY"}

    assert ours <= set(variables())


CONFIG: dict[str, Any] = {
    "providers.yaml": {"providers": {"echo": {"kind": "echo"}}},
    "models.yaml": "models: {echo: {targets: [{provider: echo, model: echo}]}}\n",
    "tenants.yaml": {
        "tenants": {"acme": {"keys": [{"id": "web", "secret": "env:ACME"}], "models": ["echo"]}}
    },
}
KEY = "sk-chart-0123456789abcdefghij"


SECRETS = {"keys/acme": KEY, "admin/key": "sk-admin-0123456789abcdef"}


def pod(**more: Any) -> dict[str, Any]:
    """Return values of a pod that can be run here."""
    env = {"ACME": {"secret": "keys", "key": "acme"}}
    return {
        "config": CONFIG,
        "admin": {"secret": "admin"},
        "secrets": {"env": env},
        "drain": {"announceSeconds": 0},
        **more,
    }


@contextmanager
def run_pod(
    resources: list[Resource], folder: Path, secrets: Mapping[str, str] = SECRETS
) -> Generator[dict[str, str]]:
    """Run what the deployment says with free ports; yields the address of each named port."""
    config = mount(one(resources, "ConfigMap"), folder / "config")
    own = container(resources)
    arguments = [str(config) if each == "/config" else each for each in own["args"][1:]]
    free = {f"GATEWAY_SERVER__{name}": _free_port() for name in ("PORT", "ADMIN__PORT")}
    environ = {**plain_environ(resources, secrets), **free, "XDG_DATA_HOME": str(folder / "data")}
    checked = run_cli("check", str(config), folder=folder, environ=environ)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with run_gateway(None, folder, arguments=arguments, environ=environ) as gateway:
        yield {
            "http": f"http://127.0.0.1:{free['GATEWAY_SERVER__PORT']}",
            "admin": f"http://127.0.0.1:{free['GATEWAY_SERVER__ADMIN__PORT']}",
        }
        assert gateway.process.stop(signal.SIGTERM) == 0


def ask(client: httpx2.Client, url: str, model: str) -> int:
    answer = client.post(
        f"{url}/v1/chat/completions",
        headers={"authorization": f"Bearer {KEY}"},
        json={"model": model, "messages": [{"role": "user", "content": "hi"}]},
    )
    return answer.status_code


@pytest.mark.fault("L-1")
@pytest.mark.slow
def test_the_rendered_pod_serves_passes_its_probes_and_leaves(tmp_path: Path) -> None:
    resources = render(pod())
    own = container(resources)

    assert own["args"] == ["serve", "--config", "/config"]
    with run_pod(resources, tmp_path) as urls, http() as client:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            get = own[probe]["httpGet"]
            assert client.get(urls[get["port"]] + get["path"]).status_code == 200
        assert ask(client, urls["http"], "echo") == 200


@pytest.mark.fault("L-13")
@pytest.mark.slow
def test_a_changed_config_map_arrives_in_the_running_pod(tmp_path: Path) -> None:
    models = "models: {second: {targets: [{provider: echo, model: echo}]}}"
    tenants = {"acme": {"keys": [{"id": "web", "secret": "env:ACME"}], "models": ["second"]}}
    changed = {**CONFIG, "models.yaml": models, "tenants.yaml": {"tenants": tenants}}

    with run_pod(render(pod()), tmp_path) as urls, http() as client:
        assert ask(client, urls["http"], "second") == 404
        mount(one(render(pod(config=changed)), "ConfigMap"), tmp_path / "config", version=2)
        wait_for(lambda: ask(client, urls["http"], "second") == 200, 20)
        assert ask(client, urls["http"], "echo") == 404


@pytest.mark.bug("K18")
@pytest.mark.slow
def test_two_rendered_pods_count_together(tmp_path: Path, postgres_url: str) -> None:
    chain = [{"limits": {"requests": {"per_day": 5}}}]
    tenant = {"keys": [{"id": "web", "secret": "env:ACME"}], "models": ["echo"], "chain": chain}
    config = {**CONFIG, "tenants.yaml": {"tenants": {"acme": tenant}}}
    resources = render(pod(config=config, replicas=2, stores=SHARED_STORES))
    with redis_server(tmp_path / "redis") as redis:
        stores = {"redis/url": redis.url, "postgres/uri": postgres_url}
        secrets = {**SECRETS, **stores}
        with (
            run_pod(resources, tmp_path / "one", secrets) as one_pod,
            run_pod(resources, tmp_path / "two", secrets) as other,
            http() as client,
        ):
            answers = [ask(client, each["http"], "echo") for each in (one_pod, other) * 5]

    assert Counter(answers) == {200: 5, 429: 5}


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return str(probe.getsockname()[1])
