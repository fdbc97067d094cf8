"""Side by side: `assay inspect` and what a user would run instead, on the same file.

    just race                      all of it, at full size
    just race --only pgsql         one of pgsql, strace, callgrind, perf, pprof
    just race --scale 0.1          a tenth of the size
    just race --record             write the table to captures/SPEED.md, too

Both must give equal answers. What is compared is CPU time, user and system together, the best of
several runs that take turns, since others may load the machine; wall time is printed beside it.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import time

import inputs

ROOT = pathlib.Path(__file__).resolve().parents[2]
MB = 1_000_000
# What `assay inspect` is asked for: all that it can tell.
JSON = ["--json", "--top", "100000"]


class Run:
    """The best of several runs of one command."""

    def __init__(self, name, command, size):
        self.name, self.command, self.size = name, [str(word) for word in command], size
        self.cpu = self.wall = None
        self.output = b""

    def once(self):
        """Runs the command once, its output in a file."""
        kept = pathlib.Path("/dev/null") if self.name == "cat" else inputs_dir / "output"
        began = time.monotonic()
        with open(kept, "wb") as out:
            child = subprocess.Popen(self.command, stdout=out, stderr=subprocess.PIPE)
            said = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{' '.join(self.command)}: {said.decode(errors='replace')}")
        cpu = usage.ru_utime + usage.ru_stime
        if self.cpu is None or cpu < self.cpu:
            self.cpu, self.user, self.wall = cpu, usage.ru_utime, wall
        if self.name != "cat":
            self.output = kept.read_bytes()

    @property
    def per_byte(self):
        """CPU seconds per byte of its input."""
        return self.cpu / self.size


def take_turns(rounds, *runs):
    for _ in range(rounds):
        for run in runs:
            run.once()


def equal(what, ours, theirs):
    """Prints both answers, and stops where they differ."""
    print(f"  {what}: assay {ours}, the other {theirs}", file=sys.stderr)
    if ours != theirs:
        raise SystemExit(f"{what} differ: the race is void")


def costs(output):
    """The costs that assay prints as JSON, by metric and labels."""
    found = {}
    for cost in json.loads(output)["costs"]:
        labels = tuple(sorted((cost.get("labels") or {}).items()))
        found[cost["metric"], labels] = cost.get("amount")
    return found


def need(program, package):
    """Installs a Debian package that the machine lacks."""
    if subprocess.run(["sh", "-c", f"command -v {program}"], capture_output=True).returncode:
        inputs.run("apt-get", "update", "-q")
        inputs.run("apt-get", "install", "-y", "-q", "--no-install-recommends", package)


def crate(name, program, locked=True):
    """Installs a program from crates.io, once."""
    tools = ROOT / "target/race/tools"
    if not (tools / "bin" / program).exists():
        lock = ["--locked"] if locked else []
        inputs.run("cargo", "install", "--quiet", *lock, "--root", tools, name)
    return tools / "bin" / program


def file(name, size, make):
    """The input's path; it is made where it is not there in this size."""
    path = inputs_dir / name
    if not path.exists() or path.stat().st_size < size:
        print(f"making {path}", file=sys.stderr)
        make(path)
    return path


class Row:
    """What one race has shown."""

    def __init__(self, name, cat, assay, rival, gate, units, unit, note):
        self.name, self.gate, self.note = name, gate, note
        self.rate = assay.size / assay.cpu / MB
        self.ratio = rival.per_byte / assay.per_byte
        self.text = (
            f"{name:<9} {assay.size / 1e9:5.2f} GB  assay {assay.cpu:6.2f} s  {self.rate:5.0f} MB/s  "
            f"{assay.cpu / units * 1e9:6.0f} ns/{unit:<6}  {self.ratio:6.1f} × {rival.name}"
            f"{' (missed: ' + str(gate) + ')' if self.ratio < gate else ''}  "
            f"{cat.cpu / assay.cpu:5.2f} of cat"
        )
        system = assay.cpu - assay.user
        self.where = (
            f"{name}: {assay.user:.2f} s of its own and {system:.2f} s in the kernel, which reads "
            f"the file; cat takes {cat.cpu:.2f} s; wall {assay.wall:.2f} s. {note}".rstrip()
        )


