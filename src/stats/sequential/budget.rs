//! The allowed number of false alarms, as a user states it, and the stakes and threshold that
//! follow.
//!
//! The detector guarantees: expected false alarms ≤ capital staked / A, at any time. A budget
//! defines A and how much capital is staked over time.
//!
//! | said | stake | A | reads |
//! |---|---|---|---|
//! | `1 per 30d` | seconds that the pane spans | 2 592 000 | at most one false alarm in 30 days of data, whatever the traffic |
//! | `2000000 events` | 1 an event | 2 000 000 | average run length of at least two million events; P(false alarm within n) ≤ n/2 000 000 |
//! | `5% ever` | S/((t+S−1)(t+S)) for event t, 1 in all | 20 | P(ever a false alarm) ≤ 5 % |
//!
//! A share s of the budget multiplies every stake by s: streams whose shares sum to 1 together keep
//! the budget, however they depend on one another, since expectations add.
//!
//! Time is counted over the panes that hold events: a quiet night adds no stake, which only makes
//! alarms rarer, and no outage can raise one. After an alarm under `ever`, t continues: all alarms
//! together still cost 5 %, but the remaining stake shrinks like S/t, so such a stream should be
//! given a new budget.

use crate::digits::short;
use std::fmt;
use std::str::FromStr;

/// S: capital of `ever` is half spent after this many events. Ten thousand is several times the
/// delay at which errors of practical size are found.
const HALF_SPENT: f64 = 1e4;

const DAY_S: f64 = 86_400.0;

/// An allowed number of false alarms.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Budget {
    /// At most this many false alarms in a time, on average.
    PerTime {
        /// False alarms, above 0.
        alarms: f64,
        /// The time, in seconds.
        seconds: f64,
    },
    /// Average run length to a false alarm, in events.
    RunLength {
        /// Events, at least 1.
        events: f64,
    },
    /// Probability of ever raising a false alarm.
    Ever {
        /// In (0, 1).
        probability: f64,
    },
}

impl Default for Budget {
    /// One in 30 days: what a team on call bears of one monitor.
    fn default() -> Budget {
        Budget::PerTime {
            alarms: 1.0,
            seconds: 30.0 * DAY_S,
        }
    }
}

impl Budget {
    /// log A.
    pub fn log_threshold(&self) -> f64 {
        match *self {
            Budget::PerTime { alarms, seconds } => (seconds / alarms).ln(),
            Budget::RunLength { events } => events.ln(),
            Budget::Ever { probability } => -probability.ln(),
        }
    }

    /// Capital to stake on a pane of `n` events that spans `seconds`, after `before` events since
    /// the stream began.
    pub fn capital(&self, n: u64, before: u64, seconds: f64) -> f64 {
        let (n, t) = (n as f64, before as f64 + HALF_SPENT);
        match self {
            Budget::PerTime { .. } => seconds,
            Budget::RunLength { .. } => n,
            // Σ S/((i+S−1)(i+S)) over the pane telescopes.
            Budget::Ever { .. } => HALF_SPENT * n / (t * (t + n)),
        }
    }

    /// What is promised, in words.
    pub fn words(&self) -> String {
        match *self {
            Budget::PerTime { alarms, seconds } => format!(
                "at most {alarms} false {} in {} of data, on average",
                if alarms == 1.0 { "alarm" } else { "alarms" },
                time(seconds)
            ),
            Budget::RunLength { events } => {
                format!("at least {events} events to a false alarm, on average")
            }
            Budget::Ever { probability } => format!(
                "a probability of at most {} % of ever raising a false alarm",
                short(100.0 * probability)
            ),
        }
    }
}

/// A time in words, in days from one day on.
fn time(seconds: f64) -> String {
    let (unit, size) = match seconds {
        s if s >= DAY_S => ("day", DAY_S),
        s if s >= 3600.0 => ("hour", 3600.0),
        s if s >= 60.0 => ("minute", 60.0),
        _ => ("second", 1.0),
    };
    let count = short(seconds / size);
    format!("{count} {unit}{}", if count == 1.0 { "" } else { "s" })
}

/// A budget that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetError {
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub remedy: &'static str,
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl std::error::Error for BudgetError {}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Budget::PerTime { alarms, seconds } => {
                let (unit, size) = UNITS
                    .into_iter()
                    .find(|(_, size)| seconds % size == 0.0)
                    .unwrap_or(("s", 1.0));
                write!(f, "{alarms} per {}{unit}", seconds / size)
            }
            Budget::RunLength { events } => write!(f, "{events} events"),
            // The shortest decimal that reads back, not 100·p, which may not.
            Budget::Ever { probability } => write!(f, "{probability} ever"),
        }
    }
}

