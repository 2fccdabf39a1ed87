//! A source file has at most 500 lines, unless it is one table.

use super::source::sources;

const LINES_MAX: usize = 500;

/// Files that are one table.
const TABLES: [&str; 2] = ["config/keys.rs", "reproduce/grid_published.rs"];

#[test]
fn no_source_file_has_more_than_500_lines_unless_it_is_a_table() {
    let long = sources().into_iter().filter_map(|(file, text)| {
        let lines = text.lines().count();
        (lines > LINES_MAX && !TABLES.contains(&file.as_str())).then_some((file, lines))
    });
    assert_eq!(long.collect::<Vec<_>>(), []);
}
