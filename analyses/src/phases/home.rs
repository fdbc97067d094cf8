//! The path that a function's name begins with: whose code it is, not what it was made for.

/// The path of a demangled name up to its first generic argument. For `<A as B>::f` and
/// `<A>::f` it is `A`'s: the implementor's code runs. So `core::ptr::drop_in_place::<sqlx::X>`
/// belongs to `core`, and `<sqlx::X as Drop>::drop` to `sqlx`.
pub(super) fn home(name: &str) -> &str {
    let mut rest = name.trim_start_matches('_');
    // C's own names keep their underscores.
    if !rest.starts_with('<') {
        rest = name;
    }
    loop {
        let before = rest;
        for prefix in ["<", "&", "mut ", "*const ", "*mut ", "dyn ", "(", "[", "impl "] {
            rest = rest.strip_prefix(prefix).unwrap_or(rest).trim_start();
        }
        if rest == before {
            break;
        }
    }
    let end = rest.find(['<', '>', ' ', '(', ',', ';', '{', ')', ']']).unwrap_or(rest.len());
    rest[..end].trim_end_matches("::")
}

#[cfg(test)]
mod tests {
    use super::home;

    #[test]
    fn code_belongs_to_the_path_that_its_name_begins_with() {
        for (name, expected) in [
            ("malloc", "malloc"),
            ("__libc_malloc", "__libc_malloc"),
            ("tera::renderer::Renderer::render", "tera::renderer::Renderer::render"),
            ("core::ptr::drop_in_place::<sqlx_core::pool::X>", "core::ptr::drop_in_place"),
            ("core::ptr::drop_in_place<sqlx_core::pool::X>", "core::ptr::drop_in_place"),
            ("<sqlx_core::pool::X as core::future::Future>::poll", "sqlx_core::pool::X"),
            ("<&mut sqlx_postgres::C as sqlx_core::E>::fetch", "sqlx_postgres::C"),
            ("_<alloc::vec::Vec<T> as core::ops::Drop>::drop", "alloc::vec::Vec"),
            ("axum_sqlx::data::post::{{closure}}", "axum_sqlx::data::post"),
            ("<dyn core::any::Any>::is", "core::any::Any"),
            ("", ""),
        ] {
            assert_eq!(home(name), expected, "{name}");
        }
    }
}
