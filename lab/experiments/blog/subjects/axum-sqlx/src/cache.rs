//! The same pages from a page cache in Redis: a hit is one GET.

use axum::extract::{Path, State};
use axum::response::Html;
use redis::AsyncCommands;

use crate::Blog;
use crate::pages::{self, Failure};

pub async fn index(State(blog): State<Blog>) -> Result<Html<Vec<u8>>, Failure> {
    let key = "page:index";
    if let Some(page) = hit(&blog, key).await? {
        return Ok(Html(page));
    }
    let page = pages::index_page(&blog).await?;
    keep(&blog, key, page).await.map(Html)
}

pub async fn detail(
    State(blog): State<Blog>,
    Path(slug): Path<String>,
) -> Result<Html<Vec<u8>>, Failure> {
    let key = format!("page:post:{slug}");
    if let Some(page) = hit(&blog, &key).await? {
        return Ok(Html(page));
    }
    let page = pages::detail_page(&blog, &slug).await?;
    keep(&blog, &key, page).await.map(Html)
}

async fn hit(blog: &Blog, key: &str) -> Result<Option<Vec<u8>>, Failure> {
    Ok(blog.redis.clone().get(key).await?)
}

async fn keep(blog: &Blog, key: &str, page: String) -> Result<Vec<u8>, Failure> {
    let _: () = blog.redis.clone().set(key, &page).await?;
    Ok(page.into_bytes())
}