/// Units of time with their seconds, longest first.
const UNITS: [(&str, f64); 5] = [
    ("w", 7.0 * DAY_S),
    ("d", DAY_S),
    ("h", 3600.0),
    ("m", 60.0),
    ("s", 1.0),
];

impl FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Budget, BudgetError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let budget = match words[..] {
            [alarms, "per", time] => positive(alarms)
                .zip(seconds(time))
                .map(|(alarms, seconds)| Budget::PerTime { alarms, seconds }),
            [events, "events"] => positive(events).map(|events| Budget::RunLength { events }),
            [probability, "ever"] => {
                share(probability).map(|probability| Budget::Ever { probability })
            }
            _ => None,
        };
        let budget = budget.ok_or_else(|| BudgetError {
            what: format!("`{text}` is no budget of false alarms"),
            remedy: "say `1 per 30d`, `2000000 events` or `5% ever`",
        })?;
        // Below this the threshold would be crossed by chance within a handful of events.
        if budget.log_threshold() <= 0.0 {
            return Err(BudgetError {
                what: format!("`{text}` allows false alarms all the time"),
                remedy: "allow fewer, or in a longer time",
            });
        }
        Ok(budget)
    }
}

fn positive(text: &str) -> Option<f64> {
    let x: f64 = text.replace('_', "").parse().ok()?;
    (x.is_finite() && x > 0.0).then_some(x)
}

fn share(text: &str) -> Option<f64> {
    let x = match text.strip_suffix('%') {
        Some(percent) => positive(percent)? / 100.0,
        None => positive(text)?,
    };
    (x < 1.0).then_some(x)
}

fn seconds(text: &str) -> Option<f64> {
    let (unit, size) = UNITS.into_iter().find(|(unit, _)| text.ends_with(unit))?;
    Some(positive(text.strip_suffix(unit)?)? * size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_read_as_they_are_said_and_print_what_reads_back() {
        for (text, log_a) in [
            ("1 per 30d", 2_592_000.0f64),
            ("2 per 1w", 302_400.0),
            ("0.5 per 12h", 86_400.0),
            ("2_000_000 events", 2e6),
            ("5% ever", 20.0),
            ("0.001 ever", 1000.0),
        ] {
            let budget: Budget = text.parse().unwrap();
            assert!(
                (budget.log_threshold() - log_a.ln()).abs() < 1e-12,
                "{text}"
            );
            assert_eq!(budget.to_string().parse(), Ok(budget), "{text}");
        }
        for text in [
            "",
            "often",
            "0 events",
            "-1 per 3d",
            "1 per 3",
            "100% ever",
            "nan ever",
        ] {
            let message = text.parse::<Budget>().unwrap_err().to_string();
            assert!(message.contains("say `1 per 30d`"), "{message}");
        }
        assert!("5 per 2s".parse::<Budget>().is_err());
    }

    #[test]
    fn words_are_in_round_numbers() {
        let words = |text: &str| text.parse::<Budget>().unwrap().words();
        for (text, said) in [
            ("1 per 30d", "1 false alarm in 30 days"),
            ("1 per 10h", "1 false alarm in 10 hours"),
            ("2 per 1w", "2 false alarms in 7 days"),
            ("1 per 24h", "1 false alarm in 1 day"),
        ] {
            assert_eq!(words(text), format!("at most {said} of data, on average"));
        }
        for (text, said) in [("7% ever", "7 %"), ("29% ever", "29 %")] {
            let said = format!("a probability of at most {said} of ever raising a false alarm");
            assert_eq!(words(text), said);
        }
    }

    #[test]
    fn the_capital_of_ever_is_one_however_events_fall_into_panes() {
        let budget = Budget::Ever { probability: 0.05 };
        let (mut t, mut sum) = (0, 0.0);
        for n in [1, 1, 3, 1000, 1 << 20, 1 << 40] {
            sum += budget.capital(n, t, 1.0);
            t += n;
        }
        let one_by_one: f64 = (0..1005).map(|i| budget.capital(1, i, 1.0)).sum();
        assert!((sum - budget.capital(t, 0, 1.0)).abs() < 1e-12);
        assert!((one_by_one - budget.capital(1005, 0, 1.0)).abs() < 1e-12);
        assert!(sum < 1.0 && sum > 0.999_999);
    }
}
