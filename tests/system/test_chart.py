"""The chart renders what Kubernetes takes and what the gateway promises; odd values stay what they are."""

import copy
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config.settings import variables
from tests.support.chart import (
    CHART,
    NAMESPACE,
    SHARED_STORES,
    Refused,
    Resource,
    complaints,
    container,
    kinds,
    mount,
    notes,
    one,
    plain_environ,
    render,
    validate,
)
from tests.support.gateway import http, run_cli, run_gateway
from tests.support.shared import ROOT

pytestmark = pytest.mark.bug("K42")

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
ODD_TEXTS = [
    "plain",
    "say \"hi\" and 'bye'",
    '{{ .Values.admin }} {{ fail "no" }} {{`',
    "Grüße, 世界 🚀 \ufeff \x07",
    "line one\nline two\n  indented\n",
    "\n\n  starts late, ends late\n\n\n",
    "\ttab\r\nreturn",
    "yes",
    "null",
    "1e3",
    "0x1F",
    "2027-01-01",
    ": - # & * ! | > % @",
    "$HOME ${HOME} $(HOME)",
    "\\n \\u0041 \\",
    "x" * 1000,
    "",
]


def over(values: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**copy.deepcopy(values), **more}


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


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_arrive_as_they_were_written(text: str) -> None:
    tree: dict[str, Any] = {
        "models": {text or "e": {"nested": [text, {"deep": text}], "empty": {}, "none": None}}
    }
    values: dict[str, Any] = {
        "config": {"tree.yaml": tree, "text.yaml": f"stacks: {{}} # {text[:9].split()}\n"},
        "environment": {"ODD": text},
        "podAnnotations": {"odd": text},
        "serviceAccount": {"annotations": {"odd": text}},
        "nodeSelector": {"odd": text},
        "stores": {
            "state": {"to": [{"podSelector": {"matchLabels": {"odd": text}}}], "secret": "s"}
        },
    }
    resources = render(values)
    pod = one(resources, "Deployment")["spec"]["template"]
    data = one(resources, "ConfigMap")["data"]
    egress = one(resources, "NetworkPolicy")["spec"]["egress"]

    assert yaml.safe_load(data["tree.yaml"]) == tree
    assert data["text.yaml"] == values["config"]["text.yaml"]
    assert plain_environ(resources, {"s/url": ""})["ODD"] == text
    assert pod["metadata"]["annotations"]["odd"] == text
    assert pod["spec"]["nodeSelector"]["odd"] == text
    assert one(resources, "ServiceAccount")["metadata"]["annotations"]["odd"] == text
    assert egress[-1]["to"][0]["podSelector"]["matchLabels"]["odd"] == text


def test_numbers_keep_their_digits() -> None:
    tree = {"server": {"body_limit_bytes": 20_971_520, "upload_limit_bytes": 536_870_912}}
    data = one(render({"config": {"a.yaml": tree}}), "ConfigMap")["data"]

    assert data["a.yaml"].split() == [
        "server:",
        "body_limit_bytes:",
        "20971520",
        "upload_limit_bytes:",
        "536870912",
    ]


@pytest.mark.parametrize(
    "values",
    [
        {name: {}}
        for name in (
            "config",
            "secrets",
            "resources",
            "podLabels",
            "affinity",
            "environment",
            "stores",
        )
    ],
    ids=str,
)
def test_an_empty_map_means_the_defaults(values: dict[str, Any]) -> None:
    assert render(values) == render()


