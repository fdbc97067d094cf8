//! The queries: three for the index, three for a post, four for a tag.

use std::collections::HashMap;

use serde::Serialize;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgPool, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{Error, Row};

use crate::{Acquire, Blog};

/// Where a page's queries run: each on a connection of its own, or all on one.
pub enum Database {
    PerQuery(PgPool),
    PerPage(Box<PoolConnection<Postgres>>),
}

impl Database {
    pub async fn of(blog: &Blog) -> Result<Self, Error> {
        Ok(match blog.acquire {
            Acquire::Query => Self::PerQuery(blog.pool.clone()),
            Acquire::Page => Self::PerPage(Box::new(blog.pool.acquire().await?)),
        })
    }

    async fn rows(&mut self, query: Query<'_, Postgres, PgArguments>) -> Result<Vec<PgRow>, Error> {
        match self {
            Self::PerQuery(pool) => query.fetch_all(&*pool).await,
            Self::PerPage(connection) => query.fetch_all(&mut ***connection).await,
        }
    }
}

#[derive(Serialize)]
pub struct Tag {
    slug: String,
    name: String,
}

/// A post in a list.
#[derive(Serialize)]
pub struct Entry {
    #[serde(skip)]
    id: i64,
    slug: String,
    title: String,
    summary: String,
    author: String,
    created: String,
    tags: Vec<Tag>,
    comments: i64,
}

#[derive(Serialize)]
pub struct Post {
    #[serde(skip)]
    id: i64,
    title: String,
    body: String,
    author: String,
    created: String,
    tags: Vec<Tag>,
    comments: Vec<Comment>,
}

#[derive(Serialize)]
pub struct Comment {
    author: String,
    body: String,
    created: String,
}

/// The 20 newest posts: three queries.
pub async fn newest(database: &mut Database) -> Result<Vec<Entry>, Error> {
    let query = sqlx::query(
        "SELECT p.id, p.slug, p.title, p.summary, a.name, \
         to_char(p.created_at, 'YYYY-MM-DD HH24:MI') \
         FROM posts p JOIN authors a ON a.id = p.author_id \
         ORDER BY p.created_at DESC, p.id DESC LIMIT 20",
    );
    let entries = entries(database.rows(query).await?);
    with_tags_and_counts(database, entries).await
}

/// A tag and its 20 newest posts: four queries.
pub async fn tagged(
    database: &mut Database,
    slug: &str,
) -> Result<Option<(Tag, Vec<Entry>)>, Error> {
    let query = sqlx::query("SELECT id, slug, name FROM tags WHERE slug = $1").bind(slug);
    let Some(row) = database.rows(query).await?.into_iter().next() else { return Ok(None) };
    let tag = Tag { slug: row.get(1), name: row.get(2) };
    let query = sqlx::query(
        "SELECT p.id, p.slug, p.title, p.summary, a.name, \
         to_char(p.created_at, 'YYYY-MM-DD HH24:MI') \
         FROM post_tags t JOIN posts p ON p.id = t.post_id JOIN authors a ON a.id = p.author_id \
         WHERE t.tag_id = $1 ORDER BY p.created_at DESC, p.id DESC LIMIT 20",
    )
    .bind(row.get::<i64, _>(0));
    let entries = entries(database.rows(query).await?);
    Ok(Some((tag, with_tags_and_counts(database, entries).await?)))
}

/// A post with all its comments: three queries.
pub async fn post(database: &mut Database, slug: &str) -> Result<Option<Post>, Error> {
    let query = sqlx::query(
        "SELECT p.id, p.title, p.body, a.name, to_char(p.created_at, 'YYYY-MM-DD HH24:MI') \
         FROM posts p JOIN authors a ON a.id = p.author_id WHERE p.slug = $1",
    )
    .bind(slug);
    let Some(row) = database.rows(query).await?.into_iter().next() else { return Ok(None) };
    let mut post = Post {
        id: row.get(0),
        title: row.get(1),
        body: row.get(2),
        author: row.get(3),
        created: row.get(4),
        tags: Vec::new(),
        comments: Vec::new(),
    };
    let query = sqlx::query(
        "SELECT t.slug, t.name FROM post_tags l JOIN tags t ON t.id = l.tag_id \
         WHERE l.post_id = $1 ORDER BY t.id",
    )
    .bind(post.id);
    post.tags = (database.rows(query).await?.iter())
        .map(|row| Tag { slug: row.get(0), name: row.get(1) })
        .collect();
    let query = sqlx::query(
        "SELECT author, body, to_char(created_at, 'YYYY-MM-DD HH24:MI') \
         FROM comments WHERE post_id = $1 ORDER BY created_at, id",
    )
    .bind(post.id);
    post.comments = (database.rows(query).await?.iter())
        .map(|row| Comment { author: row.get(0), body: row.get(1), created: row.get(2) })
        .collect();
    Ok(Some(post))
}

fn entries(rows: Vec<PgRow>) -> Vec<Entry> {
    (rows.iter())
        .map(|row| Entry {
            id: row.get(0),
            slug: row.get(1),
            title: row.get(2),
            summary: row.get(3),
            author: row.get(4),
            created: row.get(5),
            tags: Vec::new(),
            comments: 0,
        })
        .collect()
}

async fn with_tags_and_counts(
    database: &mut Database,
    mut entries: Vec<Entry>,
) -> Result<Vec<Entry>, Error> {
    let ids: Vec<i64> = entries.iter().map(|entry| entry.id).collect();
    let query = sqlx::query(
        "SELECT l.post_id, t.slug, t.name FROM post_tags l JOIN tags t ON t.id = l.tag_id \
         WHERE l.post_id = ANY($1) ORDER BY l.post_id, t.id",
    )
    .bind(&ids);
    let mut tags: HashMap<i64, Vec<Tag>> = HashMap::new();
    for row in database.rows(query).await? {
        let tag = Tag { slug: row.get(1), name: row.get(2) };
        tags.entry(row.get(0)).or_default().push(tag);
    }
    let query = sqlx::query(
        "SELECT post_id, count(*) FROM comments WHERE post_id = ANY($1) GROUP BY post_id",
    )
    .bind(&ids);
    let counts: HashMap<i64, i64> =
        database.rows(query).await?.iter().map(|row| (row.get(0), row.get(1))).collect();
    for entry in &mut entries {
        entry.tags = tags.remove(&entry.id).unwrap_or_default();
        entry.comments = counts.get(&entry.id).copied().unwrap_or(0);
    }
    Ok(entries)
}
