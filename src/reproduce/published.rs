//! Numbers of the papers, from `published/tcal.tsv` and `published/kernel.tsv`.
//!
//! A line is a row: its table, its name and its numbers, separated by tabs; `-` is an unknown
//! number. Comments in the files describe the numbers and their sources.

use std::sync::LazyLock;

const FILES: [&str; 2] = [
    include_str!("published/tcal.tsv"),
    include_str!("published/kernel.tsv"),
];

/// A row of a published table.
#[derive(Debug, PartialEq)]
pub struct PublishedRow {
    table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its numbers; NaN for an unknown one.
    pub numbers: Vec<f64>,
}

/// All rows.
static ROWS: LazyLock<Vec<PublishedRow>> = LazyLock::new(|| {
    let rows = |text: &&'static str| parse(text).expect("a row on each line");
    FILES.iter().flat_map(rows).collect()
});

/// The rows of a table.
pub fn rows(table: &str) -> impl Iterator<Item = &'static PublishedRow> {
    ROWS.iter().filter(move |row| row.table == table)
}

/// A number of the row with this name.
pub fn number(table: &str, name: &str, column: usize) -> Option<f64> {
    let row = rows(table).find(|row| row.name == name)?;
    let number = row.numbers.get(column).copied();
    number.filter(|x| !x.is_nan())
}

fn parse(text: &'static str) -> Result<Vec<PublishedRow>, String> {
    let lines = (1..).zip(text.lines());
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(at, line)| row(line).map_err(|e| format!("line {at}: {e}")))
        .collect()
}

fn row(line: &'static str) -> Result<PublishedRow, String> {
    let mut parts = line.split('\t');
    let (Some(table), Some(name)) = (parts.next(), parts.next()) else {
        return Err("it has no name".to_owned());
    };
    let number = |text: &str| match text {
        "-" => Ok(f64::NAN),
        _ => text.parse().map_err(|_| format!("{text:?} is no number")),
    };
    let numbers = parts.map(number).collect::<Result<_, _>>()?;
    Ok(PublishedRow {
        table,
        name,
        numbers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_files_is_a_row_of_its_table() {
        for (table, count, columns) in [
            ("debiasing", 2, 2),
            ("compared", 3 + 3 + 5, 16),
            ("splitting", 4, 21),
            ("networks", 54, 5),
            ("estimates", 3, 4),
            ("rejections", 3, 5),
            ("network estimates", 4, 5),
            ("network tests", 4, 6),
            ("seconds", 4, 5),
            ("means", 8 * 4 * 4, 5),
            ("errors", 12 * 4 * 2 * 3, 11),
        ] {
            assert_eq!(rows(table).count(), count, "{table}");
            for row in rows(table) {
                assert_eq!(row.numbers.len(), columns, "{}", row.name);
            }
        }
        assert_eq!(ROWS.len(), 505);
    }

    #[test]
    fn a_number_is_found_by_table_name_and_column() {
        let network = |column| number("networks", "imagenet_resnet152.scalebin", column);
        assert_eq!((network(1), network(4)), (Some(1.403), Some(0.03)));
        // Unknown, beyond the last column, and in no row.
        assert_eq!((network(0), network(5)), (None, None));
        assert_eq!(number("networks", "imagenet_resnet152", 1), None);
    }

    #[test]
    fn a_line_that_is_no_row_is_an_error() {
        let error = |text| parse(text).unwrap_err();
        assert_eq!(error("# of print\n\nt\ta\t1\nt"), "line 4: it has no name");
        assert_eq!(error("t\ta\t1\t1,5"), "line 1: \"1,5\" is no number");
        assert_eq!(error("t\ta\t1\t"), "line 1: \"\" is no number");
    }
}