@pytest.mark.parametrize("length", [1, 40, 41, 52, 53])
def test_long_names_are_cut_and_stay_apart(length: int) -> None:
    twins = [render(EVERYTHING, release="r" * (length - 1) + last) for last in "ab"]
    names = [{each["metadata"]["name"] for each in twin} for twin in twins]

    assert not names[0] & names[1]
    for resource in twins[0]:
        assert len(resource["metadata"]["name"]) <= 63
        assert not resource["metadata"]["name"].endswith("-")
        assert all(len(value) <= 63 for value in resource["metadata"]["labels"].values())
        if resource["kind"] != "ServiceMonitor":
            validate(resource, "1.37")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"replicas": 2}, "2 replicas need stores that all replicas share"),
    ({"replicas": 2, "stores": {"state": {"secret": "redis"}}}, "stores.database.secret"),
    ({"replicas": 2, "stores": {"database": {"secret": "pg"}}}, "stores.state.secret"),
    ({"autoscaling": {"enabled": True}}, "several replicas need stores"),
    (
        over(EVERYTHING, autoscaling={"enabled": True, "minReplicas": 9, "maxReplicas": 3}),
        "is above",
    ),
    (over(EVERYTHING, data={"volumeClaim": "disk"}), "names another database"),
    (over(EVERYTHING, existingConfigMap="mine"), "stands instead of config"),
    (over(EVERYTHING, networkPolicy={"admin": {"namespace": ""}}), "Prometheus scrapes from"),
    ({"config": {"a.yaml": {"server": {"port": 80}}}}, "write service.port"),
    ({"config": {"a.yaml": "server: {drain_s: 5}"}}, "write drain.runningSeconds"),
    ({"config": {"a.yaml": {"server": {"admin": {}}}}}, "write admin.secret"),
    ({"config": {"a.yaml": "stores: {state: memory}"}}, "write stores.state.secret"),
    ({"config": {"a.yaml": "a: [unclosed"}}, "is no YAML map"),
    (
        {"config": {"a.yaml": {"providers": {"o": {"api_key": "sk-1"}}}}},
        "o: api_key: is written in clear",
    ),
    ({"config": {"a.yaml": "providers: {o: {api_keys: ['env:A', sk-1]}}"}}, "is written in clear"),
    ({"config": {"a.yaml": {"providers": {"o": {"api_key": "env:A?sk-1"}}}}}, "in clear"),
    (
        {"config": {"a.yaml": {"tenants": {"t": {"keys": [{"id": "a", "secret": "k"}]}}}}},
        "in clear",
    ),
    ({"config": {"a.yaml": {"providers": {"o": {"headers": {"Authorization": "B"}}}}}}, "in clear"),
    ({"config": {"a.yaml": {"models": {"a": "b\u0085c"}}}}, "Helm cannot write"),
    ({"podAnnotations": {"a": "b\u0085c"}}, "/podAnnotations/a"),
    ({"config": {"a.yaml": {"models": {"a": "b\x7fc"}}}}, "Helm cannot write"),
    ({"config": {"a.yaml": {"models": {"a\u0085": "b"}}}}, "Helm cannot write"),
    ({"config": {"a.yaml": {"models": {"a" * 1100: "b"}}}}, "Helm cannot write"),
    ({"config": {"a.yaml": "# \u0085\nmodels: {}"}}, "Helm cannot write"),
    ({"environment": {"GATEWAY_SERVER__PORT": "80"}}, "is set by other values"),
    ({"environment": {"REDIS_URL": "redis://"}}, "is set by other values"),
    ({"environment": {"OPENAI_API_KEY": "sk-1"}}, "write it under secrets.env"),
    ({"replicaCount": 2}, "'replicaCount' not allowed"),
    ({"stores": {"state": {"url": "redis://u:p@h"}}}, "'url' not allowed"),
    ({"image": {"tag": "a b"}}, "/image/tag"),
    ({"replicas": "2"}, "/replicas"),
    ({"config": {"tenants/acme.yaml": {"a": 1}}}, "tenants/acme.yaml"),
    ({"config": {"a.yml": {"a": 1}}}, "a.yml"),
    ({"secrets": {"env": {"A": "sk-1"}}}, "/secrets/env/A"),
    ({"drain": {"marginSeconds": 0}}, "/drain/marginSeconds"),
    ({"ingress": {"enabled": True}}, "/ingress/hosts"),
    ({"ingress": {"hosts": ['a"b']}}, "/ingress/hosts/0"),
    ({"networkPolicy": {"from": [{}]}}, "/networkPolicy/from/0"),
    ({"fullnameOverride": "x" * 53}, "/fullnameOverride"),
    ({"admin": {"port": 4000}}, "/admin/port"),
]


@pytest.mark.parametrize(("values", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_work_is_refused_with_words(values: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=re.escape(words)) as refused:
        render(values)

    assert "sk-1" not in str(refused.value)


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


@pytest.mark.fault("L-1")
@pytest.mark.slow
def test_the_rendered_pod_serves_passes_its_probes_and_leaves(tmp_path: Path) -> None:
    values = {
        "config": CONFIG,
        "admin": {"secret": "admin"},
        "secrets": {"env": {"ACME": {"secret": "keys", "key": "acme"}}},
        "drain": {"announceSeconds": 0},
    }
    resources = render(values)
    secrets = {"keys/acme": KEY, "admin/key": "sk-admin-0123456789abcdef"}
    own = container(resources)
    folder = mount(one(resources, "ConfigMap"), tmp_path / "config")
    arguments = [str(folder) if each == "/config" else each for each in own["args"][1:]]
    free = {f"GATEWAY_SERVER__{name}": _free_port() for name in ("PORT", "ADMIN__PORT")}
    environ = {**plain_environ(resources, secrets), **free, "XDG_DATA_HOME": str(tmp_path / "data")}

    assert own["args"] == ["serve", "--config", "/config"]
    checked = run_cli("check", str(folder), folder=tmp_path, environ=environ)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with (
        run_gateway(None, tmp_path, arguments=arguments, environ=environ) as gateway,
        http() as client,
    ):
        urls = {
            "http": f"http://127.0.0.1:{free['GATEWAY_SERVER__PORT']}",
            "admin": f"http://127.0.0.1:{free['GATEWAY_SERVER__ADMIN__PORT']}",
        }
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            get = own[probe]["httpGet"]
            assert client.get(urls[get["port"]] + get["path"]).status_code == 200
        answer = client.post(
            f"{urls['http']}/v1/chat/completions",
            headers={"authorization": f"Bearer {KEY}"},
            json={"model": "echo", "messages": [{"role": "user", "content": "hi"}]},
        )
        assert answer.status_code == 200
        assert gateway.process.stop(signal.SIGTERM) == 0


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return str(probe.getsockname()[1])
