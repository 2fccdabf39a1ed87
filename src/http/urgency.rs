//! The urgency of streams, and lists of streams by urgency, the worst first.
//!
//! A stream has one urgency: the severity of its alert if that fires, else `pending` if its alert
//! is pending, else the worst of what its windows say. Pages and the API filter by the same three
//! parameters: `q`, words that must all occur in the name of a stream; `model`; and `state`, an
//! urgency, or `firing` for both severities.

use std::collections::BTreeSet;
use std::sync::Arc;

use strum::{IntoStaticStr, VariantArray};

use super::path;
use crate::alert::{AlertState, Severity};
use crate::judge::{StreamReport, Undecided, Verdict, WindowReport};
use crate::telemetry::Published;

/// What a stream asks of people, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Urgency {
    /// Its alert fires and pages.
    Page,
    /// Its alert fires and warns.
    Warn,
    /// Its alert waits for the end of its hold.
    Pending,
    /// A window is miscalibrated, and no alert fires.
    Miscalibrated,
    /// No window is decided, or one has lost its events or outcomes, so that the others show only
    /// earlier data.
    Undecided,
    /// Some window is calibrated, none is miscalibrated, and none has lost its events or outcomes.
    Calibrated,
}

impl Urgency {
    /// The name of the urgency in addresses, JSON and on pages.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The urgency of a stream.
    pub fn of(report: &StreamReport) -> Urgency {
        let any = |verdict| report.windows.iter().any(|w| w.verdict == verdict);
        match (report.alert.state, report.alert.severity) {
            (AlertState::Firing, Severity::Page) => Urgency::Page,
            (AlertState::Firing, Severity::Warn) => Urgency::Warn,
            (AlertState::Pending, _) => Urgency::Pending,
            _ if any(Verdict::Miscalibrated) => Urgency::Miscalibrated,
            _ if lost(report) => Urgency::Undecided,
            _ if any(Verdict::Calibrated) => Urgency::Calibrated,
            _ => Urgency::Undecided,
        }
    }

    /// The class of its colour on pages.
    pub fn class(self) -> &'static str {
        match self {
            Urgency::Page | Urgency::Warn | Urgency::Miscalibrated => "bad",
            Urgency::Pending | Urgency::Undecided => "wait",
            Urgency::Calibrated => "good",
        }
    }
}

/// Whether a window has no verdict because it loses events or outcomes. A window with only too few
/// events does not count.
fn lost(report: &StreamReport) -> bool {
    let reason = |w: &WindowReport| match w.verdict {
        Verdict::Undecided(reason) => Some(reason),
        _ => None,
    };
    let mut reasons = report.windows.iter().filter_map(reason);
    reasons.any(|reason| {
        matches!(
            reason,
            Undecided::Coverage | Undecided::Late | Undecided::Stalled | Undecided::Capacity
        )
    })
}

/// Most words of a search: each is searched for in the name of every stream.
const WORDS_MAX: usize = 32;

/// A filter of streams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Words that must all occur in the name, whatever their case.
    pub q: String,
    /// The whole name of a model; `None` for all.
    pub model: Option<String>,
    /// An urgency by name, or `firing`; empty for all.
    pub state: String,
}

impl Filter {
    /// The filter of a query.
    pub fn of(query: Option<&str>) -> Filter {
        let text = |name| path::query(query, name).unwrap_or_default();
        Filter {
            q: text("q").trim().to_owned(),
            model: path::query(query, "model").filter(|m| !m.is_empty()),
            state: text("state"),
        }
    }

    /// What is wrong with this filter, and what to write instead; `None` if it is valid.
    pub fn fault(&self) -> Option<(String, &'static str)> {
        let named = Urgency::VARIANTS.iter().any(|s| s.as_str() == self.state);
        if !named && !self.state.is_empty() && self.state != "firing" {
            let hint = "write page, warn, firing, pending, miscalibrated, undecided or calibrated";
            return Some((format!("no state `{}`", self.state), hint));
        }
        let words = self.words().len();
        let many = || format!("{words} words in `q`");
        (words > WORDS_MAX).then(|| (many(), "write at most 32 words"))
    }

    /// The different words that a name must have, in lower case.
    fn words(&self) -> BTreeSet<String> {
        self.q.split_whitespace().map(str::to_lowercase).collect()
    }

    /// Whether the filter selects streams of this urgency.
    pub fn admits(&self, urgency: Urgency) -> bool {
        match self.state.as_str() {
            "" => true,
            "firing" => urgency <= Urgency::Warn,
            name => urgency.as_str() == name,
        }
    }

