"""Kafka's jars by Maven: through a proxy, and what is told where it fails."""

from pathlib import Path

import pytest

from harness.cluster.jars import by_proxy, fetch_jars
from harness.core.errors import EnvironmentLacks


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({}, []),
        ({"no_proxy": "localhost"}, []),
        ({"http_proxy": "", "https_proxy": ""}, []),
        ({"https_proxy": "http://proxy:3128/"}, ["-Dhttps.proxyHost=proxy", "-Dhttps.proxyPort=3128"]),
        ({"HTTP_PROXY": "10.0.0.1:8080"}, ["-Dhttp.proxyHost=10.0.0.1", "-Dhttp.proxyPort=8080"]),
        ({"http_proxy": "proxy"}, ["-Dhttp.proxyHost=proxy", "-Dhttp.proxyPort=80"]),
        ({"https_proxy": "http://me:secret@proxy:1"}, ["-Dhttps.proxyHost=proxy", "-Dhttps.proxyPort=1"]),
        (
            {"https_proxy": "http://proxy:1", "no_proxy": "localhost, .corp,*.lan,"},
            [
                "-Dhttps.proxyHost=proxy",
                "-Dhttps.proxyPort=1",
                "-Dhttp.nonProxyHosts=localhost|*.localhost|*.corp|*.lan",
            ],
        ),
    ],
)
def test_java_takes_the_proxy_that_the_environment_names(environment: dict[str, str], options: list[str]) -> None:
    assert by_proxy(environment) == options


@pytest.mark.parametrize("proxy", ["http://proxy:port", "http://[proxy"])
def test_a_proxy_that_is_none_is_a_line(proxy: str) -> None:
    with pytest.raises(EnvironmentLacks, match=r"https_proxy is no proxy \(.*\): set it to http://host:port"):
        by_proxy({"https_proxy": proxy})


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that alone is on the path, with a program that stands for Maven, and notes its arguments."""
    mvn = tmp_path / "bin" / "mvn"
    mvn.parent.mkdir()
    mvn.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{tmp_path}/arguments\n"
        "printf '\\033[0m\\033[0m[ERROR] no such version\\n[ERROR] more\\n'; exit 1\n"
    )
    mvn.chmod(0o755)
    monkeypatch.setenv("PATH", str(mvn.parent))
    return tmp_path


def test_why_maven_failed_is_its_first_line_as_plain_text(maven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    with pytest.raises(EnvironmentLacks) as failed:
        fetch_jars("9.9.9", "<project/>", maven)
    assert str(failed.value) == "Kafka 9.9.9 cannot be downloaded or built: no such version"
    assert "-Dhttps.proxyHost=proxy" in (maven / "arguments").read_text().splitlines()
