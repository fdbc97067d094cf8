"""psycopg 3, whose own pool is part of the zoo where it is installed."""

import psycopg
from operations import DATABASE, HOST, MD5, PASSWORD, PLAIN, PORT, SCRAM, TRUSTED, serve

PARAMETER = "SELECT name FROM zoo WHERE id = %s"
CACHED = "SELECT name FROM zoo WHERE id > %s"


def dsn(user, sslmode):
    return (
        f"host={HOST} port={PORT} dbname={DATABASE} user={user} password={PASSWORD}"
        f" sslmode={sslmode}"
    )


class Client:
    def __init__(self):
        self.connection = None
        self.pool = None

    def connect(self, user, sslmode):
        if self.connection:
            self.connection.close()
        self.connection = psycopg.connect(dsn(user, sslmode), autocommit=True)

    def parameter(self, number):
        return self.connection.execute(PARAMETER, (number,)).fetchone()

    def cached(self, number):
        return self.connection.execute(CACHED, (number,), prepare=True).fetchall()

    def open_pool(self, **options):
        from psycopg_pool import ConnectionPool

        if self.pool:
            self.pool.close()
        self.pool = ConnectionPool(
            dsn(TRUSTED, "disable"), min_size=1, max_size=1, open=True, **options
        )
        self.pool.wait()

    def pool_with_check(self):
        from psycopg_pool import ConnectionPool

        self.open_pool(check=ConnectionPool.check_connection)

    def take(self, use=lambda connection: None):
        with self.pool.connection() as connection:
            use(connection)

    def pipelined(self):
        with self.connection.pipeline():
            cursors = [
                self.connection.execute(PARAMETER, (number,), prepare=False)
                for number in (1, 2, 3)
            ]
            for cursor in cursors:
                cursor.fetchone()

    def pipelined_transaction(self, read):
        with self.connection.pipeline(), self.connection.transaction():
            for number in (1, 2, 3):
                cursor = self.connection.execute(PARAMETER, (number,), prepare=False)
                if read:
                    cursor.fetchone()

    def transaction(self):
        with self.connection.transaction():
            for number in (1, 2, 3):
                self.cached(number)

    def perform(self, operation):
        match operation:
            case "connect":
                self.connect(TRUSTED, "disable")
            case "connect, TLS offered":
                self.connect(TRUSTED, "prefer")
            case "connect, SCRAM":
                self.connect(SCRAM, "disable")
            case "connect, MD5":
                self.connect(MD5, "disable")
            case "plain query":
                self.connection.execute(PLAIN).fetchone()
            case "parameter query" | "again" | "run 6" | "run 7":
                self.parameter(1)
            case "runs 3 to 5":
                for number in (1, 2, 3):
                    self.parameter(number)
            case "prepare a query":
                self.cached(1)
            case "transaction of 3 cached queries":
                self.transaction()
            case "pipeline of 3":
                self.pipelined()
            case "pipelined transaction of 3":
                self.pipelined_transaction(read=False)
            case "the same, each row awaited":
                self.pipelined_transaction(read=True)
            case "open a pool":
                self.open_pool()
            case "open a pool with check":
                self.pool_with_check()
            case "take from the pool":
                self.take()
            case "query on the pool":
                self.take(lambda connection: connection.execute(PLAIN).fetchone())
            case _:
                raise ValueError("unknown operation")


serve(f"psycopg {psycopg.__version__}, libpq {psycopg.pq.version()}", Client().perform)
