"""The side of a client in the talk with the test.

A client says its version, then performs one operation for each line that it reads, and answers
`done` or `failed` and why.
"""

import os
import sys

HOST = os.environ["ZOO_HOST"]
PORT = os.environ["ZOO_PORT"]
DATABASE = os.environ["ZOO_DATABASE"]
TRUSTED = os.environ["ZOO_TRUSTED"]
SCRAM = os.environ["ZOO_SCRAM"]
MD5 = os.environ["ZOO_MD5"]
PASSWORD = os.environ["ZOO_PASSWORD"]

PLAIN = "SELECT count(*) FROM zoo"


def serve(version, perform):
    """Performs operations until nobody wants any more."""
    print(version, flush=True)
    for line in sys.stdin:
        try:
            perform(line.strip())
            answer = "done"
        except Exception as error:
            answer = f"failed {type(error).__name__}: {error}".replace("\n", " ")
        print(answer, flush=True)
