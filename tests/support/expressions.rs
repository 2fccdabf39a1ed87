//! The expressions of `deploy/`: of rules, alerts and panels.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file of `deploy/`.
pub fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("deploy")
        .join(path)
}

/// The files of alerts.
pub const ALERT_FILES: [&str; 2] = ["trueline_model_alerts.yml", "trueline_service_alerts.yml"];

/// Name and expression of each recording rule, of all files.
pub fn recorded() -> Vec<(String, String)> {
    let files = ALERT_FILES.iter().chain(&["trueline_rules.yml"]);
    files.flat_map(|file| rules(file, "record")).collect()
}

/// Names of all alerts.
pub fn alerts() -> Vec<String> {
    let all = ALERT_FILES.iter().flat_map(|file| rules(file, "alert"));
    all.map(|(name, _)| name).collect()
}

/// Name and expression of each rule of a file; `key` is `alert` or `record`.
pub fn rules(file: &str, key: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(deploy("prometheus").join(file)).unwrap();
    // The kind of rule, its name and its expression.
    let mut rules: Vec<(String, String, String)> = Vec::new();
    let mut block = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if let Some(at) = block {
            if indent > at {
                let (_, _, expr) = rules.last_mut().unwrap();
                expr.push_str(line);
                expr.push(' ');
                continue;
            }
            block = None;
        }
        let rule = line.strip_prefix("- ").and_then(|l| l.split_once(": "));
        if let Some((kind @ ("alert" | "record"), name)) = rule {
            rules.push((kind.to_owned(), name.to_owned(), String::new()));
        } else if line == "expr: |" {
            block = Some(indent);
        } else if let Some(expr) = line.strip_prefix("expr: ") {
            rules.last_mut().unwrap().2 = expr.to_owned();
        }
    }
    assert!(
        !rules.is_empty() && rules.iter().all(|(_, _, expr)| !expr.is_empty()),
        "{file}"
    );
    let of_key = rules.into_iter().filter(|(kind, ..)| kind == key);
    of_key.map(|(_, name, expr)| (name, expr)).collect()
}

/// A title and an expression.
pub type Query = (String, String);
/// A variable's name, the metric that it asks, and the label whose values it lists.
pub type Variable = (String, String, String);

/// Queries and variables of the dashboard.
pub fn dashboard() -> (Vec<Query>, Vec<Variable>) {
    let text = fs::read_to_string(deploy("grafana/trueline.json")).unwrap();
    let board: Value = serde_json::from_str(&text).unwrap();
    let mut queries = Vec::new();
    for panel in board["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let title = format!("{} {}", panel["title"], target["refId"]);
            queries.push((title, target["expr"].as_str().unwrap().to_owned()));
        }
    }
    let mut variables = Vec::new();
    for variable in board["templating"]["list"].as_array().unwrap() {
        let Some(query) = variable["query"]["query"].as_str() else {
            continue;
        };
        let inside = query
            .strip_prefix("label_values(")
            .unwrap()
            .strip_suffix(')')
            .unwrap();
        let (metric, label) = inside.rsplit_once(", ").unwrap();
        let name = variable["name"].as_str().unwrap();
        variables.push((name.to_owned(), metric.to_owned(), label.to_owned()));
    }
    (queries, variables)
}
