"""The loop of the blog's /compute on one core, outside HTTP, in Rust and in Go.

    just prime-loop                     times, instructions and the hot loops
    just prime-loop --rounds 12         more turns

Prints Markdown: µs a call by turns, instructions a call as the slope between two numbers of calls
under callgrind, and the instructions of the innermost loop around the division, side by side.
"""

import argparse
import itertools
import math
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CALLS = 200
# Calls of the two runs under callgrind whose difference is divided.
FEW, MANY = 20, 60
# Two-sided 97.5 % quantiles of Student's t for 1 to 11 degrees of freedom.
T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6, help="turns of each program, 2 to 12")
    parser.add_argument("--core", default=str(min(os.sched_getaffinity(0))))
    options = parser.parse_args()
    if not 2 <= options.rounds <= 12:
        parser.error("--rounds: 2 to 12")
    build()
    programs = {
        "Rust": HERE / "rust/target/release/prime-loop",
        "Go": HERE / "go/target/prime-loop",
        "Rust, 64-bit division": HERE / "rust/target/wide/release/prime-loop",
    }
    print(f"core {options.core} · load average {os.getloadavg()[0]:.1f} · {versions()}\n")
    times(programs, options)
    instructions(programs)
    loops(programs)


def build():
    run(["cargo", "build", "--release", "--quiet"], cwd=HERE / "rust")
    # LLVM's way around a 64-bit division whose operands fit into 32 bits, flipped alone.
    wide = {**os.environ, "RUSTFLAGS": "-Ctarget-feature=-idivq-to-divl"}
    run(["cargo", "build", "--release", "--quiet", "--target-dir", "target/wide"],
        cwd=HERE / "rust", env=wide)
    run(["go", "build", "-trimpath", "-o", "target/prime-loop", "."], cwd=HERE / "go")


def run(command, **more):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          capture_output=True, **more).stdout


def versions():
    rustc, go = run(["rustc", "--version"]), run(["go", "env", "GOVERSION"])
    return f"{rustc.split(' (')[0]} · {go.strip()}"


def times(programs, options):
    """Turns in balanced order: Rust, Go, Go, Rust, …; the fastest batch of each turn counts, since
    whatever else runs on the machine only adds."""
    turns = {name: [] for name in programs}
    for turn in range(options.rounds):
        order = list(programs.items())
        for name, program in order if turn % 2 == 0 else reversed(order):
            batches = run(["taskset", "-c", options.core, program, CALLS]).split()
            turns[name].append(min(map(int, batches)) / 1e3)
    print("| | median, µs a call | lowest and highest turn |")
    print("| :--- | ---: | ---: |")
    for name, values in turns.items():
        spread = f"{min(values):.1f} – {max(values):.1f}"
        print(f"| {name} | {statistics.median(values):.1f} | {spread} |")
    print()
    for name in programs:
        if name != "Rust":
            print(f"{name} against Rust: {compared(turns['Rust'], turns[name])}\n")


def compared(base, other):
    """Mean log ratio over turns with its t interval, as the lab compares laps."""
    ratios = [math.log(theirs / ours) for ours, theirs in zip(base, other)]
    mean, half = statistics.mean(ratios), T[len(ratios) - 2] * statistics.stdev(ratios)
    half /= math.sqrt(len(ratios))
    change, low, high = (100 * math.expm1(at) for at in (mean, mean - half, mean + half))
    return (f"{change:+.1f} % ({low:+.1f} to {high:+.1f} %, 95 % interval by t over "
            f"{len(ratios)} turns)")


def instructions(programs):
    print("| | instructions a call |\n| :--- | ---: |")
    for name, program in programs.items():
        few, many = (counted(program, calls) for calls in (FEW, MANY))
        print(f"| {name} | {(many - few) / (MANY - FEW):,.0f} |")
    print()


def counted(program, calls):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        # Callgrind 3.19 does not outlive the signals with which Go's scheduler interrupts loops.
        quiet = {**os.environ, "GODEBUG": "asyncpreemptoff=1", "GOMAXPROCS": "1"}
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        run([*tool, program, calls], env=quiet)
        found = re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)
        if not found:
            raise SystemExit(f"callgrind wrote no total for {program}")
        return int(found[1])


def loops(programs):
    """The innermost loops around the division, side by side."""
    found = {
        name: hot_loop(program, r"sum_of_primes|main\.(sumOfPrimes|isPrime)$")
        for name, program in programs.items()
    }
    heads = [f"{name}: {len(loop)} instructions" for name, loop in found.items()]
    for row in itertools.chain([heads], itertools.zip_longest(*found.values(), fillvalue="")):
        print(("    " + "".join(f"{cell:<32}" for cell in row)).rstrip())


def hot_loop(program, symbol):
    """The instructions from the target of the shortest jump back over both square and division."""
    text = run(["objdump", "-d", "--no-show-raw-insn", "--demangle", program])
    best = None
    for block in re.split(r"\n\n", text):
        head = re.match(r"[0-9a-f]+ <(.*)>:", block.strip())
        if not head or not re.search(symbol, re.sub(r"::h[0-9a-f]{16}$", "", head[1])):
            continue
        lines = re.findall(r"^\s*([0-9a-f]+):\s*(.*?)\s*$", block, re.MULTILINE)
        places = {int(address, 16): index for index, (address, _) in enumerate(lines)}
        for index, (_, words) in enumerate(lines):
            jump = re.match(r"j\w+\s+([0-9a-f]+)", words)
            start = places.get(int(jump[1], 16)) if jump else None
            if start is None or start > index:
                continue
            body = lines[start:index + 1]
            # The square that is compared with the number, and the division by it.
            both = all(any(word in words for _, words in body) for word in ("mul", "div"))
            if both and (best is None or len(body) < len(best)):
                best = body
    if best is None:
        raise SystemExit(f"no loop around a division in {program}")
    return [re.sub(r"\s+", " ", re.sub(r"\s*<.*>|\s*#.*", "", words)) for _, words in best]


if __name__ == "__main__":
    main()
