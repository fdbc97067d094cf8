package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/redis/go-redis/v9"
)

// getter asks Redis for a page; redis.Nil when it has none.
type getter interface {
	get(ctx context.Context, key string) ([]byte, error)
}

func (b *blog) cachedIndex(r *http.Request) ([]byte, error) {
	return b.cached(r, "page:index", b.index)
}

func (b *blog) cachedDetail(r *http.Request) ([]byte, error) {
	return b.cached(r, "page:post:"+r.PathValue("slug"), b.detail)
}

func (b *blog) cached(
	r *http.Request, key string, work func(*http.Request) ([]byte, error),
) ([]byte, error) {
	page, err := b.get.get(r.Context(), key)
	if !errors.Is(err, redis.Nil) {
		return page, err
	}
	if page, err = work(r); err != nil {
		return nil, err
	}
	return page, b.redis.Set(r.Context(), key, page, 0).Err()
}

// single sends each GET by itself, on a connection of the client's pool.
type single struct{ client *redis.Client }

func (s single) get(ctx context.Context, key string) ([]byte, error) {
	return s.client.Get(ctx, key).Bytes()
}

// pipelined sends the GETs of requests that wait at the same time together, as a client with one
// multiplexed connection does.
type pipelined struct{ wanted chan wanted }

type wanted struct {
	key   string
	reply chan reply
}

type reply struct {
	page []byte
	err  error
}

// What one batch may hold; more than there are requests at a time.
const batchMax = 256

func newPipelined(ctx context.Context, client *redis.Client) pipelined {
	p := pipelined{make(chan wanted, batchMax)}
	go p.run(ctx, client)
	return p
}

func (p pipelined) get(ctx context.Context, key string) ([]byte, error) {
	answer := make(chan reply, 1)
	select {
	case p.wanted <- wanted{key, answer}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case got := <-answer:
		return got.page, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run sends what waits, and while that is under way more comes to wait.
func (p pipelined) run(ctx context.Context, client *redis.Client) {
	batch := make([]wanted, 0, batchMax)
	commands := make([]*redis.StringCmd, 0, batchMax)
	for {
		batch, commands = batch[:0], commands[:0]
		select {
		case first := <-p.wanted:
			batch = append(batch, first)
		case <-ctx.Done():
			return
		}
		for more := true; more && len(batch) < batchMax; {
			select {
			case next := <-p.wanted:
				batch = append(batch, next)
			default:
				more = false
			}
		}
		pipe := client.Pipeline()
		for _, one := range batch {
			commands = append(commands, pipe.Get(ctx, one.key))
		}
		// Each command holds its own error.
		_, _ = pipe.Exec(ctx)
		for i, one := range batch {
			page, err := commands[i].Bytes()
			one.reply <- reply{page, err}
		}
	}
}
