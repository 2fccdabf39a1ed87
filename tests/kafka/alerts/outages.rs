//! Sinks that are away, all of them at once: records are read meanwhile, and afterwards each sink
//! gets each alert once, in order, in the form of the schema. `TRUELINE_OUTAGE` is how long they
//! are away, in seconds.

use super::alertmanager::{Alertmanager, free_address};
use super::receiver::{Receiver, webhook};
use super::{config, keys_in_order, phase, produce};
use crate::support::broker::{Broker, unique};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use serde_json::Value;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn sinks_that_were_away_get_every_alert_once_in_order_and_nothing_waits() {
    let name = "sinks_that_were_away_get_every_alert_once_in_order_and_nothing_waits";
    let Some(broker) = Broker::own(name) else {
        return;
    };
    let outage = std::env::var("TRUELINE_OUTAGE")
        .ok()
        .and_then(|v| v.parse().ok());
    let outage = Duration::from_secs(outage.unwrap_or(8));
    let topic = format!("alerts-{}", unique());
    let told = format!("{topic}.told");
    broker.create_topics(&[(&topic, 1)]);
    let (receiver, manager) = (Receiver::start(true), free_address());
    let sinks = format!(
        "{}[[sink]]\nname = \"chat\"\nkind = \"slack\"\nurl = \"{}\"\nretry_max = \"1s\"\ntimeout = \"2s\"\n\
         [[sink]]\nname = \"manager\"\nkind = \"alertmanager\"\nurl = \"http://{manager}\"\nretry_max = \"1s\"\n\
         resend = \"2s\"\ntimeout = \"2s\"\n\
         [[sink]]\nname = \"topic\"\nkind = \"kafka\"\ntopic = \"{told}\"\nretry_max = \"1s\"\ntimeout = \"2s\"\n",
        webhook(&receiver),
        receiver.url("/chat"),
    );
    let service = Service::start(&config(&broker.bootstrap, &topic, "1s", &sinks));
    service.wait_ready();

    // Nobody is there: the webhook hangs up, no Alertmanager listens, the topic does not exist.
    let models = ["a", "b", "c", "d"];
    let begun = Instant::now();
    let cycles = 4;
    let mut sent = 0;
    for cycle in 0..cycles {
        for (half, good) in [(0, false), (1, true)] {
            let records = phase(&models, 2 * cycle + half, good);
            produce(&broker.bootstrap, &topic, &records);
            sent += records.len();
        }
    }
    // One that still fires at the end; the others go on well.
    let mut last = phase(&["a"], 2 * cycles, false);
    last.extend(phase(&models[1..], 2 * cycles, true));
    last.sort_by_key(|r| {
        let value: Value = serde_json::from_str(r).expect("JSON");
        value["time_ms"].as_i64()
    });
    produce(&broker.bootstrap, &topic, &last);
    sent += last.len();
    let mut silence: f64 = 0.0;
    wait_for("all records while the sinks are away", LIMIT, || {
        silence = silence.max(service.metric("trueline_loop_silence_seconds", &["engine"]));
        let observed = service.metric("trueline_records_total", &["observed"]);
        (observed == sent as f64).then_some(())
    });
    println!(
        "{sent} records read in {:?} while no sink was there",
        begun.elapsed()
    );
    let wanted = models.len() as f64 * cycles as f64 * 2.0 + 1.0;
    for sink in ["hook", "chat", "manager", "topic"] {
        let of = format!("sink=\"{sink}\"");
        wait_for(&format!("notices that wait for {sink}"), LIMIT, || {
            let queued = service.metric("trueline_notifications_queued", &[&of]);
            (queued == wanted).then_some(())
        });
        assert_eq!(
            service.metric("trueline_notifications_sent_total", &[&of]),
            0.0
        );
    }
    while begun.elapsed() < outage {
        silence = silence.max(service.metric("trueline_loop_silence_seconds", &["engine"]));
        std::thread::sleep(Duration::from_millis(250));
    }
    assert!(silence < 5.0, "the engine stood still for {silence} s");

    // They come back, one of them halfway first.
    receiver.refuses.store(true, Ordering::Relaxed);
    receiver.away.store(false, Ordering::Relaxed);
    std::thread::sleep(Duration::from_secs(2));
    receiver.refuses.store(false, Ordering::Relaxed);
    broker.create_topics(&[(&told, 1)]);
    let manager = Alertmanager::start(name, &manager);
    let back = Instant::now();
    let mut there = vec!["hook", "chat", "topic"];
    there.extend(manager.as_ref().map(|_| "manager"));
    for sink in there {
        let of = format!("sink=\"{sink}\"");
        wait_for(&format!("all notices at {sink}"), LIMIT, || {
            let sent = service.metric("trueline_notifications_sent_total", &[&of]);
            (sent == wanted).then_some(())
        });
        assert!(service.metric("trueline_notification_retries_total", &[&of]) > 0.0);
        for lost in [
            "trueline_notifications_failed_total",
            "trueline_notifications_dropped_total",
        ] {
            assert_eq!(service.metric(lost, &[&of]), 0.0, "{sink} {lost}");
        }
    }
    println!(
        "{wanted} alerts each told {:?} after the sinks were back",
        back.elapsed()
    );

    let hooked = keys_in_order("webhook", &receiver.of("/hook"));
    assert_eq!(hooked.len() as f64, wanted);
    assert_eq!(receiver.of("/chat").len() as f64, wanted);
    let values = broker.read_all(&told).into_iter();
    let values: Vec<Value> = values
        .map(|r| serde_json::from_slice(&r.payload).expect("JSON"))
        .collect();
    assert_eq!(
        keys_in_order("topic", &values),
        hooked,
        "both receive the same in one order"
    );
    for value in &values {
        fits_schema(value);
    }
    let firing = values.iter().filter(|v| v["status"] == "firing");
    for value in firing {
        assert!(value["ece_lower"].as_f64() > Some(0.05), "{value}");
        assert_eq!(
            value["page"],
            format!(
                "http://monitor:9464/streams/{}///binary",
                value["model"].as_str().expect("a model")
            )
        );
    }
    let Some(manager) = manager else { return };
    let active = wait_for("the one that fires at the Alertmanager", LIMIT, || {
        manager.active().filter(|all| all.len() == 1)
    });
    assert_eq!(active[0]["labels"]["model"], "a", "{active:?}");
    assert_eq!(active[0]["labels"]["severity"], "warn");
    assert!(active[0]["annotations"]["ece_lower"].is_string());
    assert_eq!(
        active[0]["annotations"]["runbook_url"],
        "http://monitor:9464/runbooks/TruelineMiscalibrated.md"
    );
    // It is said again and again, or it would be over.
    let ends = active[0]["endsAt"].clone();
    wait_for("a later end", LIMIT, || {
        let active = manager.active()?;
        (active.first()?["endsAt"] != ends).then_some(())
    });
    produce(
        &broker.bootstrap,
        &topic,
        &phase(&models, 2 * cycles + 1, true),
    );
    wait_for("no active alert at the Alertmanager", LIMIT, || {
        manager.active().filter(Vec::is_empty)
    });
}

/// What the schema says of a notice: these keys, all of them, of these kinds.
fn fits_schema(value: &Value) {
    let schema = include_str!("../../../deploy/alert.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let properties = schema["properties"].as_object().expect("properties");
    let value = value.as_object().expect("an object");
    assert_eq!(
        value.keys().collect::<Vec<_>>(),
        properties.keys().collect::<Vec<_>>()
    );
    for (name, wanted) in properties {
        let is = &value[name];
        let fits = |kind: &str| match kind {
            "string" => is.is_string(),
            "boolean" => is.is_boolean(),
            "integer" => is.is_i64(),
            "number" => is.is_number(),
            "null" => is.is_null(),
            "array" => is.is_array(),
            "object" => is.is_object(),
            _ => false,
        };
        let fits = match (&wanted["type"], &wanted["enum"]) {
            (Value::String(kind), _) => fits(kind),
            (Value::Array(kinds), _) => kinds.iter().any(|k| fits(k.as_str().expect("a kind"))),
            (_, Value::Array(words)) => words.contains(is),
            _ => false,
        };
        assert!(fits, "{name} is {is}, the schema wants {wanted}");
    }
}
