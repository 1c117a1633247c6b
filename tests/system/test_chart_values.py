"""Odd values arrive in the chart's resources as they were written; what cannot work is refused with words."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.blocks import Block, fenced
from tests.support.chart import (
    EVERYTHING,
    Refused,
    container,
    kinds,
    mount,
    one,
    over,
    plain_environ,
    render,
    validate,
)
from tests.support.gateway import run_cli

pytestmark = pytest.mark.bug("K42")

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


@pytest.mark.parametrize("block", fenced("helm"), ids=lambda block: block.name)
def test_values_in_documents_are_accepted(block: Block, tmp_path: Path) -> None:
    resources = render(yaml.safe_load(block.text))

    for resource in resources:
        validate(resource, "1.37")
    if "ConfigMap" in kinds(resources):
        names = [each["name"] for each in container(resources)["env"] if "valueFrom" in each]
        environ = {name: f"sk-{name}-0123456789abcdef" for name in names if "GATEWAY" not in name}
        folder = mount(one(resources, "ConfigMap"), tmp_path / "config")
        checked = run_cli("check", str(folder), folder=tmp_path, environ=environ)
        assert checked.returncode == 0, checked.stdout + checked.stderr
