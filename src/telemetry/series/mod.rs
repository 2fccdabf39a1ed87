//! Metric samples grouped by the rows of the metric table, and the functions that fill them.
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

use super::metrics::{Id, Kind, TABLE, metric};
use super::published::{Durations, EVALUATION_BUCKETS};

/// Longest label value in bytes. A longer one is cut and its checksum appended, so that two long
/// values stay distinct.
pub const LABEL_BYTES_MAX: usize = 128;

/// Samples by row of the metric table.
pub(super) struct Families {
    samples: Vec<Vec<Sample>>,
}

impl Families {
    /// No samples yet.
    pub(super) fn new() -> Families {
        Families {
            samples: TABLE.iter().map(|_| Vec::new()).collect(),
        }
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

    /// The families that have at least one sample.
    pub(super) fn finish(self) -> Vec<MetricFamily> {
        TABLE
            .iter()
            .zip(self.samples)
            .filter(|(_, samples)| !samples.is_empty())
            .map(|(row, samples)| {
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
            })
            .collect()
    }
}

fn labels(id: Id, values: &[&str]) -> Vec<LabelPair> {
    metric(id)
        .all_labels()
        .zip(values)
        .map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(bounded(value));
            pair
        })
        .collect()
}

/// The value itself, or its beginning and its checksum if it is too long.
fn bounded(value: &str) -> String {
    if value.len() <= LABEL_BYTES_MAX {
        return value.to_owned();
    }
    // Room for `~` and eight hexadecimal digits.
    let mut cut = LABEL_BYTES_MAX - 9;
    while !value.is_char_boundary(cut) {
        cut -= 1;
    }
    format!(
        "{}~{:08x}",
        &value[..cut],
        crc32fast::hash(value.as_bytes())
    )
}

/// 1 if `yes`, otherwise 0.
pub(super) fn one_if(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_label_values_are_cut_and_stay_distinct() {
        let (a, b) = ("é".repeat(200) + "a", "é".repeat(200) + "b");
        let (a, b) = (bounded(&a), bounded(&b));
        assert!(a.len() <= LABEL_BYTES_MAX && b.len() <= LABEL_BYTES_MAX);
        assert_ne!(a, b);
        assert_eq!(bounded("short"), "short");
    }
}
