//! The mistakes that a new user made in the first hours, 29 in the file and 23 in the records. Each
//! message names the place, the cause and the remedy, and nothing else is reported that follows
//! from the mistake.

use trueline::app::ingest::record::RecordReader;
use trueline::app::ingest::schema_queue::Reading;
use trueline::kafka::{Headers, Record};
use trueline::monitor::Engine;

use super::parse;

const SOUND: &str = r#"version = 1

[kafka]
brokers = "localhost:9092"

[[source]]
topics = ["predictions"]

[source.fields]
time = "at"
time_unit = "rfc3339"
score = "p"
outcome = "y"

[[model]]
name = "*"
windows = ["5m", "1h"]

[model.test]
tolerance = "10%"

[[sink]]
name = "hook"
kind = "webhook"
url = "http://hook.example"
"#;

/// What is replaced by what, the line of the message, and words of its cause and of its remedy.
const IN_THE_FILE: [(&str, &str, usize, &str, &str); 31] = [
    (
        "version = 1\n",
        "",
        1,
        "has no `version`",
        "add `version = 1`",
    ),
    ("version = 1", "version = 2", 1, "`version` is 2", "write 1"),
    (
        "brokers =",
        "bootstrap_servers =",
        4,
        "unknown key `bootstrap_servers`",
        "called `brokers`",
    ),
    (
        "\"localhost:9092\"",
        "localhost:9092",
        4,
        "not TOML",
        "correct the syntax",
    ),
    (
        "\"localhost:9092\"",
        "\"${BROKERS}\"",
        4,
        "variable `BROKERS` is not defined",
        "${BROKERS:-value}",
    ),
    (
        "[[source]]",
        "[source]",
        6,
        "is not the section [[source]]",
        "write the header [[source]]",
    ),
    (
        "[source.fields]",
        "[sources.fields]",
        9,
        "unknown key `sources`",
        "did you mean [[source]]?",
    ),
    (
        "topics = [\"predictions\"]\n",
        "",
        6,
        "has no `topics`",
        "add `topics =",
    ),
    (
        "[\"predictions\"]",
        "[\"a\", \"a\"]",
        7,
        "topic `a` is read twice",
        "remove one",
    ),
    (
        "[\"predictions\"]",
        "[\"a b\"]",
        7,
        "`a b` is no name of a topic",
        "write letters, digits",
    ),
    (
        "[\"predictions\"]",
        "[\"a\"]\ndead_letter = \"a/dead\"",
        8,
        "`a/dead` is no name of a topic",
        "write letters, digits",
    ),
    (
        "[\"predictions\"]",
        "[\"a\"]\ndead_letter = \"a\"",
        8,
        "`a` is also read",
        "name another",
    ),
    (
        "[\"predictions\"]",
        "[\"a\"]\nformat = \"avro\"",
        8,
        "\"avro\"",
        "[registry]",
    ),
    (
        "\"rfc3339\"",
        "\"iso8601\"",
        11,
        "is \"iso8601\"",
        "did you mean \"rfc3339\"?",
    ),
    (
        "score = \"p\"\n",
        "",
        9,
        "where the prediction lies",
        "add `score =",
    ),
    (
        "score = \"p\"",
        "score = \"p\"\nprobabilities = \"q\"",
        13,
        "a second form of the prediction",
        "keep one",
    ),
    (
        "outcome =",
        "outcom =",
        13,
        "unknown key `outcom`",
        "did you mean `outcome`?",
    ),
    (
        "outcome =",
        "label =",
        13,
        "unknown key `label`",
        "called `outcome`",
    ),
    (
        "outcome = \"y\"",
        "[source.outcomes]\nmaturity = \"2h\"",
        13,
        "need an id",
        "add `id =",
    ),
    (
        "outcome = \"y\"",
        "outcome = \"y\"\noutcome_map = { fraud = 1 }",
        14,
        "`outcome_map` is a table where a list",
        "[\"fraud=1\"]",
    ),
    (
        "[[model]]",
        "[[models]]",
        15,
        "unknown key `models`",
        "did you mean [[model]]?",
    ),
    (
        "\"5m\", \"1h\"",
        "\"5\"",
        17,
        "a duration without a unit",
        "\"30s\"",
    ),
    (
        "\"5m\", \"1h\"",
        "\"1000 events\"",
        17,
        "which is not a duration",
        "or `{ last = 10000 }`",
    ),
    (
        "[\"5m\", \"1h\"]",
        "300",
        17,
        "is 300 where a list of windows",
        "[\"5m\", \"1h\"",
    ),
    (
        "\"5m\", \"1h\"",
        "\"1h\", \"7m\"",
        17,
        "is not a multiple",
        "multiples of 70s",
    ),
    (
        "windows =",
        "views = [\"class:cat\"]\nwindows =",
        17,
        "`cat` is none of",
        "list it in `classes`",
    ),
    (
        "windows =",
        "lateness = \"10\"\nwindows =",
        17,
        "a duration without a unit",
        "\"30s\"",
    ),
    ("\"10%\"", "2", 20, "is 2, which is no tolerance", "\"10%\""),
    (
        "tolerance = \"10%\"",
        "alpha = 5",
        20,
        "`alpha` is 5",
        "above 0 and below 1",
    ),
    (
        "\"webhook\"",
        "\"email\"",
        24,
        "is \"email\", which is none of",
        "\"webhook\"",
    ),
    (
        "url = \"http://hook.example\"\n",
        "",
        22,
        "has no `url`",
        "add `url`",
    ),
];

