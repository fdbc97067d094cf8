//! The page in a real browser: Debian's Chromium without a screen drives it through a second page
//! that holds it in a frame, and writes down what it saw.
//!
//! Where no Chromium is installed the tests fail and say so: `setup.sh` installs it.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

// The made-up report of the unit tests.
use assay_reports::{html, report};

#[path = "../src/sample.rs"]
mod sample;

/// What the second page does and looks at.
const DRIVER: &str = include_str!("browser.js");

/// Opens the page and returns what the driver wrote down, and what the browser complained of.
fn drive(page: &str, dark: bool) -> (serde_json::Value, String) {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path
    };
    write("report.html", page);
    let driver = format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><body><iframe src=\"report.html\" width=\"1000\" \
         height=\"4000\"></iframe><script>{DRIVER}</script></body>"
    );
    let driver = write("driver.html", &driver);
    let scheme = if dark { 0 } else { 1 };
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--allow-file-access-from-files", "--enable-logging=stderr"])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}", driver.display()))
        .output()
        .expect("chromium is not installed: sh setup.sh installs it");
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = dom.split("<pre id=\"said\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = said.unwrap_or_else(|| panic!("the driver did not finish: {talk}\n{dom}"));
    let said = said.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let console: String =
        talk.lines().filter(|line| line.contains("CONSOLE")).collect::<Vec<_>>().join("\n");
    (serde_json::from_str(&said).expect("JSON"), console)
}

#[test]
fn the_page_works_in_a_browser_and_asks_nobody_for_anything() {
    let (said, console) = drive(&html::render(&sample::report(), &[]), false);
    assert_eq!(console, "", "the browser complained");
    let list = |name: &str| said[name].as_array().expect("a list").clone();
    assert_eq!(list("errors"), Vec::<serde_json::Value>::new());
    assert_eq!(list("requests"), Vec::<serde_json::Value>::new());
    assert_eq!(list("unnamed"), Vec::<serde_json::Value>::new(), "charts without a name");
    assert_eq!(list("pale"), Vec::<serde_json::Value>::new(), "text below 4.5 : 1");
    assert_eq!(list("broken_links"), Vec::<serde_json::Value>::new());
    assert_eq!(said["dark"], false);
    // Postgres, per request: sorted by how much "page, ping off" changed, then back again.
    assert_ne!(said["sorted"], said["unsorted"]);
    assert_eq!(said["back"], said["unsorted"]);
    let rows = |name: &str| -> Vec<String> {
        list(name).iter().map(|row| row.as_str().expect("text").to_owned()).collect()
    };
    let filtered = rows("filtered");
    assert!(
        !filtered.is_empty() && filtered.iter().all(|row| row.contains("ping")),
        "{filtered:?}"
    );
    assert_eq!(said["hidden_columns"], 1);
    assert!(said["markdown"].as_str().expect("text").starts_with("| cost | unit |"), "{said}");
    assert!(said["csv"].as_str().expect("text").contains("\r\nround trips,trips,9,6 −3"), "{said}");
    assert!(
        said["finding_chart"].as_bool().expect("yes or no"),
        "an opened finding shows its chart"
    );
    assert!(said["calls"].as_u64().expect("a number") >= 5, "the flame graph is drawn");
    assert!(
        said["zoomed"].as_bool().expect("yes or no"),
        "a call that was pressed takes the whole width"
    );
    assert!(said["difference"].as_str().expect("text").contains("−"), "{said}");
}

#[test]
fn the_dark_page_can_be_read_too() {
    let (said, console) = drive(&html::render(&sample::report(), &[]), true);
    assert_eq!(console, "");
    assert_eq!(said["dark"], true, "this browser shows no dark page");
    assert_eq!(
        said["pale"].as_array().expect("a list").len(),
        0,
        "text below 4.5 : 1: {}",
        said["pale"]
    );
}
