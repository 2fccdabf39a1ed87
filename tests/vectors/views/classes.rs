//! Views of single classes are tested together: adjusted by Holm, at the level of all of them.

use super::{Row, SPAN_MS, START_MS, feed, plan_of, report, rows};
use crate::support::bars::{Bar, data_sets, each};
use trueline::judge::{Plan, WindowReport};
use trueline::monitor::Engine;
use trueline::stats::view::View;
use trueline::window::WindowSpec;

/// How many views are tested together goes with the views, which no reload changes.
#[test]
fn a_reload_of_the_same_file_changes_nothing() {
    let mut engine = Engine::new(classes_plan());
    let before = engine.plan().clone();
    assert_eq!(before.models[0].judge.evaluation.family, 4);
    engine.reload(&classes_plan());
    assert_eq!(*engine.plan(), before);
}

fn classes_plan() -> Plan {
    let views: Vec<View> = (0..4).map(View::Class).collect();
    plan_of(4, &views, vec![WindowSpec::time("10m", SPAN_MS)], SPAN_MS)
}

fn unsegmented(rows: Vec<Row>) -> Vec<Row> {
    rows.into_iter().map(|r| Row { segment: "", ..r }).collect()
}

#[test]
fn class_views_are_adjusted_for_each_other_by_holm() {
    let mut engine = feed(classes_plan(), &unsegmented(rows(3000, 0.1, 7)));
    engine.finish();
    let named = hold_to_holm(&engine);
    // The pushed class is the one that is named.
    assert!(named[0], "{named:?}");
    // After a restart evaluations are of the panes still held, and their family with them.
    let back = Engine::restore(classes_plan(), engine.snapshot()).unwrap();
    assert!(hold_to_holm(&back)[0]);
    // Withdrawn with the values.
    engine.tick(START_MS);
    engine.tick(START_MS + 2 * 3_600_000);
    assert!(engine.reports().all(|r| r.windows[0].family.is_none()));
}

/// Holm's adjustment written out, of the p-values that the reports have; answers which classes are
/// rejected.
fn hold_to_holm(engine: &Engine) -> Vec<bool> {
    let window = |class: u32| report(engine, View::Class(class)).windows[0].clone();
    let p = |w: &WindowReport| w.scores().map(|e| e.p_value).unwrap();
    let seen: Vec<WindowReport> = (0..4).map(window).collect();
    let mut order: Vec<usize> = (0..4).collect();
    order.sort_by(|&a, &b| p(&seen[a]).total_cmp(&p(&seen[b])));
    let mut before = 0f64;
    for (rank, &k) in order.iter().enumerate() {
        before = before.max(((4 - rank) as f64 * p(&seen[k])).min(1.0));
        let family = seen[k].family.unwrap();
        assert_eq!((family.classes, family.adjusted_p_value), (4, before));
        assert_eq!(family.reject, before <= 0.05);
        assert_eq!(family.p_value, 4.0 * p(&seen[order[0]]));
    }
    let rejects = |w: &WindowReport| w.family.unwrap().reject;
    seen.iter().map(rejects).collect()
}

#[test]
fn the_error_of_all_classes_together_keeps_its_level_where_single_tests_do_not() {
    let sets = data_sets(300);
    let all = each(sets, |seed| {
        let mut engine = feed(classes_plan(), &unsegmented(rows(500, 0.0, 40_000 + seed)));
        engine.finish();
        let windows: Vec<WindowReport> = engine.reports().map(|r| r.windows[0].clone()).collect();
        let family = windows.iter().any(|w| w.family.unwrap().reject);
        (family, windows.iter().any(|w| w.scores().unwrap().reject))
    });
    let family = all.iter().filter(|r| r.0).count() as u64;
    let single = all.iter().filter(|r| r.1).count() as u64;
    // Bonferroni's first step is nearly exact for four classes; one test for each rejects far more
    // often.
    Bar::new(sets, 0.0..=0.055, &[0.15]).assert("family", family);
    Bar::new(sets, 0.15..=1.0, &[0.055]).assert("single", single);
    assert!(200 * family > sets, "{family} of {sets}");
}
