/* libpq's C interface: says its version, then performs one operation for each line that it reads,
 * and answers `done` or `failed` and why. */

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const PLAIN = "SELECT count(*) FROM zoo";
static const char *const PARAMETER = "SELECT name FROM zoo WHERE id = $1";
static const char *const VALUES[] = {"1"};
static PGconn *connection;
static char failure[512];

static int fail(const char *what) {
    snprintf(failure, sizeof failure, "%s", what);
    char *end = strchr(failure, '\n');
    if (end) *end = '\0';
    return 0;
}

static int connect_as(const char *user, const char *sslmode) {
    if (connection) PQfinish(connection);
    const char *names[] = {"host", "port", "dbname", "user", "password", "sslmode", NULL};
    const char *values[] = {
        getenv("ZOO_HOST"), getenv("ZOO_PORT"),     getenv("ZOO_DATABASE"),
        getenv(user),       getenv("ZOO_PASSWORD"), sslmode,
        NULL};
    connection = PQconnectdbParams(names, values, 0);
    return PQstatus(connection) == CONNECTION_OK || fail(PQerrorMessage(connection));
}

/* Takes a result, which must be a good one. */
static int good(PGresult *result) {
    ExecStatusType status = PQresultStatus(result);
    int is_good = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK ||
                  status == PGRES_PIPELINE_SYNC;
    PQclear(result);
    return is_good || fail(PQerrorMessage(connection));
}

static int exec(const char *sql) { return good(PQexec(connection, sql)); }

static int prepared(void) {
    return good(PQexecPrepared(connection, "cached", 1, VALUES, NULL, NULL, 0));
}

static int transaction(void) {
    return exec("BEGIN") && prepared() && prepared() && prepared() && exec("COMMIT");
}

/* Sends `count` statements, a Sync after each or after all, then reads every answer. */
static int pipeline(const char *const *statements, int count, int sync_each) {
    if (!PQenterPipelineMode(connection)) return fail(PQerrorMessage(connection));
    int syncs = 0;
    for (int at = 0; at < count; at++) {
        int parameters = strchr(statements[at], '$') != NULL;
        PQsendQueryParams(connection, statements[at], parameters, NULL, VALUES, NULL, NULL, 0);
        if (sync_each || at == count - 1) syncs += PQpipelineSync(connection);
    }
    int all_good = 1;
    while (syncs > 0) {
        PGresult *result = PQgetResult(connection);
        if (!result) continue;
        syncs -= PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        all_good &= good(result);
    }
    return PQexitPipelineMode(connection) && all_good;
}

static int perform(const char *operation) {
    const char *const three[] = {PARAMETER, PARAMETER, PARAMETER};
    const char *const five[] = {"BEGIN", PARAMETER, PARAMETER, PARAMETER, "COMMIT"};
    const char *is = operation;
    if (!strcmp(is, "connect")) return connect_as("ZOO_TRUSTED", "disable");
    if (!strcmp(is, "connect, TLS offered")) return connect_as("ZOO_TRUSTED", "prefer");
    if (!strcmp(is, "connect, SCRAM")) return connect_as("ZOO_SCRAM", "disable");
    if (!strcmp(is, "connect, MD5")) return connect_as("ZOO_MD5", "disable");
    if (!strcmp(is, "plain query")) return exec(PLAIN);
    if (!strcmp(is, "parameter query") || !strcmp(is, "again"))
        return good(PQexecParams(connection, PARAMETER, 1, NULL, VALUES, NULL, NULL, 0));
    if (!strcmp(is, "prepare"))
        return good(PQprepare(connection, "cached", PARAMETER, 1, NULL));
    if (!strcmp(is, "prepared query")) return prepared();
    if (!strcmp(is, "transaction of 3 cached queries")) return transaction();
    if (!strcmp(is, "pipeline of 3")) return pipeline(three, 3, 0);
    if (!strcmp(is, "pipelined transaction of 3")) return pipeline(five, 5, 0);
    if (!strcmp(is, "pipeline of 3, Sync after each")) return pipeline(three, 3, 1);
    return fail("unknown operation");
}

int main(void) {
    char line[256];
    printf("libpq %d.%d\n", PQlibVersion() / 10000, PQlibVersion() % 10000);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (perform(line)) {
            puts("done");
        } else {
            printf("failed %s\n", failure);
        }
        fflush(stdout);
    }
    return 0;
}
