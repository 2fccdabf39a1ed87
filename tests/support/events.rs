//! Events of models whose truth is known, made from a seed.
//!
//! `steady` says what is true; `boaster` pushes every true probability away from one half, as an
//! over-trained network does; `rare` says about one per cent where two per cent is true.

/// The models, each event's drawn in turn.
pub const MODELS: [&str; 3] = ["steady", "boaster", "rare"];

/// Records that no decoder may take, with the reason it must give.
pub const BAD: [(&str, &str); 6] = [
    (r#"{"model":"steady","score":0.5,"outcome"#, "malformed"),
    (
        r#"{"model":"steady","outcome":1,"time_ms":TIME}"#,
        "missing_field",
    ),
    (
        r#"{"model":"steady","score":1.2,"outcome":1,"time_ms":TIME}"#,
        "score_out_of_range",
    ),
    (
        r#"{"model":"steady","score":-0.1,"outcome":1,"time_ms":TIME}"#,
        "score_out_of_range",
    ),
    (
        r#"{"model":"steady","score":"0.7","outcome":1,"time_ms":TIME}"#,
        "score_not_number",
    ),
    (
        r#"{"model":"steady","score":0.7,"outcome":"perhaps","time_ms":TIME}"#,
        "unknown_class",
    ),
];

/// A stream of events in order of time.
pub struct Events {
    state: u64,
    /// Time of the next event, milliseconds since 1970.
    pub time_ms: i64,
    /// Time from one event to the next.
    pub step_ms: i64,
    next: u64,
}

impl Events {
    /// Events from `time_ms` on.
    pub fn new(seed: u64, time_ms: i64, step_ms: i64) -> Events {
        Events {
            state: seed,
            time_ms,
            step_ms,
            next: 0,
        }
    }

    /// The next event as a JSON record; its model is that of its number modulo three.
    pub fn next_record(&mut self) -> String {
        let model = MODELS[(self.next % 3) as usize];
        let u = self.uniform();
        let (score, truth) = match model {
            "steady" => (u, u),
            "boaster" => (
                if u < 0.5 {
                    2.0 * u * u
                } else {
                    1.0 - 2.0 * (1.0 - u) * (1.0 - u)
                },
                u,
            ),
            _ => (0.005 + 0.01 * u, 0.01 + 0.02 * u),
        };
        let outcome = u8::from(self.uniform() < truth);
        let record = format!(
            r#"{{"model":"{model}","request":"r-{:09}","time_ms":{},"score":{score},"outcome":{outcome},"country":"DE","note":"not looked at"}}"#,
            self.next, self.time_ms
        );
        self.next += 1;
        self.time_ms += self.step_ms;
        record
    }

    /// A record of the list of bad ones, at the present time.
    pub fn bad_record(&self, number: usize) -> String {
        BAD[number % BAD.len()]
            .0
            .replace("TIME", &self.time_ms.to_string())
    }

    /// An event of a model `clock`, which only moves the watermark.
    pub fn clock_record(time_ms: i64) -> String {
        format!(r#"{{"model":"clock","time_ms":{time_ms},"score":0.5,"outcome":1}}"#)
    }

    /// splitmix64 (Steele, Lea and Flood, 2014), top 53 bits.
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
