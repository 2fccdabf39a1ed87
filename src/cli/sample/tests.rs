//! Tests of the words.

use super::*;
use crate::collect::join::Missing;

#[test]
fn ids_that_name_users_are_a_problem_and_a_few_conflicts_are_none() {
    let problems = |conflicts| {
        let facts = SourceFacts {
            topics: vec![TopicFacts {
                records: 1000,
                events: 1000,
                ..TopicFacts::default()
            }],
            conflicts,
            ..SourceFacts::default()
        };
        describe(&facts).problems
    };
    assert!(problems(10).is_empty());
    assert!(problems(11)[0].contains("an id names one prediction"));
}

#[test]
fn a_tolerance_above_the_rate_of_the_rarer_outcome_is_named_with_both() {
    let facts = SourceFacts {
        lax: vec![Lax {
            model: "fraud".to_owned(),
            tolerance: 0.002,
            rare_mean: 0.00098,
        }],
        ..SourceFacts::default()
    };
    let lines = describe(&facts).lines;
    let warned = "warning: model fraud has a tolerance of 0.002, and the mean score of its rarer outcome is 9.8e-4";
    assert!(lines.iter().any(|line| line.contains(warned)), "{lines:?}");
}

/// The text about a topic of 5000 rows with this many rejected for these reasons.
fn rejecting(reasons: &[(&'static str, u64)]) -> Words {
    let rejected: u64 = reasons.iter().map(|(_, rows)| rows).sum();
    let first =
        |(reason, rows): &(&'static str, u64)| (*reason, (*rows, format!("first {reason}")));
    let topic = TopicFacts {
        name: "t".to_owned(),
        records: 5000,
        events: 5000 - rejected,
        rejected: reasons.iter().map(first).collect(),
        ..TopicFacts::default()
    };
    describe(&SourceFacts {
        name: "s".to_owned(),
        topics: vec![topic],
        ..SourceFacts::default()
    })
}

#[test]
fn a_twentieth_of_the_rows_being_rejected_is_a_problem_and_a_hundredth_a_warning() {
    let warned = |words: &Words, said: &str| words.lines.iter().any(|line| line == said);
    let any = |words: &Words| words.lines.iter().any(|line| line.contains("warning"));
    let deleted = rejecting(&[("tombstone", 3000)]);
    assert!(deleted.problems.is_empty(), "{:?}", deleted.problems);
    assert!(!any(&deleted));
    let few = rejecting(&[("malformed", 50)]);
    assert!(few.problems.is_empty() && !any(&few));
    let some = rejecting(&[("malformed", 200), ("bad_time", 50)]);
    let said = "250 of 5000 rows of topic t are rejected; first malformed";
    assert!(some.problems.is_empty());
    assert!(warned(&some, &format!("  warning: {said}")), "{some:?}");
    let many = rejecting(&[("malformed", 1500), ("bad_time", 100)]);
    let said = "source s: 1600 of 5000 rows of topic t are rejected; first malformed";
    assert_eq!(many.problems, [said]);
    assert!(!any(&many));
    // Records of other models are ignored, unless they are the majority.
    let others = rejecting(&[("unknown_model", 2400), ("malformed", 50)]);
    assert!(others.problems.is_empty() && !any(&others), "{others:?}");
    let said = "source s: 2600 of 5000 rows of topic t are rejected; first unknown_model";
    assert_eq!(rejecting(&[("unknown_model", 2600)]).problems, [said]);
}

#[test]
fn a_model_whose_windows_never_hold_enough_is_named_with_a_window_that_does() {
    let warning = |per_day: f64, rare_mean: f64| {
        let facts = SourceFacts {
            scarce: vec![Scarce {
                model: "m".to_owned(),
                per_day,
                window: "24h".to_owned(),
                held: per_day,
                min_events: 500,
                rare_mean,
            }],
            ..SourceFacts::default()
        };
        describe(&facts).lines.pop().expect("a warning")
    };
    let said = "  warning: model m has about 40 events a day: its longest window, 24h, holds about 40 of the 500 events \
                that a verdict needs (`min_events`); write `windows = [\"30d\"]` or `windows = [{ last = 500 }]` in \
                [[model]]";
    assert_eq!(warning(40.0, 0.3), said);
    let said = "  warning: model m has about 4000 events a day: its longest window, 24h, holds about 4.0 of the 10 of \
                its rarer outcome that most verdicts need, by a mean score of 1.0e-3; write `windows = [\"7d\"]` or \
                `windows = [{ last = 10000 }]` in [[model]]";
    assert_eq!(warning(4000.0, 0.001), said);
    let said = warning(1.0, 0.3);
    assert!(
        said.contains("write `windows = [{ last = 500 }]`"),
        "{said}"
    );
}

#[test]
fn scores_that_were_rounded_to_certainty_are_named() {
    let warned = |certain, few, many| {
        let decimals = Decimals { certain, few, many };
        let facts = SourceFacts {
            decimals,
            ..SourceFacts::default()
        };
        let lines = describe(&facts).lines;
        lines
            .iter()
            .any(|line| line.contains("write scores unrounded"))
    };
    assert!(warned(1, 99, 0) && warned(3, 7, 190));
    assert!(!warned(0, 99, 0) && !warned(1, 99, 1) && !warned(100, 0, 0));
}

#[test]
fn a_maturity_is_proposed_in_full_units() {
    assert_eq!(rounded_up(1_000), 2_000);
    assert_eq!(rounded_up(170_000), 240_000);
    assert_eq!(rounded_up(7_000_000), 3 * 3_600_000);
    assert_eq!(human(rounded_up(170_000)), "4m");
    assert_eq!(human(0), "0s");
}

/// Facts of a join of `due` mature predictions, of which `in_time` have an outcome.
fn joined(due: u64, in_time: u64, missing: Missing) -> SourceFacts {
    SourceFacts {
        name: "s".to_owned(),
        coverage_min: 0.5,
        join: Some(JoinFacts {
            predictions: due,
            due,
            in_time,
            matched: in_time,
            missing,
            ..JoinFacts::default()
        }),
        ..SourceFacts::default()
    }
}

#[test]
fn positives_alone_that_are_dropped_where_missing_are_a_problem() {
    let problems = |due, in_time, missing| describe(&joined(due, in_time, missing)).problems;
    let said = &problems(5000, 14, Missing::Drop)[0];
    let wanted = "14 of 5000 predictions older than the maturity have an outcome in time, 0.3 %, and `coverage_min` is 50 %";
    assert!(said.contains(wanted), "{said}");
    assert!(said.contains("`on_missing = \"negative\"`"), "{said}");
    assert!(problems(5000, 2500, Missing::Drop).is_empty());
    assert!(problems(5000, 14, Missing::Class(0)).is_empty());
    // With so few it may be chance.
    assert!(problems(99, 14, Missing::Drop).is_empty());
    // Outcomes in another partition are not joined, which is reported first.
    let mut facts = joined(5000, 14, Missing::Drop);
    facts.join.as_mut().expect("given").elsewhere = 14;
    let problems = describe(&facts).problems;
    assert!(problems[0].contains("murmur2_random"), "{problems:?}");
    assert!(
        problems[1].contains("mend what is said above first"),
        "{problems:?}"
    );
}

#[test]
fn outcomes_that_all_say_what_a_missing_one_says_are_taken_for_inverted() {
    let problems = |in_time, outcomes: &[(u32, u64)], mean: f64| {
        let mut facts = joined(5000, in_time, Missing::Class(0));
        facts.outcomes = outcomes.iter().copied().collect();
        facts.models.insert("m".to_owned(), (1000, 1000.0 * mean));
        describe(&facts).problems
    };
    let said = &problems(14, &[(0, 408)], 0.002)[0];
    assert!(said.contains("all 408 outcomes are negative too"), "{said}");
    assert!(said.contains("`outcome_map` is inverted"), "{said}");
    assert!(problems(14, &[(0, 407), (1, 1)], 0.002).is_empty());
    assert!(problems(14, &[(0, 99)], 0.002).is_empty());
    // If all outcomes are sent, there may be no rare one among them.
    assert!(problems(5000, &[(0, 5000)], 0.0002).is_empty());
    assert_eq!(problems(5000, &[(0, 5000)], 0.2).len(), 1);
}

#[test]
fn late_outcomes_are_a_share_of_those_of_mature_predictions() {
    let problems = |late: u64, young: u64| {
        let mut facts = joined(1000, 1000 - late, Missing::Drop);
        let join = facts.join.as_mut().expect("given");
        (join.late, join.matched) = (late, 1000 + young);
        (join.maturity_ms, join.delays_ms) = (60_000, vec![1, 1, 1, 90_000]);
        describe(&facts).problems.len()
    };
    assert_eq!(
        (problems(0, 0), problems(2, 0), problems(2, 9000)),
        (0, 1, 1)
    );
}

#[test]
fn outcomes_of_one_class_where_the_scores_expect_both_are_a_problem() {
    let problems = |missing, class, n, mean: f64| {
        let mut facts = joined(5000, 4000, missing);
        facts.outcomes.insert(class, n);
        facts.models.insert("m".to_owned(), (1000, 1000.0 * mean));
        describe(&facts).problems
    };
    let said = &problems(Missing::Drop, 1, 408, 0.7)[0];
    let wanted = "all 408 outcomes are positive, and the scores expect at least 122 negative ones";
    assert!(said.contains(wanted), "{said}");
    assert!(said.contains("`on_missing = \"negative\"`"), "{said}");
    let said = &problems(Missing::Drop, 0, 408, 0.7)[0];
    assert!(said.contains("`outcome` names another field"), "{said}");
    // Of young predictions, by chance, too few, or a class that a missing outcome adds.
    let mut young = joined(5000, 99, Missing::Drop);
    young.coverage_min = 0.0;
    young.outcomes.insert(1, 408);
    young.models.insert("m".to_owned(), (1000, 700.0));
    assert!(describe(&young).problems.is_empty());
    assert!(problems(Missing::Drop, 0, 408, 0.01).is_empty());
    assert!(problems(Missing::Drop, 1, 99, 0.7).is_empty());
    assert!(problems(Missing::Class(0), 1, 408, 0.7).is_empty());
}

#[test]
fn one_of_a_hundred_scores_above_1_is_a_problem() {
    let problems = |rows| rejecting(&[("score_out_of_range", rows)]).problems;
    assert!(problems(50).is_empty());
    let said = "source s: 158 of 5000 rows of topic t are rejected as score_out_of_range, and the others may be wrong \
                too; first score_out_of_range";
    assert_eq!(problems(158), [said]);
}
