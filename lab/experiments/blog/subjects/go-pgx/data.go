package main

import (
	"context"

	"github.com/jackc/pgx/v5"
)

type tag struct{ Slug, Name string }

// entry is a post in a list.
type entry struct {
	id                                    int64
	Slug, Title, Summary, Author, Created string
	Tags                                  []tag
	Comments                              int64
}

type post struct {
	id                           int64
	Title, Body, Author, Created string
	Tags                         []tag
	Comments                     []comment
}

type comment struct{ Author, Body, Created string }

// newest is the 20 newest posts: three queries.
func (b *blog) newest(ctx context.Context) ([]entry, error) {
	rows, err := b.pool.Query(ctx, "SELECT p.id, p.slug, p.title, p.summary, a.name, "+
		"to_char(p.created_at, 'YYYY-MM-DD HH24:MI') "+
		"FROM posts p JOIN authors a ON a.id = p.author_id "+
		"ORDER BY p.created_at DESC, p.id DESC LIMIT 20")
	if err != nil {
		return nil, err
	}
	return b.entries(ctx, rows)
}

// tagged is a tag and its 20 newest posts: four queries. pgx.ErrNoRows when there is no such tag.
func (b *blog) tagged(ctx context.Context, slug string) (tag, []entry, error) {
	var id int64
	var found tag
	row := b.pool.QueryRow(ctx, "SELECT id, slug, name FROM tags WHERE slug = $1", slug)
	if err := row.Scan(&id, &found.Slug, &found.Name); err != nil {
		return tag{}, nil, err
	}
	rows, err := b.pool.Query(ctx, "SELECT p.id, p.slug, p.title, p.summary, a.name, "+
		"to_char(p.created_at, 'YYYY-MM-DD HH24:MI') "+
		"FROM post_tags t JOIN posts p ON p.id = t.post_id JOIN authors a ON a.id = p.author_id "+
		"WHERE t.tag_id = $1 ORDER BY p.created_at DESC, p.id DESC LIMIT 20", id)
	if err != nil {
		return tag{}, nil, err
	}
	entries, err := b.entries(ctx, rows)
	return found, entries, err
}

// post is a post with all its comments: three queries. pgx.ErrNoRows when there is no such post.
func (b *blog) post(ctx context.Context, slug string) (*post, error) {
	var found post
	row := b.pool.QueryRow(ctx, "SELECT p.id, p.title, p.body, a.name, "+
		"to_char(p.created_at, 'YYYY-MM-DD HH24:MI') "+
		"FROM posts p JOIN authors a ON a.id = p.author_id WHERE p.slug = $1", slug)
	err := row.Scan(&found.id, &found.Title, &found.Body, &found.Author, &found.Created)
	if err != nil {
		return nil, err
	}
	rows, err := b.pool.Query(ctx, "SELECT t.slug, t.name FROM post_tags l "+
		"JOIN tags t ON t.id = l.tag_id WHERE l.post_id = $1 ORDER BY t.id", found.id)
	if err != nil {
		return nil, err
	}
	if found.Tags, err = pgx.CollectRows(rows, pgx.RowToStructByPos[tag]); err != nil {
		return nil, err
	}
	rows, err = b.pool.Query(ctx, "SELECT author, body, "+
		"to_char(created_at, 'YYYY-MM-DD HH24:MI') "+
		"FROM comments WHERE post_id = $1 ORDER BY created_at, id", found.id)
	if err != nil {
		return nil, err
	}
	found.Comments, err = pgx.CollectRows(rows, pgx.RowToStructByPos[comment])
	return &found, err
}

// entries reads posts, then their tags and the number of their comments: two queries more.
func (b *blog) entries(ctx context.Context, rows pgx.Rows) ([]entry, error) {
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e entry, err error) {
		err = row.Scan(&e.id, &e.Slug, &e.Title, &e.Summary, &e.Author, &e.Created)
		return e, err
	})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(entries))
	place := make(map[int64]*entry, len(entries))
	for i := range entries {
		ids[i] = entries[i].id
		place[ids[i]] = &entries[i]
	}
	rows, err = b.pool.Query(ctx, "SELECT l.post_id, t.slug, t.name FROM post_tags l "+
		"JOIN tags t ON t.id = l.tag_id WHERE l.post_id = ANY($1) ORDER BY l.post_id, t.id", ids)
	if err != nil {
		return nil, err
	}
	var id, count int64
	var found tag
	_, err = pgx.ForEachRow(rows, []any{&id, &found.Slug, &found.Name}, func() error {
		place[id].Tags = append(place[id].Tags, found)
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows, err = b.pool.Query(ctx,
		"SELECT post_id, count(*) FROM comments WHERE post_id = ANY($1) GROUP BY post_id", ids)
	if err != nil {
		return nil, err
	}
	_, err = pgx.ForEachRow(rows, []any{&id, &count}, func() error {
		place[id].Comments = count
		return nil
	})
	return entries, err
}
