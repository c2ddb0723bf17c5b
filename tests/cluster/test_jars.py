"""Kafka's jars by Maven: through a proxy, and its error message if it fails."""

import subprocess
from pathlib import Path
from xml.etree.ElementTree import canonicalize

import pytest

from harness.cluster.jars import fetch_jars, with_proxies
from harness.core.errors import EnvironmentLacks
from harness.resources import recipes


def written(*proxies: str) -> str:
    return f"<settings><proxies>{''.join(f'<proxy>{proxy}</proxy>' for proxy in proxies)}</proxies></settings>"


def named(scheme: str, at: str, more: str = "") -> str:
    """A proxy as Maven's settings have it."""
    host, _, port = at.rpartition(":")
    ours = f"<id>kafka-trial-{scheme}</id><protocol>{scheme}</protocol>"
    return f"{ours}<host>{host}</host><port>{port}</port>{more}"


SECRET = "<username>me</username><password>p@ss:w/r&lt;d</password>"
PROXIES = [
    ({"https_proxy": "http://proxy:3128/"}, written(named("https", "proxy:3128"))),
    ({"HTTP_PROXY": "10.0.0.1:8080"}, written(named("http", "10.0.0.1:8080"))),
    ({"http_proxy": "proxy"}, written(named("http", "proxy:80"))),
    ({"https_proxy": "https://proxy"}, written(named("https", "proxy:443"))),
    ({"https_proxy": "http://me:p%40ss%3Aw%2Fr%3Cd@proxy:1"}, written(named("https", "proxy:1", SECRET))),
    ({"https_proxy": "me:p@ss:w%2Fr<d@proxy:1"}, written(named("https", "proxy:1", SECRET))),
    ({"https_proxy": "me@proxy:1"}, written(named("https", "proxy:1", "<username>me</username><password/>"))),
    (
        {"http_proxy": "http://plain:1", "https_proxy": "http://safe:2", "no_proxy": "localhost, .corp,*.lan,"},
        written(
            *(
                named(scheme, at, "<nonProxyHosts>localhost|*.localhost|*.corp|*.lan</nonProxyHosts>")
                for scheme, at in (("http", "plain:1"), ("https", "safe:2"))
            )
        ),
    ),
]


@pytest.mark.parametrize(("environment", "settings"), PROXIES)
def test_maven_takes_the_proxy_that_the_environment_names(environment: dict[str, str], settings: str) -> None:
    assert canonicalize(with_proxies(environment)) == canonicalize(settings)


@pytest.mark.parametrize(("environment", "settings"), [*PROXIES, ({}, written())])
def test_maven_takes_it_where_an_image_is_built_too(environment: dict[str, str], settings: str) -> None:
    command = ["perl", str(recipes() / "kafka" / "settings")]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert (canonicalize(printed.stdout, strip_text=True), printed.stderr) == (canonicalize(settings), "")


@pytest.mark.parametrize("environment", [{}, {"no_proxy": "localhost"}, {"http_proxy": "", "https_proxy": ""}])
def test_without_a_proxy_mavens_own_settings_stand(environment: dict[str, str]) -> None:
    assert with_proxies(environment) is None


def test_the_settings_of_all_users_are_kept_beside_a_proxy() -> None:
    theirs = (
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><proxies><proxy><id>theirs</id></proxy></proxies>'
        "<mirrors><mirror><id>near</id></mirror></mirrors></settings>"
    )
    both = theirs.replace("</proxies>", f"<proxy>{named('https', 'proxy:1')}</proxy></proxies>")
    assert canonicalize(with_proxies({"https_proxy": "proxy:1"}, theirs)) == canonicalize(both)


@pytest.mark.parametrize("proxy", ["http://proxy:port", "http://[proxy", "http://me:se#cret@proxy:1"])
def test_a_proxy_that_is_none_is_a_line_without_its_password(proxy: str) -> None:
    with pytest.raises(EnvironmentLacks, match=r"https_proxy is no proxy: set it to http://host:port") as refused:
        with_proxies({"https_proxy": proxy})
    assert "se" not in str(refused.value).split()
    assert "'se'" not in str(refused.value)


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that alone is on the path, with a program that stands for Maven, and notes its arguments."""
    mvn = tmp_path / "bin" / "mvn"
    mvn.parent.mkdir()
    mvn.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{tmp_path}/arguments\n"
        f'while [ $# -gt 0 ]; do if [ "$1" = -gs ]; then /bin/cat "$2" >{tmp_path}/settings; fi; shift; done\n'
        "printf '\\033[0m\\033[0m[ERROR] no such version:\\n[ERROR] \\t9.9.9 -> [Help 1]\\n[ERROR] more\\n'; exit 1\n"
    )
    mvn.chmod(0o755)
    monkeypatch.setenv("PATH", str(mvn.parent))
    return tmp_path


def test_why_maven_failed_is_its_first_line_as_plain_text(maven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://me:secret@proxy:3128")
    with pytest.raises(EnvironmentLacks) as failed:
        fetch_jars("9.9.9", "<project/>", maven)
    assert str(failed.value) == "Kafka 9.9.9 cannot be downloaded or built: no such version: 9.9.9"
    assert "secret" not in (maven / "arguments").read_text()
    assert "<password>secret</password>" in (maven / "settings").read_text()
