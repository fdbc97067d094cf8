//! Flame graphs: the calls of all profiles travel as one compact table, and a script draws them.

use std::collections::HashMap;

use assay_captures::run_record::Route;

use super::element::{id, text};
use crate::plain;
use crate::report::{Profile, Report};

/// Columns of a function's name; generic arguments make some of them endless.
const NAME: usize = 160;

/// The place where the profiles of a route are drawn.
pub(super) fn push(page: &mut String, report: &Report, route: &Route) {
    if !report.profiles.iter().any(|profile| profile.route == route.name) {
        return;
    }
    page.push_str(&format!(
        "<h3 class=\"part\">Where CPU time goes, call by call</h3>\n<figure class=\"flame\" \
         id=\"{}\" data-route=\"{}\">\n<figcaption>Samples under load, in microseconds of CPU \
         time per request (the process clock of laps without a probe divided by shares of \
         samples). Each call stands below its caller; press one to enlarge it.</figcaption>\n\
         <noscript><p>These graphs are drawn by a script.</p></noscript>\n</figure>\n",
        id("flame", &route.name),
        text(&route.name),
    ));
}

/// All profiles as one JSON value: function names once for the whole page, and three numbers a
/// call (name, how many calls before it its caller stands or 0, samples).
pub(super) fn push_data(page: &mut String, report: &Report, routes: &[&Route]) {
    let shown = |profile: &&Profile| routes.iter().any(|route| route.name == profile.route);
    let profiles: Vec<&Profile> = report.profiles.iter().filter(shown).collect();
    if profiles.is_empty() {
        return;
    }
    let mut names: Vec<String> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut out = Vec::new();
    for profile in profiles {
        let tree = &profile.tree;
        let mut calls = Vec::with_capacity(tree.calls.len() * 3);
        for (index, call) in tree.calls.iter().enumerate() {
            let name = tree.names[call.name as usize].as_str();
            let place = *places.entry(name).or_insert_with(|| {
                names.push(plain::line(name, NAME));
                names.len() - 1
            });
            let caller = call.caller.map_or(0, |caller| index - caller as usize);
            calls.extend([place as u64, caller as u64, call.samples]);
        }
        out.push(serde_json::json!({
            "route": plain::line(&profile.route, plain::SENTENCE),
            "title": plain::line(report.title(&profile.arm), 60),
            "process": if profile.process == "subject" { "service" } else { "Postgres" },
            "micros": (profile.per_request * 1e8).round() / 100.0,
            "samples": tree.samples,
            "calls": calls,
        }));
    }
    let data = serde_json::json!({ "names": names, "profiles": out }).to_string();
    // Nothing in the text may end the element that it stands in.
    let data = data.replace('<', "\\u003c").replace('>', "\\u003e");
    page.push_str("<script type=\"application/json\" id=\"calls\">");
    page.push_str(&data);
    page.push_str("</script>\n");
}
