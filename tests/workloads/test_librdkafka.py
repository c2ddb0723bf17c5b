"""The table of librdkafka's settings is that of the library itself, and what it takes is its own word."""

import ctypes
import re
from pathlib import Path

import confluent_kafka
import pytest

from workloads.clients.librdkafka import RELIED_ON, SETTINGS, Known, is_default, main_name, refused, settings_for
from workloads.clients.settings import ClientSettings, consumer_config, producer_config

PRODUCERS = producer_config(ClientSettings(), "127.0.0.1:1", "p", 64)
CONSUMERS = consumer_config(ClientSettings(), "127.0.0.1:1", "c", "g")


def listed(scratch: Path) -> dict[str, Known]:
    """What ``rd_kafka_conf_properties_show`` of the library in use prints, parsed."""
    [library] = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka-*")
    rdkafka, libc = ctypes.CDLL(str(library)), ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    rdkafka.rd_kafka_conf_properties_show.argtypes = libc.fclose.argtypes = [ctypes.c_void_p]
    file = libc.fopen(str(scratch).encode(), b"w")
    rdkafka.rd_kafka_conf_properties_show(file)
    libc.fclose(file)
    rows = re.findall(r"^(\S+) *\| *([CP*]) *\|[^|]*\|([^|]*)\|[^|]*\|(.*)$", scratch.read_text(), re.MULTILINE)
    found = {}
    for name, of, default, reported in rows:
        other = re.match(r" Alias for `([^`]+)`", reported)
        if "see dedicated API" not in reported and name not in {"builtin.features", "Property"}:
            found[name] = Known(of, "" if other else default.strip(), other[1] if other else None)
    return found


def test_the_table_is_that_of_the_library(tmp_path: Path) -> None:
    assert listed(tmp_path / "properties.md") == SETTINGS


def test_the_table_has_every_setting_the_harness_relies_on() -> None:
    assert SETTINGS.keys() >= RELIED_ON


@pytest.mark.parametrize(
    ("key", "value", "default"),
    [
        ("linger.ms", 5, True),
        ("queue.buffering.max.ms", 6, False),
        ("check.crcs", False, True),
        ("check.crcs", True, False),
        ("client.rack", "", True),
    ],
)
def test_a_default_is_known_under_either_name(key: str, value: int | str | bool, default: bool) -> None:
    assert is_default(key, value) is default


def test_an_alias_and_its_setting_are_one_setting() -> None:
    assert main_name("acks") == main_name("request.required.acks") == "request.required.acks"
    assert main_name("debug") == "debug"


def test_producers_and_consumers_get_only_their_own_settings() -> None:
    config = {"debug": "msg", "sticky.partitioning.linger.ms": 20, "fetch.max.bytes": 60_000_000}
    assert settings_for("P", config) == {"debug": "msg", "sticky.partitioning.linger.ms": 20}
    assert settings_for("C", config) == {"debug": "msg", "fetch.max.bytes": 60_000_000}
    settings = ClientSettings(config=config)
    assert producer_config(settings, "b", "p", 64).items() >= settings_for("P", config).items()
    assert consumer_config(settings, "b", "c", "g").items() >= settings_for("C", config).items()


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"socket.receive.buffer.bytes": 1_000}, []),
        ({"statistics.interval.ms": 500, "client.rack": "1"}, []),
        ({"socket.send.buffer.bytes": "many"}, ["Invalid value"] * 2),
        ({"sticky.partitioning.linger.ms": 10**9}, ["outside allowed range 0..900000"]),
        ({"fetch.max.bytes": 10}, ["`fetch.max.bytes` must be >="]),
    ],
    ids=str,
)
def test_a_setting_that_librdkafka_refuses_is_reported_in_its_words(
    config: dict[str, int | str], says: list[str]
) -> None:
    found = list(refused(config, PRODUCERS, CONSUMERS))
    assert len(found) == len(says)
    assert all(part in line for part, line in zip(says, found, strict=True))
