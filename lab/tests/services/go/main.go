// A blog in Go: net/http, pgxpool, go-redis.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

type blog struct {
	pool  *pgxpool.Pool
	redis *redis.Client
}

type post struct {
	Id       int      `json:"id"`
	Title    string   `json:"title"`
	Views    int64    `json:"views,omitempty"`
	Author   string   `json:"author,omitempty"`
	Comments []string `json:"comments,omitempty"`
}

// One query.
func (b *blog) index(ctx context.Context) (any, error) {
	rows, err := b.pool.Query(ctx, "SELECT id, title FROM posts ORDER BY id LIMIT 10")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p post, err error) {
		err = row.Scan(&p.Id, &p.Title)
		return p, err
	})
}

// Three queries, one of them in a transaction, and a counter in Redis.
func (b *blog) detail(ctx context.Context) (any, error) {
	p := post{Id: 1}
	var err error
	if p.Views, err = b.redis.Incr(ctx, "views:1").Result(); err != nil {
		return nil, err
	}
	const title = "SELECT title, name FROM posts JOIN authors ON authors.id = author WHERE posts.id = $1"
	if err = b.pool.QueryRow(ctx, title, 1).Scan(&p.Title, &p.Author); err != nil {
		return nil, err
	}
	rows, err := b.pool.Query(ctx, "SELECT text FROM comments WHERE post = $1 ORDER BY id", 1)
	if err != nil {
		return nil, err
	}
	if p.Comments, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE posts SET seen = seen + 1 WHERE id = $1", 1)
		return err
	})
	return p, err
}

// One query for the authors, and one for each of them.
func (b *blog) authors(ctx context.Context) (any, error) {
	rows, err := b.pool.Query(ctx, "SELECT id FROM authors ORDER BY id")
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, err
	}
	counts := map[int]int{}
	for _, id := range ids {
		var count int
		const sql = "SELECT count(*) FROM posts WHERE author = $1"
		if err := b.pool.QueryRow(ctx, sql, id).Scan(&count); err != nil {
			return nil, err
		}
		counts[id] = count
	}
	return counts, nil
}

func answer(page func(context.Context) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := page(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(body)
	}
}

func main() {
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL")+"?sslmode=disable&pool_max_conns=8")
	if err != nil {
		log.Fatal(err)
	}
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	b := &blog{pool: pool, redis: redis.NewClient(options)}
	http.HandleFunc("/posts", answer(b.index))
	http.HandleFunc("/posts/1", answer(b.detail))
	http.HandleFunc("/authors", answer(b.authors))
	log.Fatal(http.ListenAndServe(os.Getenv("BIND"), nil))
}
