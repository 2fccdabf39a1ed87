//! The text of `trueline check --sample`: how the records of the topics are decoded.

use std::time::Duration;

use crate::app::sample::{
    Decimals, JoinFacts, Lax, OUTCOMES_MAX, SHARES, Scarce, SourceFacts, TopicFacts, quantile,
};
use crate::collect::Reason;
use crate::collect::join::Missing;
use crate::judge::coverage::is_below;
use crate::report::moment::rfc3339;
use crate::stats::tolerance::FEW;
use crate::telemetry::concerns::REJECTED_SHARE;

/// Share of outcomes after maturity above which a longer maturity is proposed.
const LATE_SHARE: f64 = 0.001;

/// Share of predictions with the id of another but other contents, above which ids seem to name
/// something else.
const CONFLICT_SHARE: f64 = 0.01;

/// Share of scores outside 0 to 1 above which the others are suspect too.
const OUT_OF_RANGE_SHARE: f64 = 0.01;

/// Share of rejected rows above which the source or its fields are wrong.
const REJECTED_MAX: f64 = 0.05;

/// Number of mature predictions, or of outcomes, that is enough for a conclusion.
const ENOUGH: u64 = 100;

/// A proposed window holds this many times the needed events.
const MARGIN: f64 = 1.25;

/// Number of expected positives from which none at all means that outcomes are inverted.
const EXPECTED: f64 = 20.0;

/// The text about the sample of a source: the lines to print, and its problems.
#[derive(Debug, Default)]
pub struct Words {
    /// Observations.
    pub lines: Vec<String>,
    /// Problems, each with its remedy.
    pub problems: Vec<String>,
}

/// Describes the sample of a source.
pub fn describe(facts: &SourceFacts) -> Words {
    let mut words = Words::default();
    words.lines.push(format!("sample of source {}", facts.name));
    for topic in &facts.topics {
        describe_topic(topic, &facts.name, &mut words);
    }
    for example in facts.examples.iter().flatten() {
        words.lines.push(format!("  {} becomes", example.place));
        let fields = example.fields.iter();
        words
            .lines
            .extend(fields.map(|(name, value)| format!("    {name:<14} {value}")));
    }
    describe_values(facts, &mut words);
    describe_ids(facts, &mut words);
    if let Some(join) = &facts.join {
        describe_join(join, &facts.name, &mut words);
        describe_unmatched(join, facts, &mut words);
        describe_coverage(join, facts, &mut words);
        describe_inverted(join, facts, &mut words);
    }
    if words.problems.is_empty() {
        describe_one_class(facts, &mut words);
    }
    words
}

fn describe_topic(topic: &TopicFacts, source: &str, words: &mut Words) {
    if topic.records == 0 {
        let why = match topic.partitions {
            0 => "not read, because no prediction waits for an outcome",
            _ => "no records",
        };
        words.lines.push(format!("  topic {}: {why}", topic.name));
        return;
    }
    let rejected: u64 = topic.rejected.values().map(|(rows, _)| rows).sum();
    let good = topic.events + topic.outcomes;
    let arrived = topic.arrived_ms.map_or(String::new(), |(first, last)| {
        format!(" that arrived from {} to {}", rfc3339(first), rfc3339(last))
    });
    words.lines.push(format!(
        "  topic {}: {} records of {} partitions{arrived}: {} predictions, {} outcomes, {rejected} rejected",
        topic.name, topic.records, topic.partitions, topic.events, topic.outcomes
    ));
    for (reason, (rows, first)) in &topic.rejected {
        words.lines.push(format!(
            "    {rows} rejected as {reason}, the first at {first}"
        ));
    }
    // Tombstones do not speak against the others.
    let deleted = topic.rejected.get(Reason::Tombstone.as_str());
    let rejected = rejected - deleted.map_or(0, |(rows, _)| *rows);
    let all = good + rejected;
    let above = |rows: u64, share: f64| rows as f64 > share * all as f64;
    let are_rejected = |counts: &dyn Fn(&str) -> bool| {
        let counts = |reason: &str| reason != Reason::Tombstone.as_str() && counts(reason);
        let counted = topic.rejected.iter().filter(|(reason, _)| counts(reason));
        let rows: u64 = counted.clone().map(|(_, (rows, _))| rows).sum();
        let most = counted.max_by_key(|(_, (rows, _))| *rows);
        let first = most.map_or("", |(_, (_, first))| first);
        let name = &topic.name;
        let words = format!("{rows} of {all} rows of topic {name} are rejected; {first}");
        (rows, words)
    };
    if rejected > 0 && good <= rejected {
        let (_, words_of_all) = are_rejected(&|_| true);
        words
            .problems
            .push(format!("source {source}: {words_of_all}"));
        return;
    }
    // If outcomes are rare, only the highest percentages are above 1; the others pass as scores.
    let reason = Reason::ScoreOutOfRange.as_str();
    if let Some((rows, first)) = topic.rejected.get(reason)
        && above(*rows, OUT_OF_RANGE_SHARE)
    {
        words.problems.push(format!(
            "source {source}: {rows} of {all} rows of topic {} are rejected as {reason}, and the others may be wrong too; {first}",
            topic.name
        ));
        return;
    }
    // A configuration may name only some of the models.
    let (rows, said) = are_rejected(&|reason| reason != Reason::UnknownModel.as_str());
    if above(rows, REJECTED_MAX) {
        words.problems.push(format!("source {source}: {said}"));
    } else if above(rows, REJECTED_SHARE) {
        words.lines.push(format!("  warning: {said}"));
    }
}

