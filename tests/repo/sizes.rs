//! A source file has at most 500 lines, except the table of keys.

use super::source::sources;

const LINES_MAX: usize = 500;

/// The one file that is a long table.
const TABLE: &str = "config/keys.rs";

#[test]
fn no_source_file_has_more_than_500_lines_except_the_table_of_keys() {
    let long = sources().into_iter().filter_map(|(file, text)| {
        let lines = text.lines().count();
        (lines > LINES_MAX && file != TABLE).then_some((file, lines))
    });
    assert_eq!(long.collect::<Vec<_>>(), []);
}
