"""Makes the files that the race reads: each by the program that a user would have used."""

import os
import pathlib
import random
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time

PAGE = """\\set aid random(1, 100000 * :scale - 50)
SELECT aid, bid, abalance, filler FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 49;
"""

# Four pairs of threads that talk over TCP.
TALK = r"""
import socket, sys, threading
turns = int(sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0))
def echo(peer):
    while data := peer.recv(4096):
        peer.sendall(data)
def serve():
    for _ in range(4):
        threading.Thread(target=echo, args=(listener.accept()[0],)).start()
threading.Thread(target=serve).start()
def ask():
    with socket.create_connection(listener.getsockname()) as peer:
        for turn in range(turns):
            peer.sendall(b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % turn)
            peer.recv(4096)
asking = [threading.Thread(target=ask) for _ in range(4)]
[each.start() for each in asking]
[each.join() for each in asking]
"""

# Work with many functions, for profiles.
WORK = """
import ast, json, re, pathlib, sys
sources = sorted(pathlib.Path(ast.__file__).parent.glob("*.py"))[: int(sys.argv[1])]
for source in sources:
    tree = ast.parse(source.read_text(errors="replace"))
    json.loads(json.dumps(ast.dump(tree)))
    re.findall(r"[A-Z][a-z]+", ast.unparse(tree))
"""


def run(*command, **options):
    """Runs a command; its output is shown when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def postgres(folder, record, transactions):
    """Records what pgbench and a private Postgres say to each other.

    `transactions` is how many each of 8 clients makes of the longest kind, in each mode.
    """
    bins = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(dir=folder, prefix="postgres.") as home:
        if user:
            shutil.chown(home, "postgres")
            pathlib.Path(home).parent.chmod(0o755)
        data, page = f"{home}/data", f"{home}/page.sql"
        pathlib.Path(page).write_text(PAGE)
        run(*user, bins / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
        options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home} "
            "-c fsync=off -c synchronous_commit=off"
        )
        control = [*user, bins / "pg_ctl", "-D", data, "-w"]
        run(*control, "-l", f"{home}/log", "-o", options, "start")
        try:
            at = ["-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]
            run(bins / "pgbench", *at, "-i", "-q", "-s", "5", "postgres")
            recorder = subprocess.Popen(
                ["tcpdump", "-i", "lo", "-B", "65536", "-Z", "root", "-w", record, f"port {port}"],
                stderr=subprocess.PIPE,
            )
            time.sleep(1)
            for mode in ("simple", "extended", "prepared"):
                # About as many bytes of each; a clock would give most to what is fastest.
                for script, times in ((["-S"], 20), ([], 4), (["-f", page], 1)):
                    count = str(times * transactions)
                    length = ["-n", "-c", "8", "-t", count, "-M", mode]
                    run(bins / "pgbench", *at, *length, *script, "postgres")
            # Blocks of packets reach tcpdump up to a second late.
            time.sleep(1.5)
            recorder.terminate()
            said = recorder.communicate()[1].decode()
            if not re.search(r"^0 packets dropped", said, re.M):
                raise SystemExit(f"tcpdump lost packets: {said}")
        finally:
            run(*control, "-m", "immediate", "stop")
    return port


def repeat_packets(base, long, size, port):
    """Writes the capture again and again, later each time and from other client addresses."""
    data = pathlib.Path(base).read_bytes()
    records, at = [], 24
    while at + 16 <= len(data):
        seconds, _, captured = struct.unpack_from("<III", data, at)
        source = struct.unpack_from(">H", data, at + 50)[0]
        # The last but one byte of the address that is not the server's.
        records.append((at, seconds, at + (48 if source == port else 44)))
        at += 16 + captured
    span = records[-1][1] - records[0][1] + 2
    packets = 0
    with open(long, "wb") as out:
        out.write(data[:24])
        turn = 0
        while out.tell() < size:
            copy = bytearray(data)
            for start, seconds, address in records:
                struct.pack_into("<I", copy, start, seconds + turn * span)
                copy[address] = turn % 250
            out.write(memoryview(copy)[24:at])
            packets += len(records)
            turn += 1
    return packets


def strace(record, turns):
    """Traces a shell whose children read files and talk over sockets."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as talk:
        talk.write(TALK)
        talk.flush()
        script = (
            "tar -C /usr/share/doc -c . 2>/dev/null | gzip -1 | cat >/dev/null;"
            "find /usr/lib -name '*.py' -size -4k | xargs -n 40 wc -l >/dev/null;"
            f"python3 {talk.name} {turns}"
        )
        calls = "trace=futex,sendto,recvfrom,read,write,close,openat,newfstatat,lseek"
        quiet = ["-qqq", "-e", "signal=none", "-e", calls]
        run("strace", "-f", "-ttt", "-T", *quiet, "-o", record, "sh", "-c", script)


