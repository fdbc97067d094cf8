//! The same pages from a page cache in Redis: a hit is one GET.

use actix_web::HttpResponse;
use actix_web::http::header::ContentType;
use actix_web::web::{Data, Path};
use redis::AsyncCommands;

use crate::Blog;
use crate::pages::{self, Failure};

pub async fn index(blog: Data<Blog>) -> Result<HttpResponse, Failure> {
    let key = "page:index";
    if let Some(page) = hit(&blog, key).await? {
        return Ok(html(page));
    }
    let page = pages::index_page(&blog).await?;
    keep(&blog, key, page).await
}

pub async fn detail(blog: Data<Blog>, slug: Path<String>) -> Result<HttpResponse, Failure> {
    let key = format!("page:post:{slug}");
    if let Some(page) = hit(&blog, &key).await? {
        return Ok(html(page));
    }
    let page = pages::detail_page(&blog, &slug).await?;
    keep(&blog, &key, page).await
}

fn html(page: Vec<u8>) -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::html()).body(page)
}

async fn hit(blog: &Blog, key: &str) -> Result<Option<Vec<u8>>, Failure> {
    Ok(blog.redis.clone().get(key).await?)
}

async fn keep(blog: &Blog, key: &str, page: String) -> Result<HttpResponse, Failure> {
    let _: () = blog.redis.clone().set(key, &page).await?;
    Ok(html(page.into_bytes()))
}
