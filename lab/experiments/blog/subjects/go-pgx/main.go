// The blog on net/http, pgx, html/template and go-redis: six routes of one page each, byte for
// byte the pages of axum-sqlx.
//
// Settings come from the environment: DATABASE_URL, REDIS_URL, BIND, and GETS (`single` or
// `pipelined`): how cached pages are asked for. GOGC and GODEBUG are the runtime's own.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

// blog is what every handler shares.
type blog struct {
	pool  *pgxpool.Pool
	redis *redis.Client
	get   getter
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	settings := map[string]string{"DATABASE_URL": "", "REDIS_URL": "", "BIND": "", "GETS": ""}
	for name := range settings {
		value, there := os.LookupEnv(name)
		if !there {
			return fmt.Errorf("the environment variable %s is not set", name)
		}
		settings[name] = value
	}
	pool, err := connect(ctx, settings["DATABASE_URL"])
	if err != nil {
		return err
	}
	defer pool.Close()
	options, err := redis.ParseURL(settings["REDIS_URL"])
	if err != nil {
		return err
	}
	// The library's default on four processors, so that it does not hang on how many there are.
	options.PoolSize = 40
	client := redis.NewClient(options)
	defer client.Close()
	b := &blog{pool: pool, redis: client}
	switch gets := settings["GETS"]; gets {
	case "single":
		b.get = single{client}
	case "pipelined":
		b.get = newPipelined(ctx, client)
	default:
		return fmt.Errorf("GETS is %q, not single or pipelined", gets)
	}
	return serve(ctx, settings["BIND"], b.routes())
}

// connect opens a pool of the same size as every other subject's.
func connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 16
	config.MinConns = 4
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return pool, pool.Ping(ctx)
}

func serve(ctx context.Context, address string, handler http.Handler) error {
	server := &http.Server{Addr: address, Handler: handler}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		limit, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		done <- server.Shutdown(limit)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}

func (b *blog) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "ready")
	})
	mux.HandleFunc("GET /{$}", answer(b.index))
	mux.HandleFunc("GET /post/{slug}", answer(b.detail))
	mux.HandleFunc("GET /tag/{slug}", answer(b.tag))
	mux.HandleFunc("GET /cached", answer(b.cachedIndex))
	mux.HandleFunc("GET /cached/post/{slug}", answer(b.cachedDetail))
	mux.HandleFunc("GET /compute", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, sumOfPrimes(20_000))
	})
	return mux
}