def race(name, path, units, unit, rival, gate, check, note="", sliced=None, words=JSON):
    """Runs cat, assay and the rival in turns; `sliced` is the shorter file that the rival reads."""
    size = path.stat().st_size
    cat = Run("cat", ["cat", path], size)
    assay = Run("assay", [options.assay, "inspect", *words, path], size)
    take_turns(options.rounds, cat, assay)
    take_turns(1 if sliced else options.rounds, rival)
    answer = assay
    if sliced:
        answer = Run("assay", [options.assay, "inspect", *words, sliced], sliced.stat().st_size)
        answer.once()
    check(answer.output, rival.output)
    row = Row(name, cat, assay, rival, gate, units, unit, note)
    print(row.text, flush=True)
    return row


def pgsql():
    need("tcpdump", "tcpdump")
    need("tshark", "tshark")
    size = int(1000 * MB * options.scale)
    base, port = inputs_dir / "base.pcap", inputs_dir / "base.port"
    if not base.exists():
        print("recording pgbench", file=sys.stderr)
        port.write_text(str(inputs.postgres(inputs_dir, base, options.transactions)))
    number = int(port.read_text())
    path = inputs_dir / "pgsql.pcap"
    packets = inputs.repeat_packets(base, path, size, number)
    # All that was recorded, once: every kind of traffic is in it.
    piece = base
    command = ["tshark", "-r", piece, "-d", f"tcp.port=={number},pgsql", "-Y", "pgsql", "-T",
               "fields", "-e", "pgsql.type"]
    rival = Run("tshark", command, piece.stat().st_size)

    def check(ours, theirs):
        words = re.split(rb"[,\n]", theirs)
        mine = costs(ours)
        equal("ReadyForQuery", mine["postgres.ready_for_query", ()], words.count(b"Ready for query"))
        equal("rows", mine["postgres.rows", ()], words.count(b"Data row"))
        equal("statements prepared", mine["postgres.parses", ()], words.count(b"Parse"))

    note = f"tshark read {rival.size / MB:.0f} MB of the same packets, scaled by bytes."
    return race("pgsql", path, packets, "packet", rival, 50, check, note, piece)


def strace():
    size, part = int(1000 * MB * options.scale), int(50 * MB * options.scale)
    base = file("base.strace", 1, lambda path: inputs.strace(path, 1000))
    path, piece = inputs_dir / "long.strace", inputs_dir / "piece.strace"
    lines = inputs.repeat_lines(base, path, size)
    inputs.repeat_lines(base, piece, part)
    # Its own lock file names a library that today's compiler refuses.
    stats = crate("strace-parse", "strace-stats", locked=False)
    rival = Run("strace-stats", [stats, piece], piece.stat().st_size)

    def check(ours, theirs):
        table = {}
        for line in theirs.decode().splitlines():
            if row := re.match(r" *[\d.]+ +[\d.]+ +[\d.]+ +(\d+) +([a-z_0-9]+)$", line):
                table[row[2]] = int(row[1])
        mine = {dict(labels)["name"]: int(value) for (metric, labels), value in costs(ours).items()
                if metric == "syscalls" and labels}
        equal("calls by name", dict(sorted(mine.items())), dict(sorted(table.items())))

    note = (
        f"strace-stats, of the crate strace-parse, is the fastest that a registry has and that "
        f"prints counts; it read {rival.size / MB:.0f} MB of the same lines, scaled by bytes, and "
        "stops at descriptors' names (-y), signals and ends of processes, so the log has none."
    )
    return race("strace", path, lines, "line", rival, 20, check, note, piece)


