//! One scrape of `/metrics`, and what must hold in every one.

// Some tests only look at conservation.
#![allow(dead_code)]

/// The text of a scrape.
pub struct Scrape(String);

impl Scrape {
    /// Of an answer's body. Conservation is looked at in each.
    pub fn new(text: String) -> Scrape {
        let scrape = Scrape(text);
        scrape.assert_conserved();
        scrape
    }

    /// The sum of all series of a metric whose line holds each of `labels`.
    pub fn sum(&self, metric: &str, labels: &[&str]) -> f64 {
        let named = |line: &&str| {
            line.strip_prefix(metric)
                .is_some_and(|rest| rest.starts_with(['{', ' ']))
        };
        let lines = self.0.lines().filter(named);
        let lines = lines.filter(|line| labels.iter().all(|label| line.contains(label)));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// The number of series of a metric.
    pub fn count(&self, metric: &str) -> usize {
        let labelled = format!("{metric}{{");
        self.0.lines().filter(|l| l.starts_with(&labelled)).count()
    }

    /// Every record that was read is in exactly one place, in each source: the ends of records, and
    /// those that are open, add up to what was read and what came and left with partitions.
    fn assert_conserved(&self) {
        for source in self.sources() {
            let label = format!("source=\"{source}\"");
            let of = |metric: &str| self.sum(metric, &[&label]);
            let moved = |direction: &str| {
                let direction = format!("direction=\"{direction}\"");
                self.sum("trueline_records_moved_total", &[&label, &direction])
            };
            let read = of("trueline_records_read_total") + moved("in");
            let ended = of("trueline_records_total") + of("trueline_records_open") + moved("out");
            assert_eq!(
                read, ended,
                "records of {source} do not add up:\n{}",
                self.0
            );
        }
    }

    /// The sources of all lines that count records that were read.
    fn sources(&self) -> Vec<String> {
        let source = |line: &str| {
            let rest = line.strip_prefix("trueline_records_read_total")?;
            if !rest.starts_with(['{', ' ']) {
                return None;
            }
            let (_, after) = rest.split_once("source=\"").unwrap_or_default();
            let named = after.split_once('"').map(|(name, _)| name.to_owned());
            Some(named.unwrap_or_else(|| panic!("no source in {line}")))
        };
        self.0.lines().filter_map(source).collect()
    }
}

/// Looks at the answer to a GET, if it is one of `/metrics`.
pub fn assert_conserved(path: &str, body: &str) {
    if path == "/metrics" {
        Scrape::new(body.to_owned());
    }
}
