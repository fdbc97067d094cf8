//! The schema is kept true: the file is what the types say, and a report fits it.

use serde_json::Value;

use super::{render, schema};
use crate::sample;

const FILE: &str = include_str!("../../results.schema.json");

#[test]
fn the_schema_file_is_what_the_types_say() {
    assert_eq!(
        FILE,
        schema(),
        "run `cargo run -p assay-reports --example results_schema > reports/results.schema.json`"
    );
}

#[test]
fn a_rendered_report_fits_the_schema() {
    let schema: Value = serde_json::from_str(FILE).unwrap();
    let results: Value = serde_json::from_str(&render(&sample::report())).unwrap();
    for list in
        ["costs", "laps", "comparisons", "findings", "ablations", "integrity", "pass_effects"]
    {
        assert!(!results[list].as_array().unwrap().is_empty(), "{list}");
    }
    assert_eq!(misfit(&schema, &schema, &results, "$"), None);
}

#[test]
fn what_does_not_fit_the_schema_is_refused() {
    let schema: Value = serde_json::from_str(FILE).unwrap();
    let results: Value = serde_json::from_str(&render(&sample::report())).unwrap();
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut results = results.clone();
        change(&mut results);
        misfit(&schema, &schema, &results, "$")
    };
    assert!(refused(&|results| results["costs"][0]["amount"] = "9".into()).is_some());
    assert!(refused(&|results| results["costs"][0]["status"] = "guessed".into()).is_some());
    assert!(refused(&|results| results["costs"][0]["extra"] = 1.into()).is_some());
    assert!(
        refused(&|results| {
            results.as_object_mut().unwrap().remove("machine");
        })
        .is_some()
    );
}

#[test]
fn a_cost_is_one_flat_record_on_one_line() {
    let text = render(&sample::report());
    let line = text.lines().find(|line| line.contains(r#""reason":"pool ping""#)).unwrap();
    insta::assert_snapshot!(line.trim().replace(",\"", ",\n\""), @r#"
    {"subject":"toy",
    "variant":"query-ping-on",
    "route":"detail",
    "pass":"serial",
    "metric":"postgres.flights",
    "labels":{"reason":"pool ping"},
    "unit":"1",
    "per":"request",
    "status":"measured",
    "amount":6.0,
    "low":6.0,
    "high":6.0,
    "samples":500,
    "kind":"exact",
    "capture":"captures/serial/toy.query-ping-on/detail/probe",
    "reason":null,
    "doubts":[]},
    "#);
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    assert_eq!(render(&sample::report()), render(&sample::report()));
}

#[test]
fn hostile_text_stays_inside_its_string() {
    let mut report = sample::report();
    report.run.experiment = "\"}]\u{1b}[31m\n</script>\u{202e}".into();
    let results: Value = serde_json::from_str(&render(&report)).unwrap();
    assert_eq!(results["experiment"]["name"], report.run.experiment.as_str());
    assert!(!render(&report).contains('\u{1b}'));
}

#[test]
fn infinity_is_not_measured_rather_than_null_without_reason() {
    let mut report = sample::report();
    let figure = assay_analyses::cost::Figure::exact(f64::INFINITY, 1);
    report.costs[0].amount = assay_analyses::cost::Amount::Measured(figure);
    let results: Value = serde_json::from_str(&render(&report)).unwrap();
    assert_eq!(results["costs"][0]["status"], "not measured");
    assert_eq!(results["costs"][0]["reason"], "not a finite number");
}

/// The first place where `value` does not fit `schema`, for the part of JSON Schema that our own
/// types use.
fn misfit(root: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    let fits = |schema: &Value| misfit(root, schema, value, place).is_none();
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return misfit(root, &root["$defs"][name], value, place);
    }
    for list in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[list].as_array() {
            return (!choices.iter().any(fits)).then(|| format!("{place}: none of the choices"));
        }
    }
    if let Some(constant) = schema.get("const") {
        return (constant != value).then(|| format!("{place}: not {constant}"));
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        return Some(format!("{place}: {value} is not among the words"));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    };
    if !types.is_empty() && !types.into_iter().any(is) {
        return Some(format!("{place}: {value} has another type than {}", schema["type"]));
    }
    let mut items = value.as_array().into_iter().flatten().enumerate();
    if let Some(found) =
        items.find_map(|(n, item)| misfit(root, &schema["items"], item, &format!("{place}[{n}]")))
    {
        return Some(found);
    }
    let object = value.as_object()?;
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !object.contains_key(*name)) {
        return Some(format!("{place}: {missing} is missing"));
    }
    object.iter().find_map(|(name, value)| {
        let place = format!("{place}.{name}");
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(schema), _) => misfit(root, schema, value, &place),
            (None, Value::Bool(false)) => Some(format!("{place}: unknown")),
            (None, other) => misfit(root, other, value, &place),
        }
    })
}
