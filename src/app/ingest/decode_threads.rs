//! Decodes a batch of records on several threads.
//!
//! Decoding is most of the work of a record, and depends on the record alone. So the threads divide
//! a batch into chunks. Each thread, the engine's included, takes chunks and decodes them with its
//! own decoder. When all are decoded, the engine's thread counts the records in their order. So
//! counts and their order are the same as with one thread, for one partition and for many. No
//! record is in flight between two batches: rebalances and stops see the same state as with one
//! thread.
//!
//! A record whose schema a thread does not know is left to the engine's thread, which asks the
//! registry. So are large records, and what does not fit into the memory that a thread may take.

use super::decoded::Decoded;
use crate::app::error::AppError;
use crate::app::pool::Pool;
use crate::config::bounds::{DECODED_BYTES_MAX, SHARED_RECORD_BYTES_MAX};
use crate::decode::{Content, Needed, Raw, Rejection, SchemaText, SourceDecoder};
use crate::kafka::Record;
use rayon::ThreadPool;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Records in a chunk: enough that taking one costs nothing, few enough that nobody waits long for
/// the last.
const CHUNK: usize = 32;
/// Smallest batch that is shared: with less to do, waking a thread costs more than it saves.
const SHARED_MIN: usize = 4 * CHUNK;

/// The decoders of one source, one for each thread. See the module.
pub(super) struct DecodeThreads {
    pool: Arc<ThreadPool>,
    /// The first is that of the engine's thread.
    lanes: Vec<Lane>,
    /// The chunks of the current batch, each with the lane that has decoded it and its number
    /// there.
    chunks: Vec<(usize, usize)>,
}

/// What one thread decodes.
struct Lane {
    decoder: SourceDecoder,
    /// The chunks that it took of the current batch.
    taken: Vec<usize>,
    /// What was decoded of them; beyond that, buffers.
    decoded: Vec<Decoded>,
}

/// What decoding needs of a record. The records of sources whose decoding needs headers are not
/// shared.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    topic: u16,
    timestamp_ms: Option<i64>,
    key: Option<&'a [u8]>,
    payload: &'a [u8],
}

impl DecodeThreads {
    /// Decoders for threads of the pool, each made by `decoder`; `None` where the engine's thread
    /// decodes alone, as it does where records need headers.
    pub fn new(
        pool: &Pool,
        decoder: impl Fn() -> Result<SourceDecoder, AppError>,
    ) -> Result<Option<DecodeThreads>, AppError> {
        let Some((pool, beside)) = pool.decoders() else {
            return Ok(None);
        };
        if decoder()?.needs_headers() {
            return Ok(None);
        }
        let lane = |_| {
            Ok(Lane {
                decoder: decoder()?,
                taken: Vec::new(),
                decoded: Vec::new(),
            })
        };
        let lanes = (0..=beside).map(lane);
        Ok(Some(DecodeThreads {
            pool: Arc::clone(pool),
            lanes: lanes.collect::<Result<_, AppError>>()?,
            chunks: Vec::new(),
        }))
    }

