"""librdkafka's mock cluster under the test's control, and what librdkafka says of its own settings.

Through the C interface (rdkafka_mock.h), of the very library that confluent_kafka has loaded.
"""

import ctypes
import re
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_int16, c_int32, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka

PRODUCE = 0

_PRODUCER = 0
_CONF_OK = 0

#: How long the mock cluster waits for more members of a new group (by default 3 s).
_MORE_MEMBERS_MS = 200


def _library() -> ctypes.CDLL:
    beside = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs")
    [path] = beside.glob("librdkafka-*")
    library = ctypes.CDLL(str(path))
    for name, returns, takes in (
        ("rd_kafka_conf_new", c_void_p, []),
        ("rd_kafka_conf_set", c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_size_t]),
        ("rd_kafka_conf_properties_show", None, [c_void_p]),
        ("rd_kafka_new", c_void_p, [c_int, c_void_p, c_char_p, c_size_t]),
        ("rd_kafka_destroy", None, [c_void_p]),
        ("rd_kafka_handle_mock_cluster", c_void_p, [c_void_p]),
        ("rd_kafka_mock_cluster_bootstraps", c_char_p, [c_void_p]),
        ("rd_kafka_mock_group_initial_rebalance_delay_ms", None, [c_void_p, c_int32]),
        ("rd_kafka_mock_topic_create", c_int, [c_void_p, c_char_p, c_int, c_int]),
        ("rd_kafka_mock_push_request_errors_array", None, [c_void_p, c_int16, c_size_t, POINTER(c_int)]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = returns, takes
    return library


LIBRARY = _library()
LIBC = ctypes.CDLL(None)
LIBC.fopen.restype, LIBC.fopen.argtypes = c_void_p, [c_char_p, c_char_p]
LIBC.fclose.restype, LIBC.fclose.argtypes = c_int, [c_void_p]


class Scripted:
    """A mock cluster of its own whose next answers a test chooses. Three brokers, until it is closed."""

    def __init__(self) -> None:
        conf = LIBRARY.rd_kafka_conf_new()
        said = ctypes.create_string_buffer(512)
        for name, value in ((b"test.mock.num.brokers", b"3"), (b"log_level", b"0")):
            assert LIBRARY.rd_kafka_conf_set(conf, name, value, said, len(said)) == _CONF_OK, said.value
        self._owner = LIBRARY.rd_kafka_new(_PRODUCER, conf, said, len(said))
        assert self._owner, said.value
        self._cluster = LIBRARY.rd_kafka_handle_mock_cluster(self._owner)
        LIBRARY.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, _MORE_MEMBERS_MS)

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers``."""
        return str(LIBRARY.rd_kafka_mock_cluster_bootstraps(self._cluster).decode())

    def topic(self, name: str, partitions: int) -> None:
        """Make a topic."""
        assert LIBRARY.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1) == 0

    def answer(self, api: int, errors: Sequence[int]) -> None:
        """The next requests of a kind are answered with these errors, one each; -195 closes the connection."""
        LIBRARY.rd_kafka_mock_push_request_errors_array(self._cluster, api, len(errors), (c_int * len(errors))(*errors))

    def close(self) -> None:
        """End it."""
        LIBRARY.rd_kafka_destroy(self._owner)


@dataclass(frozen=True)
class Setting:
    """A property of librdkafka. ``scope``: P of producers, C of consumers, * of both; ``same_as``: what it is another
    name of, or itself."""

    name: str
    scope: str
    says: str
    same_as: str


def every_setting(directory: Path) -> list[Setting]:
    """Every property of librdkafka as the library itself lists them, by way of a file in ``directory``."""
    path = directory / "properties.md"
    file = LIBC.fopen(str(path).encode(), b"w")
    LIBRARY.rd_kafka_conf_properties_show(file)
    LIBC.fclose(file)
    rows = [[cell.strip() for cell in line.split("|", 5)] for line in path.read_text().splitlines()]
    found = []
    for row in rows:
        if len(row) == 6 and row[1] in {"P", "C", "*"}:
            alias = re.search(r"Alias for `([^`]+)`", row[5])
            found.append(Setting(row[0], row[1], row[5], alias.group(1) if alias else row[0]))
    return found