def callgrind():
    size = int(100 * MB * options.scale)
    base = file("base.callgrind", 1, lambda path: inputs.callgrind(path, 12))
    path = inputs_dir / "long.callgrind"
    inputs.repeat_profile(base, path, size)
    rival = Run("callgrind_annotate", ["callgrind_annotate", path], path.stat().st_size)
    lines = path.read_bytes().count(b"\n")

    def check(ours, theirs):
        total = re.search(rb"([\d,]+) \([\d.]+%\)\s+PROGRAM TOTALS", theirs).group(1)
        mine = [value for (metric, labels), value in costs(ours).items()
                if metric == "profile.value" and dict(labels).get("event") == "Ir"]
        equal("instructions", mine[:1], [int(total.replace(b",", b""))])

    return race("callgrind", path, lines, "line", rival, 20, check)


def perf():
    size = int(500 * MB * options.scale)
    base = file("base.perf", 1, lambda path: inputs.perf(inputs_dir, path, 25))
    path = file("long.perf", size, lambda path: inputs.repeat_whole(base, path, size))
    collapse = crate("inferno", "inferno-collapse-perf")
    rival = Run("inferno-collapse-perf", [collapse, "-n", "1", path], path.stat().st_size)
    lines = path.read_bytes().count(b"\n")

    def check(ours, theirs):
        equal("stacks", len(ours.splitlines()), len(theirs.splitlines()))
        equal("all lines alike", ours == theirs, True)

    note = "Both write folded stacks, byte for byte the same."
    return race("perf", path, lines, "line", rival, 1, check, note, words=["--folded"])


def pprof():
    if not (go := shutil.which("go") or shutil.which("/usr/local/go/bin/go")):
        need("go", "golang-go")
        go = "go"
    size = int(50 * MB * options.scale)
    path = inputs_dir / "samples.pprof"
    samples = inputs.pprof(path, size)
    rival = Run("go tool pprof -raw", [go, "tool", "pprof", "-raw", path], path.stat().st_size)

    def check(ours, theirs):
        rows = re.findall(rb"^ +(\d+) +(\d+): [\d ]+$", theirs, re.M)
        mine = [value for (metric, labels), value in costs(ours).items()
                if metric == "profile.value" and len(labels) == 2]
        both = sorted([sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows)])
        equal("samples and nanoseconds", sorted(int(value) for value in mine), both)

    return race("pprof", path, samples, "sample", rival, 1, check)


RACES = {
    "pgsql": pgsql, "strace": strace, "callgrind": callgrind, "perf": perf, "pprof": pprof,
}


def record(rows):
    """Writes what was found to captures/SPEED.md."""
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text()).group(1)
    text = "\n".join([
        "# Speed",
        "",
        "`just race --record` writes this file. It runs the release build of `assay inspect` beside",
        "what one would use instead, on files that it makes itself; both must count alike. Times are",
        "of the CPU, user and system, the best of several runs that take turns; the ratio to another",
        "program is by bytes, `of cat` is the time that `cat FILE >/dev/null` takes in the same run.",
        "",
        f"On {os.cpu_count()} cores of {cpu.strip()}, load {os.getloadavg()[0]:.0f}:",
        "",
        "```text",
        *[row.text for row in rows],
        "```",
        "",
        *[textwrap.fill(f"- {row.where}", 100, subsequent_indent="  ") for row in rows],
        "",
    ])
    (ROOT / "captures/SPEED.md").write_text(text)


def main():
    global options, inputs_dir
    words = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", choices=RACES, action="append")
    words.add_argument("--scale", type=float, default=1.0)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--transactions", type=int, default=100, help="of each client of pgbench")
    words.add_argument("--assay", default=ROOT / "target/release/assay")
    words.add_argument("--inputs", default=ROOT / "target/race", type=pathlib.Path)
    words.add_argument("--record", action="store_true")
    options = words.parse_args()
    inputs_dir = options.inputs
    inputs_dir.mkdir(parents=True, exist_ok=True)
    rows = [RACES[name]() for name in options.only or RACES]
    for row in rows:
        print(f"  {row.where}")
    if options.record:
        record(rows)
    if any(row.ratio < row.gate for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
