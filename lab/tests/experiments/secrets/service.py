"""An HTTP service that handles secrets: a thread a connection, each with a Postgres and a Redis of
its own. It prints one of them as well, as services do that log too much."""

import os
import socket
import sys
import threading
from urllib.parse import urlsplit

import psycopg


class Redis:
    def __init__(self, url):
        parts = urlsplit(url)
        self.file = socket.create_connection((parts.hostname, parts.port)).makefile("rwb")
        self.ask("AUTH", parts.password)

    def ask(self, *words):
        command = b"*%d\r\n" % len(words)
        for word in words:
            command += b"$%d\r\n%s\r\n" % (len(word), word.encode())
        self.file.write(command)
        self.file.flush()
        head = self.file.readline()
        if head[:1] == b"$" and int(head[1:]) >= 0:
            return self.file.read(int(head[1:]) + 2)[:-2]
        return head


def answer(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    postgres = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    redis = Redis(os.environ["REDIS_URL"])
    file = connection.makefile("rb")
    while line := file.readline():
        length = 0
        while (field := file.readline().strip().lower()) != b"":
            if field.startswith(b"content-length:"):
                length = int(field.split(b":")[1])
        file.read(length)
        body = b"ready"
        if line.startswith(b"POST"):
            postgres.execute("SELECT text FROM notes WHERE owner = 'zq-literal-zq'").fetchall()
            rows = postgres.execute(
                "SELECT text FROM notes WHERE owner = %s", ("zq-parameter-zq",), prepare=True
            ).fetchall()
            redis.ask("SET", "zq-key-zq", "zq-value-zq")
            redis.ask("GET", "zq-key-zq")
            body = b"you wrote: " + rows[0][0].encode()
            os.write(2, b"zq-log-zq\n")
        head = b"HTTP/1.1 200 OK\r\nset-cookie: id=zq-set-cookie-zq\r\ncontent-length: %d\r\n\r\n"
        connection.sendall(head % len(body) + body)


def main():
    host, port = os.environ["BIND"].rsplit(":", 1)
    listener = socket.create_server((host, int(port)), backlog=64)
    print("listening", file=sys.stderr)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
