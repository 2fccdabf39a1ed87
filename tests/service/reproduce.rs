//! `trueline reproduce` as a process, on few data sets with a fixed seed.

use crate::support::json_page::JsonPage;
use serde_json::Value;
use std::process::Command;

#[test]
fn few_data_sets_of_every_paper_meet_the_published_numbers() {
    let svg = crate::support::file("reproduce.svg", b"");
    let out = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args([
            "reproduce",
            "all",
            "--quick",
            "--data-sets",
            "20",
            "--json",
            "--svg",
        ])
        .arg(&svg)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let tables: Value = serde_json::from_slice(&out.stdout).unwrap();
    let mut page = JsonPage::read();
    page.check("reproduce", &tables);
    page.finish(|section| section == "reproduce");
    let tables = tables.as_array().unwrap();
    assert!(tables.len() >= 8);
    let mut of_grid = 0;
    for table in tables {
        let rows = table["rows"].as_array().unwrap();
        assert!(!rows.is_empty(), "{}", table["title"]);
        let title = table["title"].as_str().unwrap();
        if title.contains("Figures 3 to 34") || title.contains("Figures 35 to 82") {
            of_grid += table["differing"].as_u64().unwrap();
            continue;
        }
        // Three standard errors are passed by chance three times in a thousand; the seed is fixed.
        assert_eq!(table["differing"], 0, "{table:#}");
    }
    // The kernel paper's grid has 8·5·8 + 8·3·11·12 numbers beside ours: eight estimates of one
    // data set, and curves of eleven levels from one set of p-values. Where none or all of twenty
    // data sets are hit the error is too small. A wrong test differs at most of its 264 points.
    assert!(of_grid <= 70, "{of_grid} of 3488 numbers differ");
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    assert_eq!(picture.matches("<polyline").count(), columns(tables));
}

fn columns(tables: &[Value]) -> usize {
    tables
        .iter()
        .map(|t| t["columns"].as_array().unwrap().len())
        .sum()
}

#[test]
fn a_missing_folder_of_data_is_named() {
    let out = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args([
            "reproduce",
            "kernel",
            "--quick",
            "--data-sets",
            "2",
            "--data",
            "nowhere",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && said.contains("nowhere"), "{said}");
}
