//! The API and `/metrics` say what the engine says of two versions.

use super::{arrival, observe, plan, records};
use crate::support::server::Server;
use std::sync::Arc;
use trueline::monitor::Engine;
use trueline::telemetry::Published;

#[test]
fn comparisons_are_served_by_http_and_on_metrics() {
    let all = records(6_000, 11);
    let mut engine = Engine::new(plan(Some("1"), 1_000_000, Vec::new()));
    engine.assign((0, 0).into());
    for (i, r) in (0..).zip(arrival(&all, 1)) {
        observe(&mut engine, i, &r);
    }
    engine.finish();
    let published = Arc::new(Published::default());
    for report in engine.reports() {
        published.publish(report);
    }
    published.update(|facts| {
        facts.comparisons = engine.comparisons().into();
        facts.pair_counts = engine.pair_counts();
    });
    let server = Server::start(published);
    let body = server.json("/api/v1/models/m/comparison");
    assert_eq!(body["count"], 2);
    let two = &body["comparisons"][0];
    assert_eq!(
        (&two["champion"], &two["challenger"]),
        (&"1".into(), &"2".into())
    );
    // Temperature 1.5 against the truth.
    assert_eq!(two["brier"]["challenger_is"], "worse");
    let lower = two["brier"]["lower"].as_f64().expect("a number");
    assert!(lower > 0.0 && lower < two["brier"]["difference"].as_f64().expect("a number"));
    assert!(
        two["words"]
            .as_str()
            .is_some_and(|w| w.starts_with("2 against 1 on "))
    );
    assert_eq!(server.json("/api/v1/comparisons"), body);
    assert_eq!(server.get("/api/v1/models/nobody/comparison").status, 404);
    let stream = server.json("/api/v1/streams/m/2/k=a/binary");
    assert_eq!(stream["comparisons"][0], *two);
    let metrics = server.get("/metrics").body;
    let line = "trueline_comparison_brier_difference_lower{model=\"m\",view=\"binary\",champion=\"1\",challenger=\"2\"}";
    let value = metrics.lines().find_map(|l| l.strip_prefix(line));
    let value: f64 = value.expect("the series").trim().parse().expect("a number");
    assert_eq!(value, lower);
    assert!(metrics.contains("trueline_comparison_rows_total{plan=\"*\",end=\"paired\"}"));
}