fn describe_values(facts: &SourceFacts, words: &mut Words) {
    if let Some((low, high)) = facts.scores {
        let what = match facts.vectors {
            true => "largest probabilities",
            false => "scores",
        };
        words.lines.push(format!("  {what} from {low} to {high}"));
    }
    words.lines.extend(rounded_to_certain(&facts.decimals));
    words.lines.extend(facts.lax.iter().map(too_lax));
    words.lines.extend(facts.scarce.iter().map(too_scarce));
    if !facts.outcomes.is_empty() {
        let outcomes = outcomes(facts);
        words.lines.push(format!("  outcomes: {outcomes}"));
    }
    if let Some((first, last)) = facts.times_ms {
        let mut delays = facts.delays_ms.clone();
        delays.sort_unstable();
        let arrival = quantile(&delays, 0.99).map_or(String::new(), |late| match late {
            0.. => format!("; 99 % arrive within {}", human(late)),
            _ => format!("; 99 % lie {} or more after their arrival", human(-late)),
        });
        words.lines.push(format!(
            "  event times of predictions from {} to {}{arrival}",
            rfc3339(first),
            rfc3339(last)
        ));
    }
    if !facts.streams.is_empty() {
        let shown: Vec<String> = facts.streams.iter().take(5).map(stream).collect();
        let more = facts.streams.len() - shown.len();
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        words.lines.push(format!(
            "  streams: {}{more} (model/version/segment)",
            shown.join(", ")
        ));
    }
}

/// A warning if the tolerance hides errors as large as the scores.
fn too_lax(lax: &Lax) -> String {
    let Lax {
        model,
        tolerance,
        rare_mean,
    } = lax;
    format!(
        "  warning: model {model} has a tolerance of {tolerance}, and the mean score of its rarer outcome is \
         {rare_mean:.1e}: an outcome that never happens, or twice as often as the scores say, is within it; \
         write a share, such as `tolerance = \"20%\"` in [model.test]"
    )
}

/// A warning if no window of a model holds the events that a verdict needs.
fn too_scarce(scarce: &Scarce) -> String {
    let Scarce {
        model,
        per_day,
        window,
        held,
        min_events,
        rare_mean,
    } = scarce;
    let lacking = match *held < *min_events as f64 {
        true => format!(
            "{} of the {min_events} events that a verdict needs (`min_events`)",
            rounded(*held)
        ),
        false => format!(
            "{} of the {FEW} of its rarer outcome that most verdicts need, by a mean score of {rare_mean:.1e}",
            rounded(held * rare_mean)
        ),
    };
    let needed = scarce.needed();
    let length = [7.0, 30.0, 90.0]
        .into_iter()
        .find(|days| per_day * days >= MARGIN * needed);
    let length = length.map_or(String::new(), |days| {
        format!("`windows = [\"{days}d\"]` or ")
    });
    format!(
        "  warning: model {model} has about {} events a day: its longest window, {window}, holds about {lacking}; \
         write {length}`windows = [{{ last = {needed} }}]` in [[model]]",
        rounded(*per_day)
    )
}

/// Formats a number for people: whole, or with one decimal below ten.
fn rounded(x: f64) -> String {
    match x < 9.95 {
        true => format!("{x:.1}"),
        false => format!("{x:.0}"),
    }
}

/// A warning if scores are rounded so that some of them exclude an outcome.
fn rounded_to_certain(d: &Decimals) -> Option<String> {
    let all = d.certain + d.few + d.many;
    let many = d.certain > 0 && (d.many == 0 || 100 * d.certain > all);
    (many && d.certain < all).then(|| {
        format!(
            "  warning: {} of {all} scores are exactly 0 or 1: if they were rounded (to decimals, or to \
             bfloat16), a single outcome against a score of 0 or 1 makes the detector alarm; write scores \
             unrounded",
            d.certain
        )
    })
}