#[test]
fn each_mistake_in_the_file_gets_one_message_with_place_cause_and_remedy() {
    parse(SOUND).expect("it is sound without a mistake");
    for (right, wrong, line, cause, remedy) in IN_THE_FILE {
        assert!(SOUND.contains(right), "{right}");
        let problems = parse(&SOUND.replacen(right, wrong, 1)).expect_err(wrong);
        let own = |p: &&trueline::config::Problem| p.at.line == line && p.what.contains(cause);
        let problem = problems.iter().find(own);
        let problem = problem.unwrap_or_else(|| panic!("{wrong}: {problems:#?}"));
        let said = format!("{} {}", problem.what, problem.remedy);
        assert!(said.contains(remedy), "{wrong}: {problem:#?}");
        // A key under another name is missing under its own.
        let missing = |p: &&trueline::config::Problem| p.what.contains("has no `");
        let others = problems.iter().filter(|p| !missing(p) && !own(p)).count();
        assert_eq!(others, 0, "{wrong}: {problems:#?}");
    }
}

/// Fields of the source, the record, and words of place, cause and remedy.
const IN_THE_RECORDS: [(&str, &str, [&str; 3]); 26] = [
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":0.2,"y":1"#,
        ["byte 42", "expected `,` or `}`", "one JSON object"],
    ),
    (
        "",
        r#"[{"p":0.2,"y":1}]"#,
        ["byte 0", "expected an object", "one JSON object"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","y":1}"#,
        ["`p`", "is missing", "must carry"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":null,"y":1}"#,
        ["`p`", "is null", "must carry"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":"0.2","y":1}"#,
        ["`p`", "is \"0.2\"", "without quotes"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":NaN,"y":1}"#,
        ["`p`", "is NaN", "between 0 and 1"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":20,"y":1}"#,
        ["`p`", "is 20", "percentages or log-odds?"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":-0.1,"y":1}"#,
        ["`p`", "is -0.1", "between 0 and 1"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":1.0000001,"y":1}"#,
        ["`p`", "is 1.0000001", "rounding beyond 1"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":-1e-8,"y":1}"#,
        ["`p`", "is -1e-8", "rounding below 0"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":1.0000002,"y":1}"#,
        ["`p`", "is 1.0000002", "percentages or log-odds?"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":[0.8,0.2],"y":1}"#,
        ["`p`", "is [0.8,0.2]", "`probabilities`"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":0.2}"#,
        ["`y`", "is missing", "[source.outcomes]"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":0.2,"y":null}"#,
        ["`y`", "or null", "[source.outcomes]"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":0.2,"y":"yes"}"#,
        ["`y`", "is \"yes\"", "`outcome_map`"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":0.2,"y":2}"#,
        ["`y`", "is 2", "true, false, 0 or 1"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00Z","p":0.2,"y":0.7}"#,
        ["`y`", "is 0.7", "true, false, 0, 1"],
    ),
    (
        "",
        r#"{"at":"2025-11-23T08:00:00","p":0.2,"y":1}"#,
        ["`at`", "has no time zone", "`time_zone`"],
    ),
    (
        "",
        r#"{"at":"yesterday","p":0.2,"y":1}"#,
        ["`at`", "is yesterday", "RFC 3339"],
    ),
    (
        "",
        r#"{"at":1763884800,"p":0.2,"y":1}"#,
        ["`at`", "it is a number", "`time_unit`"],
    ),
    (
        "time_unit = \"ms\"",
        r#"{"at":1763884800,"p":0.2,"y":1}"#,
        ["`at`", "looks like seconds", "`time_unit`"],
    ),
    (
        "time_unit = \"ms\"",
        r#"{"at":1763884800000000000,"p":0.2,"y":1}"#,
        ["`at`", "looks like nanoseconds", "divide it by 1000"],
    ),
    (
        "time_unit = \"s\"",
        r#"{"at":1763884800000,"p":0.2,"y":1}"#,
        ["`at`", "looks like milliseconds", "`time_unit`"],
    ),
    (
        "model",
        r#"{"at":"2025-11-23T08:00:00Z","p":0.2,"y":1}"#,
        ["`model`", "is missing", "must carry"],
    ),
    (
        "id",
        r#"{"at":"2025-11-23T08:00:00Z","p":0.2,"y":1}"#,
        ["`request`", "is missing", "must carry"],
    ),
    (
        "classes",
        r#"{"at":"2025-11-23T08:00:00Z","p":0.2,"y":"cow"}"#,
        ["`y`", "is \"cow\"", "`outcome_map`"],
    ),
];

#[test]
fn each_mistake_in_a_record_gets_a_message_with_field_cause_and_remedy() {
    for (fields, record, words) in IN_THE_RECORDS {
        let source = match fields {
            "model" => SOUND.to_owned(),
            _ => SOUND.replace("[source.fields]", "model = \"m\"\n[source.fields]"),
        };
        let source = match fields {
            "" | "model" => source,
            "id" => source.replace("outcome = \"y\"", "outcome = \"y\"\nid = \"request\""),
            "classes" => source.replace(
                "model = \"m\"",
                "model = \"m\"\nclasses = [\"ok\", \"bad\"]",
            ),
            unit => source.replace("time_unit = \"rfc3339\"", unit),
        };
        let config = parse(&source).expect("it is sound");
        let mut engine = Engine::new(config.plan.clone());
        let mut reader = RecordReader::new(&config.sources[0], 0, None).expect("it is sound");
        let read = reader.read(
            &mut engine,
            &Record {
                topic: 0,
                partition: 0,
                offset: 0,
                timestamp_ms: Some(1_763_884_800_000),
                key: None,
                payload: record.as_bytes(),
                headers: Headers::default(),
            },
        );
        assert_eq!(read, Reading::Done);
        let last = reader.last_rejections[0].as_ref();
        let said = &last
            .unwrap_or_else(|| panic!("{record} is accepted"))
            .detail;
        for word in words {
            assert!(said.contains(word), "{record}: {said}");
        }
    }
}

#[test]
fn what_stands_twice_is_named_with_what_to_write() {
    for (more, what, remedy) in [
        (
            "[kafka]\n",
            "the section [kafka] stands twice",
            "under one header",
        ),
        (
            "[model]\n[model]\n",
            "the section [model] stands twice",
            "[[model]]",
        ),
        (
            "name = \"again\"\nname = \"again\"\n",
            "`name` stands twice",
            "keep one",
        ),
    ] {
        let text =
            format!("version = 1\n\n[kafka]\nbrokers = \"localhost:9092\"\n\n[[source]]\n{more}");
        let problems = parse(&text).expect_err("a mistake");
        let said: String = problems.iter().map(ToString::to_string).collect();
        assert!(said.contains(what) && said.contains(remedy), "{said}");
    }
}

#[test]
fn there_are_no_more_topics_than_there_are_numbers() {
    let with = |topics: usize| {
        let names: Vec<String> = (0..topics).map(|n| format!("\"t{n}\"")).collect();
        parse(&SOUND.replace("\"predictions\"", &names.join(",")))
    };
    let sources = with(65_534).expect("there is a number for each").sources;
    assert_eq!(sources[0].topic_count(), 65_534);
    let problems = with(65_535).expect_err("there is none for the last one");
    assert_eq!(problems[0].what, "there are 65535 topics, more than 65534");
}
