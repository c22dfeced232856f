"""docker-compose.yml holds what it promises, as far as that can be told without docker's engine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from ipaddress import ip_address, ip_network

import pytest

from apiserver.settings.settings import ENVIRONMENT_PREFIX, setting_fields
from apiserver.settings.sources import load
from apiserver.stores.documents.mongo.engine import MongoEngine
from apiserver.stores.engines import document_engine, event_engine
from apiserver.stores.events.elasticsearch.engine import ElasticsearchEngine
from tests.deployment.compose import PROFILES, ROOT, Service, env_file, environment, mounts, project, services

SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|_KEY")
ASSIGNABLE = {"ELASTIC_PASSWORD": "one", "MONGO_PASSWORD": "two"}
CONTAINERS = pytest.mark.parametrize("name", sorted(services()))


def test_each_profile_has_its_services() -> None:
    found = {
        profile: {name for name, service in services().items() if service["profiles"] == [profile]}
        for profile in PROFILES
    }
    assert found == {
        "default": {"apiserver"},
        "scale": {"apiserver-1", "apiserver-2", "elasticsearch", "mongodb", "gateway"},
        "web": {"web"},
    }
    assert "COMPOSE_PROFILES=default\n" in (ROOT / ".env").read_text()


@CONTAINERS
def test_a_container_is_kept_within_bounds(name: str) -> None:
    service = services()[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "unless-stopped"
    assert service["mem_limit"]
    assert service["read_only"] is (name != "web")
    assert not service.keys() & {"privileged", "network_mode", "pid", "ipc", "devices"}
    assert name == "web" or "cap_add" not in service
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


@CONTAINERS
def test_a_container_is_asked_whether_it_is_well(name: str) -> None:
    service = services()[name]
    if "build" in service:
        assert "HEALTHCHECK" in (ROOT / "Dockerfile").read_text()
    else:
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
        assert {"interval", "timeout", "start_period"} <= service["healthcheck"].keys()


@CONTAINERS
def test_images_have_versions(name: str) -> None:
    image = services()[name]["image"]
    assert re.search(r":\d+\.\d+", image) or name == "web" or "build" in services()[name]
    assert "/" not in image or name == "web"


@CONTAINERS
def test_what_is_mounted_is_there(name: str) -> None:
    for source, target, options in mounts(services()[name]):
        assert target.startswith("/")
        if source.startswith("."):
            assert (ROOT / source).is_file()
            assert options == ["ro"]
        else:
            assert source in project()["volumes"]


@CONTAINERS
def test_no_secret_is_written_down(name: str) -> None:
    service = services()[name]
    assert not [variable for variable in service.get("environment", {}) if SECRET.search(variable)]
    for variable, value in env_file(service).items():
        assert not SECRET.search(variable) or re.fullmatch(r"\$\{\w+:\?choose a password for [^}]+\}", value)


@CONTAINERS
def test_what_a_container_waits_for_starts_with_it(name: str) -> None:
    service = services()[name]
    for other, how in service.get("depends_on", {}).items():
        assert how["condition"] == "service_healthy"
        assert services()[other]["profiles"] == service["profiles"] or not how.get("required", True)


def _settings_of(service: Service) -> dict[str, str]:
    """The variables of a server, with passwords given."""
    variables = environment(service).items()
    return {name: _given(value) for name, value in variables}


def _given(value: str) -> str:
    """A value of the file with passwords given, and all else as it is by default."""
    value = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)
    return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: ASSIGNABLE[found[1]], value)


@pytest.mark.parametrize("name", ["apiserver-1", "apiserver-2"])
def test_servers_on_engines_are_configured(name: str) -> None:
    variables = _settings_of(services()[name])
    known = {f"{ENVIRONMENT_PREFIX}{field.name.upper()}" for field in setting_fields()}
    assert variables.keys() <= known
    settings = load(environ=variables)
    events, documents = event_engine(settings), document_engine(settings)
    assert isinstance(events, ElasticsearchEngine)
    assert isinstance(documents, MongoEngine)
    address = events.address
    assert (address.hosts, address.user, address.password) == (("http://elasticsearch:9200",), "elastic", "one")
    assert documents.uri == "mongodb://apiserver:two@mongodb:27017/apiserver?authSource=admin"
    assert settings.migrate_at_start is (name == "apiserver-1")


def test_servers_trust_the_address_of_the_gateway_alone() -> None:
    address = _given(services()["gateway"]["networks"]["inside"]["ipv4_address"])
    for name in ("apiserver-1", "apiserver-2"):
        assert load(environ=_settings_of(services()[name])).trusted_proxies == (ip_network(address),)
    [pool] = project()["networks"]["inside"]["ipam"]["config"]
    assert ip_address(address) in ip_network(_given(pool["subnet"]))
    assert ip_address(address) not in ip_network(_given(pool["ip_range"]))  # which others get theirs from


def test_servers_share_files_and_secrets() -> None:
    shared = [[*mounts(services()[name])] for name in ("apiserver-1", "apiserver-2")]
    assert shared == [[("data", "/data", [])]] * 2


def test_the_engines_take_the_passwords_that_the_servers_give() -> None:
    server = environment(services()["apiserver-1"])
    elasticsearch, mongodb = environment(services()["elasticsearch"]), environment(services()["mongodb"])
    assert elasticsearch["ELASTIC_PASSWORD"] == server["APISERVER_EVENTS_PASSWORD"]
    assert mongodb["MONGO_INITDB_ROOT_PASSWORD"] == server["APISERVER_DOCUMENTS_PASSWORD"]
    assert f"//{mongodb['MONGO_INITDB_ROOT_USERNAME']}@" in server["APISERVER_DOCUMENTS"]


# --- as docker compose itself reads it ---------------------------------------------------------------


def _compose() -> list[str] | None:
    """The command, of version 2 or later."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            done = subprocess.run([*command, "version"], capture_output=True, text=True, check=False)
            if done.returncode == 0 and "version 1." not in done.stdout:
                return command
    return None


def _config(option: str, profile: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = _compose()
    if command is None:
        pytest.skip("no docker compose")
    return subprocess.run(
        [*command, "--project-directory", str(ROOT), "config", option],
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "COMPOSE_PROFILES": profile, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_compose_takes_the_file() -> None:
    for profile in PROFILES:
        done = _config("--services", profile, **ASSIGNABLE)
        assert done.returncode == 0, done.stderr
        assert set(done.stdout.split()) == {
            name for name, service in services().items() if profile in service["profiles"]
        }


def test_compose_wants_passwords_where_they_are_needed() -> None:
    assert _config("--quiet", "default").returncode == 0
    assert _config("--quiet", "scale", **ASSIGNABLE).returncode == 0
    for missing in ASSIGNABLE:
        done = _config("--quiet", "scale", **{name: value for name, value in ASSIGNABLE.items() if name != missing})
        assert done.returncode != 0
        assert f"required variable {missing} is missing a value: choose a password" in done.stderr