    /// Decodes a batch; [`rows`](DecodeThreads::rows) then knows its records by their index in it.
    /// A batch that is too small for that is left to the caller.
    pub fn decode(&mut self, batch: &[Record<'_>]) {
        self.chunks.clear();
        if batch.len() < SHARED_MIN {
            return;
        }
        let records: Vec<Bytes<'_>> = batch.iter().map(Bytes::of).collect();
        let (records, next) = (records.as_slice(), AtomicUsize::new(0));
        self.pool.in_place_scope(|scope| {
            let mut lanes = self.lanes.iter_mut();
            let own = lanes.next();
            for lane in lanes {
                scope.spawn(|_| lane.run(records, &next));
            }
            if let Some(own) = own {
                own.run(records, &next);
            }
        });
        self.chunks.resize(records.len().div_ceil(CHUNK), (0, 0));
        for (number, lane) in self.lanes.iter().enumerate() {
            for (index, &chunk) in lane.taken.iter().enumerate() {
                self.chunks[chunk] = (number, index);
            }
        }
    }

    /// Calls `each` with each row of a record of the batch, and answers their number; `None` where
    /// the caller is to decode it.
    pub fn rows(
        &self,
        record: usize,
        each: impl FnMut(usize, &mut Result<Content<'_>, Rejection>),
    ) -> Option<usize> {
        let &(lane, index) = self.chunks.get(record / CHUNK)?;
        self.lanes[lane].decoded[index].rows(record % CHUNK, each)
    }

    /// Lets all decoders know a schema.
    pub fn learn(&mut self, needed: Needed, schema: &SchemaText) {
        for lane in &mut self.lanes {
            lane.decoder.learn(needed, schema);
        }
    }
}

impl Lane {
    /// Decodes chunk after chunk until none is left.
    fn run(&mut self, records: &[Bytes<'_>], next: &AtomicUsize) {
        self.decode(records, next);
        self.trim();
    }

    /// Lets go of what an earlier batch left in the buffers that this one did not use, and of those
    /// buffers that make it more than [`DECODED_BYTES_MAX`].
    fn trim(&mut self) {
        let used = self.taken.len();
        let (mut held, mut kept) = (0, used);
        for (index, decoded) in self.decoded.iter_mut().enumerate() {
            if index >= used {
                decoded.clear();
            }
            held += decoded.held();
            if held <= DECODED_BYTES_MAX {
                kept = kept.max(index + 1);
            }
        }
        self.decoded.truncate(kept);
    }

    fn decode(&mut self, records: &[Bytes<'_>], next: &AtomicUsize) {
        self.taken.clear();
        let mut bytes = 0;
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            let Some(records) = records.chunks(CHUNK).nth(chunk) else {
                return;
            };
            if self.decoded.len() == self.taken.len() {
                self.decoded.push(Decoded::default());
            }
            let decoded = &mut self.decoded[self.taken.len()];
            self.taken.push(chunk);
            decoded.clear();
            for record in records {
                let topic = record.topic;
                let small = record.payload.len() <= SHARED_RECORD_BYTES_MAX
                    && bytes + decoded.bytes() < DECODED_BYTES_MAX;
                if small && self.decoder.lacks(topic, record.payload).is_none() {
                    decoded.keep(|take| {
                        let raw = record.raw();
                        self.decoder.decode(topic, &raw, |_, content| take(content));
                    });
                } else {
                    decoded.leave();
                }
            }
            bytes += decoded.bytes();
        }
    }
}

impl<'a> Bytes<'a> {
    fn of(record: &Record<'a>) -> Bytes<'a> {
        Bytes {
            topic: record.topic,
            timestamp_ms: record.timestamp_ms,
            key: record.key,
            payload: record.payload,
        }
    }

    fn raw(self) -> Raw<'a> {
        Raw {
            payload: self.payload,
            key: self.key,
            timestamp_ms: self.timestamp_ms,
            headers: &(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{RecordReader, decoder_of};
    use super::*;
    use crate::app::ingest::kafka_config;
    use crate::monitor::Engine;

    const CONFIG: &str = r#"
[[source]]
topics = ["scores"]
rows = "rows"
fields = { time = "time_ms", id = "rows.id", score = "rows.z", outcome = "rows.y", segments = ["rows.country"] }
outcomes = { topics = ["outcomes"], outcome = "y", id = "id", time = "time_ms", maturity = "1m" }
[[source]]
topics = ["animals"]
fields = { time = "time_ms", class_probabilities = "p", outcome = "y" }
[[model]]
name = "animals"
views = ["top_label", "full"]
classes = ["cat", "dog", "owl"]
windows = ["1m"]
[[model]]
name = "*"
segments_max = 50
windows = ["1m"]
"#;

    /// Good and bad records of each topic: topic and payload.
    fn records(n: usize) -> Vec<(usize, u16, String)> {
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = move |below: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x % below
        };
        let one = |i: usize| {
            let time_ms = 1_760_000_000_000 + 20 * i;
            let (z, y) = (draw(1000) as f64 / 999.0, draw(2));
            let kind = draw(8);
            let payload = match kind {
                0 => format!(
                    r#"{{"model":"animals","time_ms":{time_ms},"p":{{"cat":{z},"dog":{},"owl":0.0}},"y":"dog"}}"#,
                    1.0 - z
                ),
                1 => format!(r#"{{"model":"animals","time_ms":{time_ms},"p":{{"cat":{z}}}}}"#),
                2 => {
                    let id = draw(n as u64);
                    format!(r#"{{"id":"i{id}","time_ms":{time_ms},"y":{y}}}"#)
                }
                3 => format!(
                    r#"{{"model":"\u006dodel","time_ms":{time_ms},"rows":[{{"id":"i{i}","z":7}}]}}"#
                ),
                4 => "{\"model\":".to_owned(),
                k => {
                    let row = |j| {
                        let country = draw(3);
                        format!(r#"{{"id":"i{i}-{j}","z":{z},"y":{y},"country":"c{country},é"}}"#)
                    };
                    let rows = (0..k - 4).map(row).collect::<Vec<_>>().join(",");
                    format!(r#"{{"model":"m","time_ms":{time_ms},"rows":[{rows}]}}"#)
                }
            };
            let (source, topic) = match kind {
                0 | 1 => (1, 0),
                2 => (0, 1),
                _ => (0, 0),
            };
            (source, topic, payload)
        };
        (0..n).map(one).collect()
    }

    /// All that was counted and found of these records, read in batches on so many threads.
    fn read(records: &[(usize, u16, String)], threads: usize) -> (String, usize) {
        let config = kafka_config(CONFIG);
        let pool = Pool::start(threads).expect("threads");
        let mut engine = Engine::new(config.plan.clone());
        let mut shared = 0;
        let mut readers: Vec<RecordReader> = [0, 2]
            .into_iter()
            .zip(&config.sources)
            .map(|(base, source)| {
                let mut reader = RecordReader::new(source, base, None).expect("valid");
                reader.share(source, &pool).expect("valid");
                reader
            })
            .collect();
        for (number, batch) in records.chunks(1000).enumerate() {
            for (source, reader) in readers.iter_mut().enumerate() {
                let own = batch.iter().enumerate().filter(|(_, r)| r.0 == source);
                let own: Vec<Record<'_>> = own
                    .map(|(i, (_, topic, payload))| Record {
                        topic: *topic,
                        offset: (1000 * number + i) as i64,
                        payload: payload.as_bytes(),
                        ..Record::default()
                    })
                    .collect();
                reader.decode(&own);
                for (index, record) in own.iter().enumerate() {
                    reader.read_at(&mut engine, record, Some(index));
                }
                shared += own.len() * usize::from(own.len() >= SHARED_MIN && threads > 1);
            }
        }
        engine.finish();
        let reports: Vec<_> = engine.reports().collect();
        let rejections: Vec<_> = readers.iter().map(|r| &r.last_rejections).collect();
        let snapshot = engine.snapshot();
        (
            format!(
                "{:?} {rejections:?} {reports:?} {snapshot:?}",
                engine.counters()
            ),
            shared,
        )
    }

    /// A record of so many rows.
    fn of_rows(count: usize) -> String {
        let rows = vec![r#"{"id":"i","z":0.5,"y":1,"country":"c"}"#; count].join(",");
        format!(r#"{{"model":"m","time_ms":1760000000000,"rows":[{rows}]}}"#)
    }

    #[test]
    fn buffers_that_a_batch_does_not_use_hold_no_more_than_a_batch_may() {
        let config = kafka_config(CONFIG);
        let decoder = decoder_of(&config.sources[0]).expect("valid");
        let mut lane = Lane {
            decoder,
            taken: Vec::new(),
            decoded: Vec::new(),
        };
        let (small, large) = (of_rows(1), of_rows(1000));
        assert!(large.len() <= SHARED_RECORD_BYTES_MAX);
        // Small records come before large ones, and fewer each time: each index had the large ones
        // once.
        for chunks in (0..20).rev() {
            let payloads = vec![&small; chunks * CHUNK].into_iter();
            let payloads = payloads.chain(vec![&large; CHUNK]);
            let records: Vec<Bytes<'_>> = payloads
                .map(|payload| Bytes {
                    topic: 0,
                    timestamp_ms: None,
                    key: None,
                    payload: payload.as_bytes(),
                })
                .collect();
            lane.run(&records, &AtomicUsize::new(0));
            assert_eq!(lane.taken.len(), chunks + 1);
            let (used, rest) = lane.decoded.split_at(lane.taken.len());
            assert!(used[chunks].bytes() > DECODED_BYTES_MAX / 2);
            let held = rest.iter().map(Decoded::held).sum::<usize>();
            assert!(held <= DECODED_BYTES_MAX, "{held} after {chunks}");
        }
    }

    #[test]
    fn what_several_threads_decode_is_counted_as_one_thread_counts_it() {
        let records = records(8_000);
        let (alone, none) = read(&records, 1);
        assert_eq!(none, 0);
        assert!(alone.contains("miscalibrated") || alone.contains("Miscalibrated"));
        for threads in [2, 5] {
            let (together, shared) = read(&records, threads);
            assert!(shared > 6_000, "{shared}");
            assert!(together == alone, "{threads} threads count otherwise");
        }
    }
}
