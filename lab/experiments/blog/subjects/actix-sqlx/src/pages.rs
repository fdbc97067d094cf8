//! The pages that come from Postgres.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Html, Path};
use actix_web::{HttpResponse, ResponseError};
use tera::{Context, Tera};

use crate::Blog;
use crate::data::{self, Database};

/// Why there is no page.
#[derive(Debug)]
pub enum Failure {
    Missing,
    Broken(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such page"),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

impl ResponseError for Failure {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Missing => StatusCode::NOT_FOUND,
            Self::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        match self {
            Self::Missing => HttpResponse::NotFound().finish(),
            Self::Broken(why) => {
                eprintln!("error: {why}");
                HttpResponse::InternalServerError().body(why.clone())
            }
        }
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<tera::Error> for Failure {
    fn from(error: tera::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<redis::RedisError> for Failure {
    fn from(error: redis::RedisError) -> Self {
        Self::Broken(error.to_string())
    }
}

/// The templates of axum-sqlx, compiled into the program.
pub fn templates() -> tera::Result<Tera> {
    let mut templates = Tera::default();
    templates.add_raw_templates([
        ("base.html", include_str!("../../axum-sqlx/templates/base.html")),
        ("entries.html", include_str!("../../axum-sqlx/templates/entries.html")),
        ("index.html", include_str!("../../axum-sqlx/templates/index.html")),
        ("tag.html", include_str!("../../axum-sqlx/templates/tag.html")),
        ("post.html", include_str!("../../axum-sqlx/templates/post.html")),
    ])?;
    Ok(templates)
}

pub async fn index(blog: Data<Blog>) -> Result<Html, Failure> {
    index_page(&blog).await.map(Html::new)
}

pub async fn detail(blog: Data<Blog>, slug: Path<String>) -> Result<Html, Failure> {
    detail_page(&blog, &slug).await.map(Html::new)
}

pub async fn tag(blog: Data<Blog>, slug: Path<String>) -> Result<Html, Failure> {
    let mut database = Database::of(&blog).await?;
    let (tag, entries) = data::tagged(&mut database, &slug).await?.ok_or(Failure::Missing)?;
    drop(database);
    let mut context = Context::new();
    context.insert("tag", &tag);
    context.insert("entries", &entries);
    Ok(Html::new(blog.templates.render("tag.html", &context)?))
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