/// Most classes whose outcomes are listed.
const CLASSES_SHOWN: usize = 12;

fn outcomes(facts: &SourceFacts) -> String {
    let all: u64 = facts.outcomes.values().sum();
    let share = |n: u64| format!("{:.2} %", percent(n, all));
    if !facts.vectors {
        let happened = all - facts.outcomes.get(&0).copied().unwrap_or(0);
        return format!("{happened} of {all} happened ({})", share(happened));
    }
    let class = |(class, n): (&u32, &u64)| {
        let name = facts.classes.get(*class as usize);
        let name = name.cloned().unwrap_or_else(|| class.to_string());
        format!("{n} `{name}` ({})", share(*n))
    };
    let shown = facts.outcomes.iter().take(CLASSES_SHOWN).map(class);
    let mut shown: Vec<String> = shown.collect();
    if let more @ 1.. = facts.outcomes.len().saturating_sub(CLASSES_SHOWN) {
        shown.push(format!("{more} more classes"));
    }
    shown.join(", ")
}

/// The remedy for records that share an id but differ.
pub(super) const CONFLICT: &str = "an id names one prediction: name another field as `fields.id`, \
     or write `deduplicate = false` if the records carry their outcomes";

fn describe_ids(facts: &SourceFacts, words: &mut Words) {
    let predictions: u64 = facts.topics.iter().map(|t| t.events).sum();
    let (conflicts, source) = (facts.conflicts, &facts.name);
    if conflicts as f64 > CONFLICT_SHARE * predictions as f64 {
        words.problems.push(format!(
            "source {source}: {conflicts} of {predictions} predictions do not count, because another one with the same id \
             differs (conflict); {CONFLICT}"
        ));
    }
}

fn stream((model, version, segment): &(String, String, String)) -> String {
    format!("{model}/{version}/{segment}")
}

fn describe_join(join: &JoinFacts, source: &str, words: &mut Words) {
    let maturity = human(join.maturity_ms);
    words.lines.push(format!(
        "  of {} predictions, {} are older than the maturity of {maturity}; {} of these have an outcome within it ({:.1} %)",
        join.predictions,
        join.due,
        join.in_time,
        percent(join.in_time, join.due)
    ));
    let delays: Vec<String> = SHARES
        .iter()
        .zip(&join.delays_ms)
        .map(|(share, ms)| format!("{} % within {}", 100.0 * share, human(*ms)))
        .collect();
    if !delays.is_empty() {
        words.lines.push(format!(
            "  of {} outcomes that were found, {}",
            join.matched,
            delays.join(", ")
        ));
    }
    if join.cut {
        words.lines.push(format!(
            "  the search for outcomes ended after {OUTCOMES_MAX} records; more may exist"
        ));
    }
    if join.repeated > 0 {
        words.lines.push(format!(
            "  {} predictions have the id of another one",
            join.repeated
        ));
    }
    if join.elsewhere > 0 {
        words.problems.push(format!(
            "source {source}: {} of {} outcomes are in a partition with another number than their prediction, where \
             they are not joined; write both topics with the prediction's id as key, as many partitions, and one \
             partitioner: librdkafka clients (Python, Go, C#) need `partitioner = murmur2_random` beside Java clients",
            join.elsewhere, join.matched
        ));
    }
    // The last delay covers the largest share.
    if let Some(&enough) = join.delays_ms.last()
        && enough > join.maturity_ms
        && late_share(join) > LATE_SHARE
    {
        words.problems.push(format!(
            "source {source}: {} % of the outcomes come within {}, and the maturity is {maturity}: those that come \
             later count as missing; write `maturity = \"{}\"` or more",
            100.0 * SHARES[SHARES.len() - 1],
            human(enough),
            human(rounded_up(enough)).replace(' ', "")
        ));
    }
}

/// Explains why no prediction has an outcome. Rejected outcomes were reported before.
fn describe_unmatched(join: &JoinFacts, facts: &SourceFacts, words: &mut Words) {
    if join.matched > 0 || join.due == 0 || join.cut {
        return;
    }
    let remedy = match facts.examples[1] {
        Some(_) => {
            "compare the ids of the two records shown above: `fields.id` and `outcomes.id` must give the same text"
        }
        None if facts.topics.iter().any(|t| !t.rejected.is_empty()) => return,
        None => "no record of an outcome was found; see `topics` of [source.outcomes]",
    };
    words.problems.push(format!(
        "source {}: none of {} predictions older than the maturity has an outcome; {remedy}",
        facts.name, join.due
    ));
}

