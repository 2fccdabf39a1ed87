//! Metric samples grouped by the rows of the metric table, and the functions that fill them.
//!
//! The `prometheus` crate writes the few hundred samples of the process. Streams and windows have a
//! hundred thousand, and the crate needs 4 µs for the strings of each. So these are written
//! directly as lines, after the labels that all samples of a window share.
//!
//! One file per subject: [`windows`] (streams and windows, under the cap on series), [`detectors`],
//! [`comparisons`], [`input`] (sources and partitions), [`state`] (engine, checkpoints, alerts) and
//! [`service`] (health, HTTP, the process).

pub(super) mod comparisons;
pub(super) mod detectors;
pub(super) mod input;
pub(super) mod service;
pub(super) mod state;
pub(super) mod windows;

use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric as Sample, MetricFamily, MetricType,
};

use std::borrow::Cow;
use std::fmt::Write;

use prometheus::{Encoder, TextEncoder};

use super::metrics::{Group, Id, Kind, Metric, TABLE, metric};
use super::published::{Durations, EVALUATION_BUCKETS};

/// Longest label value in bytes. A longer one is cut and its checksum appended, so that two long
/// values stay distinct.
pub const LABEL_BYTES_MAX: usize = 128;

/// Most lines of a row for which room is reserved in advance: 40 MB over all rows. Their actual
/// number is unknown at that time, because the cap on series omits most of them if there are many
/// streams.
const ROOM_LINES_MAX: usize = 4096;

/// Bytes of a value and its delimiters.
const VALUE_BYTES: usize = 24;

/// Samples of one stream or window: row, value of the row's own label if any, value.
pub(super) type Samples = Vec<(Id, Option<Cow<'static, str>>, f64)>;

/// The labels that the series of a stream, or of one of its windows, share, as text.
pub(super) struct SharedLabels {
    count: usize,
    text: String,
}

impl SharedLabels {
    /// The labels of a group with these values, in order.
    pub(super) fn new(group: Group, values: &[&str]) -> SharedLabels {
        let mut text = String::new();
        for (name, value) in group.labels().iter().zip(values) {
            write_label(&mut text, name, value);
        }
        SharedLabels {
            count: values.len(),
            text,
        }
    }
}

/// Samples by row of the metric table: as samples of the `prometheus` crate, or as lines of text.
pub(super) struct Families {
    samples: Vec<Vec<Sample>>,
    lines: Vec<String>,
    /// Number of lines for which each row first reserves room.
    reserved: usize,
}

impl Families {
    /// No samples yet.
    pub(super) fn new() -> Families {
        Families {
            samples: TABLE.iter().map(|_| Vec::new()).collect(),
            lines: TABLE.iter().map(|_| String::new()).collect(),
            reserved: 0,
        }
    }

    /// Reserves room for this many lines in each row that has any, up to [`ROOM_LINES_MAX`], so
    /// that long texts are not moved as they grow.
    pub(super) fn reserve_lines(&mut self, lines: usize) {
        self.reserved = lines.min(ROOM_LINES_MAX);
    }

    /// Adds a sample; `values` belong to the labels of the metric, in order.
    pub(super) fn put(&mut self, id: Id, values: &[&str], value: f64) {
        let row = metric(id);
        debug_assert_eq!(row.all_labels().count(), values.len(), "{}", row.name);
        let mut sample = Sample::from_label(labels(id, values));
        match row.kind {
            Kind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(value);
                sample.set_counter(counter);
            }
            Kind::Gauge | Kind::Histogram => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                sample.set_gauge(gauge);
            }
        }
        self.samples[id as usize].push(sample);
    }

    /// Adds a sample of a stream or window as a line; `own` belongs to the label that follows the
    /// shared ones, if the metric has one.
    pub(super) fn put_line(
        &mut self,
        id: Id,
        shared: &SharedLabels,
        own: Option<&str>,
        value: f64,
    ) {
        let row = metric(id);
        let line = &mut self.lines[id as usize];
        if line.is_empty() {
            line.reserve(self.reserved * (row.name.len() + shared.text.len() + VALUE_BYTES));
        }
        line.push_str(row.name);
        line.push('{');
        line.push_str(&shared.text);
        if let Some(value) = own
            && let Some(name) = row.all_labels().nth(shared.count)
        {
            write_label(line, name, value);
        }
        // Removes the comma after the last label.
        line.pop();
        line.push_str("} ");
        write_value(line, value);
        line.push('\n');
    }

    /// Adds a time in milliseconds, converted to seconds.
    pub(super) fn put_ms(&mut self, id: Id, values: &[&str], ms: i64) {
        self.put(id, values, ms as f64 / 1000.0);
    }

    /// Adds the histogram of evaluation times.
    pub(super) fn put_durations(&mut self, durations: &Durations) {
        let mut below = 0;
        let buckets = EVALUATION_BUCKETS
            .iter()
            .zip(durations.counts)
            .map(|(&bound, count)| {
                below += count;
                let mut bucket = Bucket::default();
                bucket.set_upper_bound(bound);
                bucket.set_cumulative_count(below);
                bucket
            })
            .collect();
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets);
        histogram.set_sample_count(durations.counts.iter().sum());
        histogram.set_sample_sum(durations.sum);
        let mut sample = Sample::default();
        sample.set_histogram(histogram);
        self.samples[Id::EvaluationSeconds as usize].push(sample);
    }

    /// The text of all families that have at least one sample.
    pub(super) fn text(self) -> Result<Vec<u8>, prometheus::Error> {
        let mut text = Vec::with_capacity(self.lines.iter().map(String::len).sum());
        for ((row, samples), lines) in TABLE.iter().zip(self.samples).zip(self.lines) {
            let (name, help, kind) = (row.name, row.help, row.kind.as_ref());
            if !lines.is_empty() {
                text.extend(format!("# HELP {name} {help}\n# TYPE {name} {kind}\n").bytes());
                text.extend_from_slice(lines.as_bytes());
            }
            if !samples.is_empty() {
                TextEncoder::new().encode(&[family(row, samples)], &mut text)?;
            }
        }
        Ok(text)
    }
}

