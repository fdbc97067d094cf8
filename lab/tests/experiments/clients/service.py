"""A pre-forking HTTP service whose two workers each hold two real Postgres clients.

/flush     asyncpg without statement cache: every query prepares with Flush, then runs with Sync
/pipeline  psycopg 3 in pipeline mode: three queries go out before an answer is read
/plain     psycopg 3: one query

The parent only waits; so what a request costs is spread over the processes of the workers.
"""

import asyncio
import os
import signal
import socket

import asyncpg
import psycopg


class Worker:
    def __init__(self, flush, pipeline):
        self.flush = flush
        self.pipeline = pipeline
        # Neither client lets two requests share its connection at once.
        self.turn = asyncio.Lock()

    async def body(self, path):
        async with self.turn:
            if path == "/flush":
                return str(await self.flush.fetchval("SELECT 40 + $1::int", 2))
            if path == "/pipeline":
                async with self.pipeline.pipeline():
                    cursors = [
                        await self.pipeline.execute("SELECT 10 + %s::int", (n,), prepare=False)
                        for n in range(3)
                    ]
                    rows = [await cursor.fetchone() for cursor in cursors]
                return str(sum(row[0] for row in rows))
            if path == "/plain":
                cursor = await self.pipeline.execute("SELECT 7")
                return str((await cursor.fetchone())[0])
            return "ready"

    async def serve(self, reader, writer):
        try:
            while line := await reader.readline():
                path = line.split()[1].decode()
                while (await reader.readline()).strip():
                    pass
                body = (await self.body(path)).encode()
                head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
                writer.write(head + body)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


async def work(listener):
    url = os.environ["DATABASE_URL"]
    flush = await asyncpg.connect(url, statement_cache_size=0)
    pipeline = await psycopg.AsyncConnection.connect(url, autocommit=True)
    server = await asyncio.start_server(Worker(flush, pipeline).serve, sock=listener)
    async with server:
        await server.serve_forever()


def main():
    host, port = os.environ["BIND"].rsplit(":", 1)
    listener = socket.create_server((host, int(port)), backlog=64)
    workers = []
    for _ in range(2):
        worker = os.fork()
        if worker == 0:
            asyncio.run(work(listener))
            os._exit(0)
        workers.append(worker)

    def stop(*_):
        for worker in workers:
            os.kill(worker, signal.SIGKILL)

    signal.signal(signal.SIGTERM, stop)
    for worker in workers:
        os.waitpid(worker, 0)


if __name__ == "__main__":
    main()