/// Reports a problem if so few predictions have an outcome that no window would have a verdict.
fn describe_coverage(join: &JoinFacts, facts: &SourceFacts, words: &mut Words) {
    let dropped = join.missing == Missing::Drop && !join.cut;
    let few = is_below(facts.coverage_min, join.in_time, join.due);
    if !dropped || !few || join.due < ENOUGH || join.matched == 0 {
        return;
    }
    let remedy = match words.problems.is_empty() {
        true => {
            "write `on_missing = \"negative\"` in [source.outcomes] if only positives are sent; if all are, see \
             why most are missing"
        }
        false => {
            "mend what is said above first, and write `on_missing = \"negative\"` in [source.outcomes] if only \
             positives are sent"
        }
    };
    words.problems.push(format!(
        "source {}: {} of {} predictions older than the maturity have an outcome in time, {:.1} %, and \
         `coverage_min` is {:.0} %: no window would have a verdict; {remedy}",
        facts.name,
        join.in_time,
        join.due,
        percent(join.in_time, join.due),
        100.0 * facts.coverage_min
    ));
}

/// Reports a problem if all outcomes equal the class of a missing one. If outcomes are rare and all
/// are sent, that happens by chance.
fn describe_inverted(join: &JoinFacts, facts: &SourceFacts, words: &mut Words) {
    let Some(missing) = join.missing.class() else {
        return;
    };
    let all: u64 = facts.outcomes.values().sum();
    let alike = facts.outcomes.get(&missing) == Some(&all);
    let few = join.due >= ENOUGH && 2 * join.in_time < join.due;
    if !alike || all < ENOUGH || !(few || expected(facts, all) >= EXPECTED) {
        return;
    }
    let class = match (facts.vectors, missing) {
        (false, 0) => "negative".to_owned(),
        _ => format!("class {missing}"),
    };
    words.problems.push(format!(
        "source {}: a missing outcome counts as {class}, and all {all} outcomes are {class} too, so that nothing else \
         is ever counted; see whether `outcome_map` is inverted, or `outcome` names another field",
        facts.name
    ));
}

/// Reports a problem if all outcomes are of one class and the scores expect many of the other.
/// Early outcomes of young predictions may be of one class by themselves. If a missing outcome
/// counts as a class, another check covers it.
fn describe_one_class(facts: &SourceFacts, words: &mut Words) {
    let all: u64 = facts.outcomes.values().sum();
    let missing = facts.join.as_ref().map(|join| join.missing);
    let counts = missing.is_some_and(|missing| missing != Missing::Drop);
    let mature = (facts.join.as_ref()).map_or(all, |join| join.in_time + join.late);
    let expected = expected(facts, all);
    let few = all.min(mature) < ENOUGH || expected < EXPECTED;
    if facts.vectors || counts || few || facts.outcomes.len() != 1 {
        return;
    }
    let (these, others) = match facts.outcomes.contains_key(&0) {
        true => ("negative", "positive"),
        false => ("positive", "negative"),
    };
    let remedy = match missing {
        Some(_) if these == "positive" => {
            "if only positives are sent, write `on_missing = \"negative\"` in [source.outcomes]"
        }
        _ => {
            "see whether `outcome` names another field, or `outcome_map` gives every text the same outcome"
        }
    };
    words.problems.push(format!(
        "source {}: all {all} outcomes are {these}, and the scores expect at least {expected:.0} {others} ones among \
         them; {remedy}",
        facts.name
    ));
}

/// Number of outcomes of the rarer class that the scores expect among this many.
fn expected(facts: &SourceFacts, outcomes: u64) -> f64 {
    let (n, sum) = (facts.models.values()).fold((0, 0.0), |(n, sum), m| (n + m.0, sum + m.1));
    let mean = sum / n.max(1) as f64;
    mean.min(1.0 - mean) * outcomes as f64
}

/// The share of the outcomes of mature predictions that came after maturity. Young predictions do
/// not count: their outcomes cannot be late yet.
fn late_share(join: &JoinFacts) -> f64 {
    join.late as f64 / (join.in_time + join.late).max(1) as f64
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Formats a length of time with at most two units.
fn human(ms: i64) -> String {
    let whole = if ms.unsigned_abs() < 10_000 {
        ms.unsigned_abs()
    } else if ms.unsigned_abs() < 600_000 {
        ms.unsigned_abs() / 1000 * 1000
    } else {
        ms.unsigned_abs() / 60_000 * 60_000
    };
    humantime::format_duration(Duration::from_millis(whole)).to_string()
}

/// A length that is a quarter longer, rounded up to full seconds, minutes or hours.
fn rounded_up(ms: i64) -> i64 {
    let more = ms.saturating_add(ms / 4);
    let unit = match more {
        ..60_000 => 1_000,
        60_000..3_600_000 => 60_000,
        _ => 3_600_000,
    };
    more.saturating_add(unit - 1) / unit * unit
}

#[cfg(test)]
mod tests;