def repeat_lines(base, long, size):
    """Writes the trace again and again, later each time."""
    pieces = []
    for line in pathlib.Path(base).read_bytes().splitlines(keepends=True):
        pid, stamp, rest = line.split(None, 2)
        seconds, decimals = stamp.split(b".")
        pieces.append((pid.ljust(5) + b" ", int(seconds), b"." + decimals + b" " + rest))
    span = pieces[-1][1] - pieces[0][1] + 2
    lines = 0
    with open(long, "wb") as out:
        turn = 0
        while out.tell() < size:
            later = turn * span
            out.write(b"".join([b"%s%d%s" % (p, s + later, rest) for p, s, rest in pieces]))
            lines += len(pieces)
            turn += 1
    return lines


def callgrind(record, sources):
    """Profiles Python under callgrind, instruction by instruction."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as work:
        work.write(WORK)
        work.flush()
        run(
            "valgrind", "--tool=callgrind", "--dump-instr=yes",
            f"--callgrind-out-file={record}", "/usr/bin/python3", work.name, str(sources),
        )


def repeat_profile(base, long, size):
    """Writes the costs of a profile again and again; its totals are as many times as large.

    One part, since callgrind_annotate does not understand files with several.
    """
    text = pathlib.Path(base).read_bytes()
    head, body = re.split(rb"(?<=\n)summary: \d+\n", text, maxsplit=1)
    total = int(re.search(rb"^summary: (\d+)$", text, re.M).group(1))
    body = re.sub(rb"^totals: .*\n", b"", body, flags=re.M).rstrip(b"\n") + b"\n\n"
    turns = -(-size // len(body))
    with open(long, "wb") as out:
        out.write(head + b"summary: %d\n\n" % (total * turns))
        for _ in range(turns):
            out.write(body)
        out.write(b"totals: %d\n" % (total * turns))


def perf(folder, record, sources):
    """Samples Python with its native stacks, as text."""
    data = f"{folder}/perf.data"
    with tempfile.NamedTemporaryFile("w", suffix=".py") as work:
        work.write(WORK)
        work.flush()
        run(
            "perf", "record", "-q", "-e", "cpu-clock", "-F", "2000", "-g", "-o", data,
            "/usr/bin/python3", work.name, str(sources),
        )
    with open(record, "wb") as out:
        subprocess.run(
            ["perf", "script", "--no-inline", "-i", data],
            stdout=out, stderr=subprocess.DEVNULL, check=True,
        )
    os.unlink(data)


def repeat_whole(base, long, size):
    """Writes the file again and again."""
    data = pathlib.Path(base).read_bytes()
    with open(long, "wb") as out:
        while out.tell() < size:
            out.write(data)


def varint(number):
    """A number as protobuf writes it."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, content):
    """A field of protobuf: a number, or bytes with their length."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def pprof(record, size):
    """Writes a CPU profile with as many samples as fill the size, of stacks 8 to 40 deep."""
    chance = random.Random(7)
    strings = ["", "samples", "count", "cpu", "nanoseconds"]
    strings += [f"example.com/shop/part{n % 40}.(*Server).step{n}" for n in range(800)]
    head = field(1, field(1, 1) + field(2, 2)) + field(1, field(1, 3) + field(2, 4))
    head += b"".join(
        field(4, field(1, n) + field(3, 0x400000 + n * 16) + field(4, field(1, n % 800 + 1)))
        for n in range(1, 3001)
    )
    head += b"".join(field(5, field(1, n) + field(2, n + 4)) for n in range(1, 801))
    tail = b"".join(field(6, text.encode()) for text in strings)
    tail += field(11, field(1, 3) + field(2, 4)) + field(12, 10_000_000)
    samples = 0
    with open(record, "wb") as out:
        out.write(head)
        while out.tell() < size:
            piece = []
            for _ in range(10_000):
                depth = chance.randint(8, 40)
                stack = b"".join(varint(chance.randint(1, 3000)) for _ in range(depth))
                times = chance.randint(1, 5)
                values = varint(times) + varint(times * 10_000_000)
                piece.append(field(2, field(1, stack) + field(2, values)))
            out.write(b"".join(piece))
            samples += len(piece)
        out.write(tail)
    return samples