fn family(row: &Metric, samples: Vec<Sample>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(row.name.to_owned());
    family.set_help(row.help.to_owned());
    family.set_field_type(match row.kind {
        Kind::Counter => MetricType::COUNTER,
        Kind::Gauge => MetricType::GAUGE,
        Kind::Histogram => MetricType::HISTOGRAM,
    });
    family.set_metric(samples);
    family
}

/// The shortest decimal that reads back as `value`. Most are flags and counts, which an integer
/// writes faster.
fn write_value(text: &mut String, value: f64) {
    if value == 1.0 || value.to_bits() == 0 {
        return text.push(if value == 1.0 { '1' } else { '0' });
    }
    let whole = value as i64;
    let negative_zero = value == 0.0 && value.is_sign_negative();
    // Writing to a string does not fail.
    let _ = match whole as f64 == value && whole != i64::MAX && !negative_zero {
        true => write!(text, "{whole}"),
        false => write!(text, "{value}"),
    };
}

/// Writes `name="value",`, escaped as the text format requires.
fn write_label(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str("=\"");
    let value = bounded(value);
    let mut rest = &*value;
    while let Some(at) = rest.find(['\\', '"', '\n']) {
        text.push_str(&rest[..at]);
        text.push_str(match rest.as_bytes()[at] {
            b'\\' => "\\\\",
            b'"' => "\\\"",
            _ => "\\n",
        });
        rest = &rest[at + 1..];
    }
    text.push_str(rest);
    text.push_str("\",");
}

fn labels(id: Id, values: &[&str]) -> Vec<LabelPair> {
    metric(id)
        .all_labels()
        .zip(values)
        .map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(bounded(value).into_owned());
            pair
        })
        .collect()
}

/// The value itself, or its beginning and its checksum if it is too long.
fn bounded(value: &str) -> Cow<'_, str> {
    if value.len() <= LABEL_BYTES_MAX {
        return value.into();
    }
    // Room for `~` and eight hexadecimal digits.
    let mut cut = LABEL_BYTES_MAX - 9;
    while !value.is_char_boundary(cut) {
        cut -= 1;
    }
    let checksum = crc32fast::hash(value.as_bytes());
    format!("{}~{checksum:08x}", &value[..cut]).into()
}

pub(super) fn one_if(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines equal those that the crate writes.
    #[test]
    fn a_line_is_what_the_crate_writes_of_the_same_sample() {
        let names = ["a \"b\"\\", "é\n", "", "class:1", "5m"];
        let long = "x".repeat(200);
        let whole = [0.0, -0.0, -7.0, 4e18, 9_223_372_036_854_775_808.0, 1e21];
        let broken = [-0.5, 1e-7, 1.0 / 3.0, f64::NAN, f64::INFINITY];
        for value in whole.into_iter().chain(broken) {
            let (mut ours, mut theirs) = (Families::new(), Families::new());
            let shared = SharedLabels::new(Group::Window, &names);
            ours.put_line(Id::Events, &shared, None, value);
            ours.put_line(Id::Verdict, &shared, Some(&long), value);
            theirs.put(Id::Events, &names, value);
            theirs.put(Id::Verdict, &[&names[..], &[long.as_str()]].concat(), value);
            let text = |f: Families| String::from_utf8(f.text().expect("text")).expect("UTF-8");
            assert_eq!(text(ours), text(theirs));
        }
    }

    #[test]
    fn long_label_values_are_cut_and_stay_distinct() {
        let (a, b) = ("é".repeat(200) + "a", "é".repeat(200) + "b");
        let (a, b) = (bounded(&a), bounded(&b));
        assert!(a.len() <= LABEL_BYTES_MAX && b.len() <= LABEL_BYTES_MAX);
        assert_ne!(a, b);
        assert_eq!(bounded("short"), "short");
    }
}
