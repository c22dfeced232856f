"""The Helm chart: linted and rendered by a real helm where there is one, and about settings that there are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver import __version__
from apiserver.settings.settings import ENVIRONMENT_PREFIX, Settings, setting_fields
from apiserver.settings.sources import load
from tests.deployment.compose import ROOT

CHART = ROOT / "deploy" / "helm" / "events-apiserver"
HELM = shutil.which("helm", path=os.pathsep.join([os.environ["PATH"], str(Path.home() / "go" / "bin")]))
SECRET = "0123456789abcdef0123456789abcdef"

needs_helm = pytest.mark.skipif(HELM is None, reason="no helm: go install helm.sh/helm/v3/cmd/helm@latest makes it")

EMBEDDED: dict[str, Any] = {}
ENGINES: dict[str, Any] = {
    "replicas": 3,
    "engines": {
        "enabled": True,
        "events": "elasticsearch://elastic@elasticsearch:9200/events",
        "documents": "mongodb://apiserver@mongodb:27017/apiserver",
    },
    "secrets": {"values": {"token_secret": SECRET, "events_password": "p", "documents_password": "q"}},
    "tls": {"secretName": "certificate"},
    "settings": {"max_body_bytes": 16_777_216, "durability": "fsync", "viewer": False},
    "persistence": {"storageClass": "shared"},
}


def helm(tmp_path: Path, values: dict[str, Any], *command: str) -> subprocess.CompletedProcess[str]:
    """What helm says to a command about the chart with these values."""
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    assert HELM is not None
    return subprocess.run(
        [HELM, *command, str(CHART), "--values", str(tmp_path / "values.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )


def rendered(tmp_path: Path, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What the cluster gets, by kind."""
    answer = helm(tmp_path, values, "template", "a-release")
    assert answer.returncode == 0, answer.stderr
    found = [one for one in yaml.safe_load_all(answer.stdout) if one]
    assert len({one["kind"] for one in found}) == len(found)
    return {one["kind"]: one for one in found}


def container(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    [one] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(one)


def settings_of(found: dict[str, dict[str, Any]]) -> Settings:
    """The settings of a server that is started like this, with the secrets that the chart makes."""
    environment = {one["name"]: one["value"] for one in container(found)["env"]}
    [source] = container(found)["envFrom"]
    if "Secret" in found:
        assert source["secretRef"]["name"] == found["Secret"]["metadata"]["name"]
        environment |= found["Secret"]["stringData"]
    known = {ENVIRONMENT_PREFIX + item.name.upper() for item in setting_fields()}
    assert environment.keys() <= known
    return load(environ=environment)


@needs_helm
@pytest.mark.parametrize("values", [EMBEDDED, ENGINES], ids=["embedded", "engines"])
def test_helm_finds_nothing_wrong(tmp_path: Path, values: dict[str, Any]) -> None:
    answer = helm(tmp_path, values, "lint", "--strict")
    assert answer.returncode == 0, answer.stdout


@needs_helm
def test_one_server_with_its_own_stores(tmp_path: Path) -> None:
    found = rendered(tmp_path, EMBEDDED)
    assert found.keys() == {"PersistentVolumeClaim", "Service", "Deployment"}
    assert (found["Deployment"]["spec"]["replicas"], found["Deployment"]["spec"]["strategy"]["type"]) == (1, "Recreate")
    assert found["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert settings_of(found) == Settings(log_format="json")
    assert container(found)["image"] == f"events-apiserver:{__version__}"
    for name, path in (("startup", "/livez"), ("liveness", "/livez"), ("readiness", "/readyz")):
        assert container(found)[f"{name}Probe"]["httpGet"] == {"path": path, "port": "api", "scheme": "HTTP"}


@needs_helm
def test_many_servers_on_engines_by_tls(tmp_path: Path) -> None:
    found = rendered(tmp_path, ENGINES)
    assert found.keys() == {"PersistentVolumeClaim", "Service", "Deployment", "Secret", "PodDisruptionBudget"}
    assert found["Deployment"]["spec"]["replicas"] == 3
    assert found["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteMany"]
    settings = settings_of(found)
    assert (settings.events, settings.documents) == (ENGINES["engines"]["events"], ENGINES["engines"]["documents"])
    assert (settings.token_secret, settings.events_password, settings.documents_password) == (SECRET, "p", "q")
    assert (settings.max_body_bytes, settings.durability, settings.viewer) == (16_777_216, "fsync", False)
    assert (settings.tls_cert, settings.tls_key) == ("/tls/tls.crt", "/tls/tls.key")
    assert {one["mountPath"] for one in container(found)["volumeMounts"]} == {"/data", "/tmp", "/tls"}
    assert container(found)["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"


@needs_helm
def test_a_container_is_kept_within_bounds(tmp_path: Path) -> None:
    found = rendered(tmp_path, EMBEDDED)
    pod = found["Deployment"]["spec"]["template"]["spec"]
    user = re.search(r"--uid (\d+)", (ROOT / "Dockerfile").read_text())
    assert user is not None
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] == int(user[1])
    assert not pod["automountServiceAccountToken"]
    assert container(found)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container(found)["resources"]["limits"]["memory"]
    ports = {one["name"]: one["containerPort"] for one in container(found)["ports"]}
    assert ports == {"api": Settings().port, "files": Settings().files_port}
    assert {one["targetPort"] for one in found["Service"]["spec"]["ports"]} == ports.keys()


@needs_helm
def test_what_there_is_already_is_used(tmp_path: Path) -> None:
    found = rendered(tmp_path, {"secrets": {"existing": "ours"}, "persistence": {"existingClaim": "theirs"}})
    assert found.keys() == {"Service", "Deployment"}
    assert container(found)["envFrom"] == [{"secretRef": {"name": "ours", "optional": True}}]
    volumes = found["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "theirs"}} in volumes


@needs_helm
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"replicas": 2}, "more than one server needs Elasticsearch and MongoDB"),
        ({"engines": {"enabled": True}}, "give the addresses of both"),
        ({**ENGINES, "secrets": {}}, "servers on engines need one"),
        ({"replica": 2}, "replica"),
        ({"settings": {"Port": 1}}, "Port"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, values: dict[str, Any], message: str) -> None:
    answer = helm(tmp_path, values, "template", "a-release")
    assert answer.returncode != 0
    assert message in answer.stderr


def test_it_is_of_the_server_s_version() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert (about["version"], about["appVersion"]) == (__version__, __version__)
