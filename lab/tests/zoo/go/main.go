// pgx v5 and pgxpool: says its version, then performs one operation for each line that it reads,
// and answers `done` or `failed` and why.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	plain     = "SELECT count(*) FROM zoo"
	parameter = "SELECT name FROM zoo WHERE id = $1"
	cached    = "SELECT name FROM zoo WHERE id > $1"
)

type client struct {
	ctx        context.Context
	connection *pgx.Conn
	pool       *pgxpool.Pool
}

func dsn(user, sslmode string) string {
	return fmt.Sprintf("host=%s port=%s dbname=%s user=%s password=%s sslmode=%s",
		os.Getenv("ZOO_HOST"), os.Getenv("ZOO_PORT"), os.Getenv("ZOO_DATABASE"),
		os.Getenv(user), os.Getenv("ZOO_PASSWORD"), sslmode)
}

func (c *client) connect(user, sslmode string) (err error) {
	if c.connection != nil {
		c.connection.Close(c.ctx)
	}
	c.connection, err = pgx.Connect(c.ctx, dsn(user, sslmode))
	return err
}

func (c *client) query(sql string, arguments ...any) error {
	rows, err := c.connection.Query(c.ctx, sql, arguments...)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

func (c *client) exec(sql string) error {
	_, err := c.connection.Exec(c.ctx, sql)
	return err
}

func (c *client) transaction() error {
	tx, err := c.connection.Begin(c.ctx)
	if err != nil {
		return err
	}
	for id := 1; id <= 3; id++ {
		if err := c.query(cached, id); err != nil {
			return err
		}
	}
	return tx.Commit(c.ctx)
}

func (c *client) batch(statements ...string) error {
	batch := &pgx.Batch{}
	for _, sql := range statements {
		batch.Queue(sql, 1)
	}
	return c.connection.SendBatch(c.ctx, batch).Close()
}

func (c *client) openPool() (err error) {
	config, err := pgxpool.ParseConfig(dsn("ZOO_TRUSTED", "disable") + " pool_max_conns=1")
	if err != nil {
		return err
	}
	if c.pool, err = pgxpool.NewWithConfig(c.ctx, config); err != nil {
		return err
	}
	return c.take()
}

func (c *client) take() error {
	taken, err := c.pool.Acquire(c.ctx)
	if err != nil {
		return err
	}
	taken.Release()
	return nil
}

var modes = map[string]pgx.QueryExecMode{
	"cache describe":  pgx.QueryExecModeCacheDescribe,
	"describe exec":   pgx.QueryExecModeDescribeExec,
	"exec":            pgx.QueryExecModeExec,
	"simple protocol": pgx.QueryExecModeSimpleProtocol,
}

func (c *client) perform(operation string) error {
	switch operation {
	case "connect":
		return c.connect("ZOO_TRUSTED", "disable")
	case "connect, TLS offered":
		return c.connect("ZOO_TRUSTED", "prefer")
	case "connect, SCRAM":
		return c.connect("ZOO_SCRAM", "disable")
	case "plain query", "plain query again":
		return c.query(plain)
	case "exec without arguments":
		return c.exec("SELECT max(id) FROM zoo")
	case "parameter query", "again":
		return c.query(parameter, 1)
	case "prepare a query":
		return c.query(cached, 1)
	case "transaction of 3 cached queries":
		return c.transaction()
	case "batch of 3 cached queries":
		return c.batch(cached, cached, cached)
	case "batch of 2 new queries":
		return c.batch("SELECT id FROM zoo WHERE id < $1", "SELECT id FROM zoo WHERE id <> $1")
	case "open a pool":
		return c.openPool()
	case "take from the pool":
		return c.take()
	case "take after a second":
		time.Sleep(1200 * time.Millisecond)
		return c.take()
	}
	if name, found := strings.CutPrefix(operation, "mode "); found {
		name = strings.TrimSuffix(name, ", again")
		if mode, known := modes[name]; known {
			return c.query("SELECT name FROM zoo WHERE id >= $1 /* "+name+" */", mode, 1)
		}
	}
	return fmt.Errorf("unknown operation")
}

func version() string {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "github.com/jackc/pgx/v5" {
			return "pgx " + module.Version + ", " + runtime.Version()
		}
	}
	return "pgx of an unknown version"
}

func main() {
	fmt.Println(version())
	c := &client{ctx: context.Background()}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := c.perform(strings.TrimSpace(lines.Text())); err != nil {
			fmt.Println("failed", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("done")
		}
	}
}
