"""Prints what `cargo bench` of the decoders has found, side by side: each beside copying its bytes.

Takes criterion's folder; `just bench` calls it.
"""

import json
import os
import pathlib
import sys

UNITS = {"strace": "line", "callgrind": "line", "gctrace": "line", "folded": "line"}


def median(folder):
    """Nanoseconds that one reading of the input takes."""
    return json.loads((folder / "new/estimates.json").read_text())["median"]["point_estimate"]


def main():
    print(f"load average {os.getloadavg()[0]:.1f}; medians; a unit is a packet, sample or line")
    print(f"{'':<18} {'MB/s':>7} {'ns/byte':>8} {'ns/unit':>8}  {'× copying':>9}")
    for decode in sorted(pathlib.Path(sys.argv[1]).glob("*/decode")):
        described = json.loads((decode / "new/benchmark.json").read_text())
        size = described["throughput"]["ElementsAndBytes"]
        took, copied = median(decode), median(decode.parent / "copy")
        name = described["group_id"]
        unit = UNITS.get(name, "packet" if name.startswith("pcap") else "sample")
        print(
            f"{name:<18} {size['bytes'] / took * 1e3:7.0f} {took / size['bytes']:8.2f} "
            f"{took / size['elements']:8.0f}  {took / copied:9.1f}  a {unit}"
        )


if __name__ == "__main__":
    main()
