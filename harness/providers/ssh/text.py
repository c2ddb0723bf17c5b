"""The shell scripts that are run on a machine, as text. Pure: nothing here runs anything.

A fork costs up to 50 ms on a small machine, so these scripts use what the shell itself can do.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from harness.cluster.distribution import START
from harness.core.topology import Node
from nemesis.shell import Signal

#: The content of a machine's data directory: a mark that it is ours, Kafka by version, and the node of a run.
MARK = ".kafka-trial"
KAFKA = "kafka"
NODE = "node"

#: The switch that undoes what was done to a node's process.
PROCESS_SWITCH = "process"

#: A process is identified by its pid, its start time and the boot: a pid alone may be reused.
_PROCESSES = """\
alive() {
  [ -s "$1" ] || return 1
  read -r pid born boot <"$1" || return 1
  read -r now </proc/sys/kernel/random/boot_id
  [ "$boot" = "$now" ] || return 1
  { read -r stat <"/proc/$pid/stat"; } 2>/dev/null || return 1
  stat=${stat##*) }
  set -- $stat
  state=$1
  [ "${20}" = "$born" ] && [ "$state" != Z ] && [ "$state" != X ]
}
remember() {
  read -r boot </proc/sys/kernel/random/boot_id
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || { echo 'it ended at once' >&2; return 1; }
  file=$2 child=$1 stat=${stat##*) }
  set -- $stat
  echo "$child ${20} $boot" >"$file"
}
destroy() {
  # First the process: until it leads a group of its own it is alone, and afterwards it starts no other.
  kill -s KILL "$1" 2>/dev/null || true
  kill -s KILL -- "-$1" 2>/dev/null || true
}
end() {
  if alive "$1"; then destroy "$pid"; fi
  if [ -e "$1" ]; then rm -f "$1"; fi
}
"""


@dataclass(frozen=True)
class MachinePaths:
    """Paths on a machine below its data directory. ``owner``: the line of the only run whose node may be there."""

    data: str
    owner: str | None = None

    @property
    def node(self) -> str:
        """The directory of the node of a run."""
        return f"{self.data}/{NODE}"

    @property
    def files(self) -> str:
        """The node's data, which a wipe deletes."""
        return f"{self.node}/data"

    def kafka(self, version: str) -> str:
        """The directory of one copied version of Kafka."""
        return f"{self.data}/{KAFKA}/{version}"


def quoted(command: str, *words: str) -> str:
    """A command whose words are quoted for the shell."""
    return " ".join([command, *map(shlex.quote, words)])


def priority(level: int) -> str:
    """Run what follows at this priority, if the system allows it."""
    return f"renice -n {level} -p $$ >/dev/null 2>&1 || true\n"


def at(paths: MachinePaths, script: str) -> str:
    """A script in the node's directory, with the functions for processes. Fails if the node is another run's."""
    return f"{_PROCESSES}{quoted('cd', paths.node)}\n{_owned(paths, 'exit 1')}{script}"


def _owned(paths: MachinePaths, otherwise: str) -> str:
    """If the directory has another run's node by now, say so and run ``otherwise``."""
    if paths.owner is None:
        return ""
    return (
        f'whose=\nread -r whose <owner || true\nif [ "$whose" != {shlex.quote(paths.owner)} ]; then\n'
        f"  echo 'its machine has the node of another run now' >&2\n  {otherwise}\nfi\n"
    )


def keeper(paths: MachinePaths, node: Node, java: str, home: str, environment: Mapping[str, str]) -> str:
    """The script that starts a node in its own process group, waits for its end, and stores its exit code."""
    variables = {
        **environment,
        "KAFKA_TRIAL_HOME": home,
        "KAFKA_TRIAL_DATA": paths.files,
        "KAFKA_TRIAL_SETTINGS": f"{paths.node}/node.properties",
        "KAFKA_TRIAL_HELD": f"{paths.node}/held",
        "KAFKA_TRIAL_JAVA": java,
    }
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    return at(
        paths,
        f"{exports}ulimit -n 65536 2>/dev/null || true\n{priority(0)}exec >>log 2>&1 </dev/null\n"
        f"setsid sh {shlex.quote(f'{home}/{START}')} {node.role} 3>&- &\n"
        "remember $! pid\n"
        "exec 3>&-\n"
        "wait $child && code=0 || code=$?\n"
        "echo $code >exit\n",
    )


def start(paths: MachinePaths, held: bool) -> str:
    """Start the node. ``held``: it waits until it is released. A running node is left alone."""
    return at(
        paths,
        f"if ! alive pid; then\n  rm -f pid exit\n  {': >held' if held else ':'}\n"
        # The keeper holds the pipe open until it has started the node, or has ended.
        "  : $(exec 3>&1\n"
        "    setsid sh keeper </dev/null >/dev/null 2>&1 &\n    remember $! keeper.pid 2>/dev/null || true)\n"
        # (On a full disk it cannot write the file ``pid``.)
        "  [ -s pid ] || { echo 'it does not start: is the disk full?' >&2; exit 1; }\n"
        "fi\n"
        f"{'' if held else 'rm -f held'}\n",
    )


def release(paths: MachinePaths) -> str:
    """Release the node."""
    return at(paths, "if [ -e held ]; then rm -f held; fi\n")


def signal(paths: MachinePaths, name: Signal) -> str:
    """Send a signal to the node's main process; SIGKILL to its whole group.

    (In a stopped group, a parent may be waiting for its child to become another program.)
    """
    act = 'destroy "$pid"' if name == "KILL" else f'kill -s {name} "$pid"'
    return at(paths, f"alive pid || {{ echo 'its process is not there' >&2; exit 1; }}\n{act}\n")


def go_on(paths: MachinePaths) -> str:
    """Continue a stopped node. Nothing happens if it has ended."""
    return at(paths, 'if alive pid; then kill -s CONT "$pid"; fi\n')


def stop(paths: MachinePaths, grace: float) -> str:
    """Send SIGTERM, and SIGKILL after ``grace`` seconds. Returns when the process has ended."""
    return at(
        paths,
        'if alive pid; then kill -s TERM "$pid"; fi\n'
        "read -r since rest </proc/uptime\n"
        "since=${since%.*}\n"
        "while alive pid; do\n"
        "  read -r now rest </proc/uptime\n"
        f'  if [ $((${{now%.*}} - since)) -gt {round(grace)} ]; then destroy "$pid"; fi\n'
        "  sleep 0.1\n"
        "done\n",
    )


def process(paths: MachinePaths) -> str:
    """Print ``running``, ``stopped`` or ``exited``."""
    return at(paths, _state("pid"))


def exit_code(paths: MachinePaths) -> str:
    """Print the exit code of the process; nothing if it is unknown, as after a power cut of the machine."""
    return at(
        paths,
        "tries=0\n"
        "until [ -s exit ] || [ $tries -ge 40 ]; do sleep 0.05; tries=$((tries + 1)); done\n"
        "if [ -s exit ]; then read -r code <exit; echo $code; fi\n",
    )


def last_words(paths: MachinePaths) -> str:
    """Print ``running``, or the exit code of the process and the end of its log."""
    return at(
        paths,
        "if alive pid; then echo running; exit 0; fi\n"
        "code=\nif [ -s exit ]; then read -r code <exit; fi\necho $code\ntail -n 200 log\n",
    )


def log(paths: MachinePaths) -> str:
    """Print the whole log of the node."""
    return at(paths, "cat log\n")


def wipe(paths: MachinePaths) -> str:
    """Delete the node's data, and print the number of files."""
    return at(paths, "find data -mindepth 1 -type f | wc -l\nfind data -mindepth 1 -delete\n")


def _state(file: str) -> str:
    """Print the state of the process that a file identifies."""
    return (
        f"if ! alive {file}; then echo exited; exit 0; fi\n"
        "case $state in\nT | t) echo stopped ;;\n*) echo running ;;\nesac\n"
    )


def start_helper(paths: MachinePaths, name: str, script: str) -> str:
    """Run a script in its own process group until it is stopped."""
    return at(
        paths,
        f"end helpers/{name}\n"
        f"setsid sh -euc {shlex.quote(script)} </dev/null >helpers/{name}.log 2>&1 &\n"
        f"remember $! helpers/{name}\n",
    )


def helper(paths: MachinePaths, name: str) -> str:
    """Print the state of a helper, as ``process`` does; ``exited`` if there is none."""
    return at(paths, _state(f"helpers/{name}"))


def stop_helper(paths: MachinePaths, name: str) -> str:
    """End a helper."""
    return at(paths, f"end helpers/{name}\nrm -f helpers/{name}.log\n")


def arm(paths: MachinePaths, name: str, undo: str, seconds: float) -> str:
    """Arm a switch: after so many seconds the machine itself runs ``undo``, and repeats it until it succeeds.

    ``sleep`` counts on the monotonic clock, so setting the clock does not matter. Afterwards the switch is gone.
    """
    waits = (
        f"sleep {seconds:.1f};"
        f" until [ ! -e {name}.sh ] || sh -eu {name}.sh >/dev/null 2>&1 </dev/null; do sleep 1; done;"
        f" rm -f {name}.sh {name}"
    )
    return at(
        paths,
        # (If there is no space for the new switch, the earlier one stays.)
        f"cd switches\n{written(f'{name}.new', undo)}end {name}\nmv {name}.new {name}.sh\n"
        f"setsid sh -c {shlex.quote(waits)} </dev/null >/dev/null 2>&1 &\nremember $! {name}\n",
    )


def disarm(paths: MachinePaths, name: str) -> str:
    """Remove a switch without running it."""
    return at(paths, f"cd switches\nend {name}\nif [ -e {name}.sh ]; then rm -f {name}.sh; fi\n")


def written(path: str, content: str) -> str:
    """Write a file. (A shell's own ``printf`` into a file does not report a full disk; ``cat`` does.)"""
    return f"printf %s {shlex.quote(content)} 2>/dev/null | cat >{shlex.quote(path)}\n"


def claim(data: str, owner: str) -> str:
    """Make the directory of a node. Fails if the data directory has other things in it, or another run's node.

    The directory is made under a temporary name, and renamed with its owner's line in it: it never exists without an
    owner, and a failure leaves nothing. After a power cut the machine still knows whose node it has.
    """
    node = MachinePaths(data).node
    occupied = f"if [ -e {shlex.quote(node)} ]; then echo 'another node is there' >&2; exit 1; fi\n"
    kept = " ".join(map(shlex.quote, (data, node, f"{node}/owner")))
    return (
        f'{own(data)}{occupied}new={shlex.quote(node)}.$$\ntrap \'rm -rf "$new"\' EXIT\nrm -rf "$new"\n'
        'mkdir "$new" "$new/data" "$new/helpers" "$new/switches"\n'
        f"printf '%s\\n' {shlex.quote(owner)} 2>/dev/null | cat >\"$new/owner\"\n"
        f'mv -T "$new" {shlex.quote(node)} || {{\n{occupied}exit 1\n}}\n'
        f"trap - EXIT\nsync {kept} || sync\ncd {shlex.quote(node)}\n"
    )


def own(data: str) -> str:
    """Make the data directory ours. Fails if it has other things in it, or if others than root may write to it: root
    runs what is in it. The mark says whether we made the directory."""
    folder, mark = shlex.quote(data), shlex.quote(f"{data}/{MARK}")
    foreign = shlex.quote(f"{data} has other things in it: name a directory of kafka-trial's own as `data`")
    open_to_all = shlex.quote(f"others than root may write to {data}: name another `data`")
    return (
        f"made=\nif [ ! -d {folder} ]; then mkdir -p {folder}; made=made; fi\n"
        f"others=$(find {folder} -prune \\( -perm -002 -o -perm -020 ! -group 0 \\))\n"
        f'if [ ! -O {folder} ] || [ -n "$others" ]; then echo {open_to_all} >&2; exit 1; fi\n'
        f"if [ ! -e {mark} ]; then\n"
        f"  for there in {folder}/* {folder}/.[!.]*; do\n"
        # (Another run may have marked it meanwhile.)
        f'    if [ -e "$there" ] && [ ! -e {mark} ]; then echo {foreign} >&2; exit 1; fi\n'
        "  done\n"
        f"  printf '%s' \"$made\" 2>/dev/null | cat >>{mark}\n"
        "fi\n"
    )


#: Seconds that ``remove_node`` may take. A choice: it undoes each fault and ends each program first, and then deletes
#: what may be gigabytes on a slow disk: twice as long as for any other script.
REMOVED_WITHIN_S = 180.0


def remove_node(paths: MachinePaths) -> str:
    """End and remove the node of a run. First undo all faults that are left.

    Prints a word for each thing that was removed. Another run's node stays. Fails if a fault could not be undone; its
    undo script stays.
    """
    return (
        f"{_PROCESSES}if [ ! -d {shlex.quote(paths.node)} ]; then exit 0; fi\n"
        f"cd {shlex.quote(paths.node)}\n{_owned(paths, 'exit 0')}failed=\n"
        "for undo in switches/*.sh; do\n"
        # (While the switch runs, it may undo the fault itself.)
        '  end "${undo%.sh}"\n'
        '  [ -e "$undo" ] || continue\n'
        # (This switch would start the node again.)
        f'  case $undo in switches/{PROCESS_SWITCH}.sh) rm -f "$undo"; continue ;; esac\n'
        '  if sh -eu "$undo" >/dev/null 2>switches/why </dev/null; then rm -f "$undo"; echo fault\n'
        '  else failed="$failed $(tail -n 1 switches/why)"; fi\n'
        "done\n"
        'for helper in helpers/*; do case $helper in *.log | "helpers/*") ;; *) end "$helper" ;; esac; done\n'
        # (Otherwise it would write the exit code into a directory that is being removed.)
        "end keeper.pid\n"
        "if alive pid; then\n"
        '  destroy "$pid"\n'
        "  while alive pid; do sleep 0.05; done\n"
        "  echo process\n"
        "fi\n"
        'if [ -n "$failed" ]; then echo "a fault is not undone:$failed" >&2; exit 1; fi\n'
        f"cd /\nrm -rf {shlex.quote(paths.node)}\necho node\n"
    )


def remove_kafka(data: str) -> str:
    """Remove every copied version of Kafka, the rest of an interrupted claim, and the data directory if we made it.
    Removes nothing if there is a node: it belongs to another run, which has started meanwhile."""
    folder, node, mark = shlex.quote(data), shlex.quote(MachinePaths(data).node), shlex.quote(f"{data}/{MARK}")
    return (
        f"if [ ! -e {mark} ] || [ -e {node} ]; then exit 0; fi\n"
        f"if [ -d {folder}/{KAFKA} ]; then rm -rf {folder}/{KAFKA}; echo kafka; fi\n"
        f"made=\nread -r made <{mark} || true\nrm -rf {node}.[0-9]* {mark}\n"
        f'if [ "$made" = made ]; then rmdir {folder} 2>/dev/null || true; fi\n'
    )


#: The programs of a machine that nodes and faults need, and Debian's package of each.
TOOLS = {
    "setsid": "util-linux",
    "unshare": "util-linux",
    "find": "findutils",
    "tar": "tar",
    "sha256sum": "coreutils",
    "ip": "iproute2",
    "tc": "iproute2",
    "iptables": "iptables",
    "bash": "bash",
}


def facts(data: str, java: str) -> str:
    """Print the facts about a machine as lines of ``key=value``: see ``Facts``."""
    return (
        "set -- $SSH_CONNECTION\n"
        'echo "client=$1"\necho "control=$4"\n'
        "read -r boot </proc/sys/kernel/random/boot_id\n"
        'echo "machine=$boot $(readlink /proc/self/ns/net)"\n'
        'echo "kernel=$(uname -sr)"\n'
        f"missing=\nfor tool in {' '.join(TOOLS)}; do\n"
        '  command -v "$tool" >/dev/null || missing="$missing $tool"\n'
        "done\n"
        'echo "missing=$missing"\n'
        f"if command -v {shlex.quote(java)} >/dev/null; then\n"
        f"  {shlex.quote(java)} -version 2>&1 | while read -r line; do\n"
        '    case $line in *" version "*) echo "java=$line" ;; esac\n'
        "  done\nfi\n"
        f"if [ -s {shlex.quote(MachinePaths(data).node)}/owner ]; then\n"
        f'  read -r owner <{shlex.quote(MachinePaths(data).node)}/owner; printf "owner=%s\\n" "$owner"\n'
        f"elif [ -d {shlex.quote(MachinePaths(data).node)} ]; then echo owner=?\nfi\n"
        # (The working directory of every node's process is the node's directory, in whichever data directory.)
        f"find /proc -maxdepth 2 -name cwd -lname '*/{NODE}' -printf '%l\\n' 2>/dev/null | sort -u |\n"
        f'while read -r node; do\n  [ "$node" != {shlex.quote(MachinePaths(data).node)} ] || continue\n'
        '  [ -s "$node/owner" ] || continue\n'
        '  read -r owner <"$node/owner"; printf "other_node=%s\\t%s\\n" "$node" "$owner"\n'
        "done\n"
        "ip -o -4 addr show 2>/dev/null | while read -r number device inet address rest; do\n"
        '  echo "address=${address%%/*} $device"\n'
        "done\n"
        'tc qdisc show 2>/dev/null | while read -r queue; do echo "queue=$queue"; done\n'
        "while read -r slot local remote state rest; do\n"
        '  case $state in 0A) echo "port=${local##*:}" ;; esac\n'
        "done </proc/net/tcp\n"
        "if [ -r /proc/net/tcp6 ]; then while read -r slot local remote state rest; do\n"
        '  case $state in 0A) echo "port=${local##*:}" ;; esac\n'
        "done </proc/net/tcp6; fi\n"
    )
