"""asyncpg: prepares with Flush, and resets a connection that goes back to its pool."""

import asyncio

import asyncpg
from operations import DATABASE, HOST, PASSWORD, PLAIN, PORT, SCRAM, TRUSTED, serve

PARAMETER = "SELECT name FROM zoo WHERE id = $1"
CACHED = "SELECT name FROM zoo WHERE id > $1"


async def no_reset(connection):
    pass


class Client:
    def __init__(self, loop):
        self.loop = loop
        self.connection = None
        self.pool = None

    def settings(self, user, ssl):
        return dict(
            host=HOST, port=int(PORT), database=DATABASE, user=user, password=PASSWORD, ssl=ssl
        )

    async def connect(self, user, ssl):
        if self.connection:
            await self.connection.close()
        self.connection = await asyncpg.connect(**self.settings(user, ssl))

    async def open_pool(self, **options):
        if self.pool:
            await self.pool.close()
        settings = self.settings(TRUSTED, "disable")
        self.pool = await asyncpg.create_pool(min_size=1, max_size=1, **settings, **options)

    async def take(self):
        async with self.pool.acquire():
            pass

    async def transaction(self):
        async with self.connection.transaction():
            for number in (1, 2, 3):
                await self.connection.fetch(CACHED, number)

    async def perform(self, operation):
        match operation:
            case "connect":
                await self.connect(TRUSTED, "disable")
            case "connect, TLS offered":
                await self.connect(TRUSTED, "prefer")
            case "connect, SCRAM":
                await self.connect(SCRAM, "disable")
            case "plain query":
                await self.connection.execute(PLAIN)
            case "fetch without parameters" | "fetch again":
                await self.connection.fetch(PLAIN)
            case "parameter query" | "again":
                await self.connection.fetch(PARAMETER, 1)
            case "prepare a query":
                await self.connection.fetch(CACHED, 1)
            case "transaction of 3 cached queries":
                await self.transaction()
            case "open a pool":
                await self.open_pool()
            case "open a pool without reset":
                await self.open_pool(reset=no_reset)
            case "take from the pool" | "take from the pool without reset":
                await self.take()
            case _:
                raise ValueError("unknown operation")


def main():
    loop = asyncio.new_event_loop()
    client = Client(loop)
    version = f"asyncpg {asyncpg.__version__}"
    serve(version, lambda operation: loop.run_until_complete(client.perform(operation)))


main()