    /// The published streams whose names the filter selects, each with its urgency, by name.
    pub fn named(&self, published: &Published) -> Vec<(Urgency, Arc<StreamReport>)> {
        if self.fault().is_some() {
            return Vec::new();
        }
        let words = self.words();
        let mut reports = published.reports();
        reports.retain(|report| {
            let model = self.model.as_deref();
            if model.is_some_and(|model| report.id.model != model) {
                return false;
            }
            if words.is_empty() {
                return true;
            }
            let name = report.id.to_string().to_lowercase();
            words.iter().all(|word| name.contains(word))
        });
        let urgency = |r: Arc<StreamReport>| (Urgency::of(&r), r);
        reports.into_iter().map(urgency).collect()
    }

    /// The address of a page or of the API with this filter.
    pub fn address(&self, base: &str, more: &[(&str, &str)]) -> String {
        let mut pairs = vec![("q", self.q.as_str()), ("state", self.state.as_str())];
        pairs.extend(self.model.as_deref().map(|model| ("model", model)));
        pairs.extend(more);
        let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
        let pairs = pairs.map(|(name, value)| format!("{name}={}", path::encode(value)));
        let query = pairs.collect::<Vec<_>>().join("&");
        match query.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{query}"),
        }
    }
}

/// Sorts rows, which come by name, the worst first: by urgency, then by the error that is most
/// surely large, then by name.
pub fn sort(rows: &mut [(Urgency, Arc<StreamReport>)]) {
    let lower = |r: &StreamReport| r.windows.iter().map(|w| w.lower()).fold(0.0, f64::max);
    rows.sort_by(|(a, x), (b, y)| a.cmp(b).then(lower(y).total_cmp(&lower(x))));
}

/// How many streams there are of each urgency, the most urgent first; urgencies without streams are
/// left out.
pub fn counts(urgencies: impl Iterator<Item = Urgency>) -> Vec<(Urgency, usize)> {
    let mut counts: Vec<_> = Urgency::VARIANTS.iter().map(|s| (*s, 0)).collect();
    urgencies.for_each(|s| counts[s as usize].1 += 1);
    counts.into_iter().filter(|(_, n)| *n > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::Alert;
    use crate::judge::StreamId;
    use crate::stats::view::View;

    #[test]
    fn a_filter_reads_its_query_and_writes_it_again() {
        let filter = Filter::of(Some("q=fraud+DE&state=page&model=a%2Fb"));
        assert_eq!(
            (filter.q.as_str(), filter.state.as_str()),
            ("fraud DE", "page")
        );
        assert_eq!(filter.model.as_deref(), Some("a/b"));
        let address = filter.address("/", &[("page", "2")]);
        assert_eq!(address, "/?q=fraud%20DE&state=page&model=a%2Fb&page=2");
        assert_eq!(Filter::default().address("/", &[]), "/");
        assert_eq!(filter.fault(), None);
        let fault = |query: &str| Filter::of(Some(query)).fault().map(|(what, _)| what);
        assert_eq!(fault("state=red").as_deref(), Some("no state `red`"));
        // Repeated words count once.
        let many = |words: usize| (0..words).map(|i| format!("{i}+a+")).collect::<String>();
        assert_eq!(fault(&format!("q={}", many(31))), None);
        assert_eq!(
            fault(&format!("q={}", many(32))).as_deref(),
            Some("33 words in `q`")
        );
    }

    #[test]
    fn a_stream_that_loses_its_outcomes_is_not_calibrated_by_an_older_window() {
        let of = |young| {
            let verdicts = [("5m", young), ("24h", Verdict::Calibrated)];
            let windows = verdicts.map(|(name, verdict)| WindowReport {
                verdict,
                ..WindowReport::blank(name)
            });
            Urgency::of(&StreamReport {
                id: StreamId {
                    model: "m".to_owned(),
                    version: String::new(),
                    segment: String::new(),
                    view: View::Binary,
                },
                last_event_ms: 0,
                due_ms: None,
                overdispersion: None,
                detector: None,
                alert: Alert::default(),
                windows: windows.into(),
            })
        };
        assert_eq!(
            of(Verdict::Undecided(Undecided::Coverage)),
            Urgency::Undecided
        );
        assert_eq!(
            of(Verdict::Undecided(Undecided::TooFew)),
            Urgency::Calibrated
        );
    }

    #[test]
    fn counts_begin_with_the_most_urgent() {
        use Urgency::{Calibrated, Page};
        let counts = counts([Calibrated, Page, Calibrated].into_iter());
        assert_eq!(counts, [(Page, 1), (Calibrated, 2)]);
    }
}
