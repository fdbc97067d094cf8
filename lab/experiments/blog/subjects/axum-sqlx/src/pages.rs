//! The pages that come from Postgres.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use tera::{Context, Tera};

use crate::Blog;
use crate::data::{self, Database};

/// Why there is no page.
pub enum Failure {
    Missing,
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Missing => StatusCode::NOT_FOUND.into_response(),
            Self::Broken(error) => {
                eprintln!("error: {error}");
                (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
            }
        }
    }
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

/// The templates, compiled into the program.
pub fn templates() -> tera::Result<Tera> {
    let mut templates = Tera::default();
    templates.add_raw_templates([
        ("base.html", include_str!("../templates/base.html")),
        ("entries.html", include_str!("../templates/entries.html")),
        ("index.html", include_str!("../templates/index.html")),
        ("tag.html", include_str!("../templates/tag.html")),
        ("post.html", include_str!("../templates/post.html")),
    ])?;
    Ok(templates)
}

pub async fn index(State(blog): State<Blog>) -> Result<Html<String>, Failure> {
    index_page(&blog).await.map(Html)
}

pub async fn detail(
    State(blog): State<Blog>,
    Path(slug): Path<String>,
) -> Result<Html<String>, Failure> {
    detail_page(&blog, &slug).await.map(Html)
}

pub async fn tag(
    State(blog): State<Blog>,
    Path(slug): Path<String>,
) -> Result<Html<String>, Failure> {
    let mut database = Database::of(&blog).await?;
    let (tag, entries) = data::tagged(&mut database, &slug).await?.ok_or(Failure::Missing)?;
    drop(database);
    let mut context = Context::new();
    context.insert("tag", &tag);
    context.insert("entries", &entries);
    Ok(Html(blog.templates.render("tag.html", &context)?))
}

pub async fn index_page(blog: &Blog) -> Result<String, Failure> {
    let mut database = Database::of(blog).await?;
    let entries = data::newest(&mut database).await?;
    drop(database);
    let mut context = Context::new();
    context.insert("entries", &entries);
    Ok(blog.templates.render("index.html", &context)?)
}

pub async fn detail_page(blog: &Blog, slug: &str) -> Result<String, Failure> {
    let mut database = Database::of(blog).await?;
    let post = data::post(&mut database, slug).await?.ok_or(Failure::Missing)?;
    drop(database);
    let mut context = Context::new();
    context.insert("post", &post);
    Ok(blog.templates.render("post.html", &context)?)
}
