//! What is generated from the table of keys is current: the sample with every key, the reference,
//! the JSON Schema.

use crate::{MINIMAL, parse, root, same_as_file, sample};
use std::fs;
use std::path::PathBuf;
use trueline::config::problem::Problems;
use trueline::config::schema::{Kind, Preset};
use trueline::config::value::{Outside, Value};
use trueline::config::{document, keys, reference};

#[test]
fn the_sample_with_every_key_is_what_the_table_of_keys_makes_of_it() {
    same_as_file(&root().join("config/everything.toml"), &reference::sample());
}

#[test]
fn the_json_schema_is_what_the_table_of_keys_makes_of_it() {
    let schema = format!("{:#}\n", reference::json_schema());
    same_as_file(&root().join("config/trueline.schema.json"), &schema);
}

#[test]
fn the_sample_with_every_key_gives_every_key_its_true_default() {
    let text = fs::read_to_string(root().join("config/everything.toml")).unwrap();
    let outside = Outside {
        variable: &|_| None,
        directory: PathBuf::new(),
    };
    let mut problems = Problems::new("everything.toml", &text);
    let document = document::read(&text, &outside, &mut problems);
    assert!(problems.is_empty());
    for section in keys::SECTIONS {
        let mut record = &document;
        let mut path = String::new();
        for part in section.path.split('.').filter(|p| !p.is_empty()) {
            path = [path.as_str(), part].join(if path.is_empty() { "" } else { "." });
            record = record.child(&path);
        }
        for key in section.keys {
            let entry = record.entry(key.name);
            let shown = text.contains(&format!("\n{} = ", key.name))
                || text.contains(&format!("\n# {} = ", key.name));
            assert!(shown, "{} {} is not shown", section.path, key.name);
            match (key.preset, key.kind) {
                (Preset::Unset(_), _) if keys::CHOSEN.contains(&(section.path, key.name)) => {
                    assert!(entry.given);
                }
                (Preset::Unset(_), _) => assert_eq!(entry.value, Value::Absent),
                // Places differ between the default and the file.
                (_, Kind::List | Kind::Map | Kind::Windows) => assert!(entry.given),
                _ => assert_eq!(entry.value, document::default_of(key), "{}", key.name),
            }
        }
    }
    // Lists and windows, without their places: what binding makes of them.
    assert_eq!(sample("everything.toml").plan, parse(MINIMAL).unwrap().plan);
}

#[test]
fn the_reference_page_is_what_the_table_of_keys_makes_of_it() {
    const BEGIN: &str = "<!-- config reference: trueline check --reference -->\n";
    const END: &str = "<!-- end of config reference -->";
    let path = root().join("config/README.md");
    let readme = fs::read_to_string(&path).expect("config/README.md is there");
    let (before, rest) = readme
        .split_once(BEGIN)
        .expect("it has the marker at which the reference begins");
    let (_, after) = rest
        .split_once(END)
        .expect("the reference has an end marker");
    let current = format!("{before}{BEGIN}\n{}\n{END}{after}", reference::markdown());
    same_as_file(&path, &current);
}
