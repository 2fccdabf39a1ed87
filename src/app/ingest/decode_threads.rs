//! Decodes a batch of records on several threads.
//!
//! Decoding is most of the work for a record, and depends only on the record. So the threads divide
//! a batch into chunks. Each thread, the engine's included, claims the next chunk and decodes it
//! with its own decoder. The engine's thread counts the records in order while the others decode
//! ahead. If the next chunk is not decoded, it decodes a chunk itself; it waits only if all are
//! claimed. So counts and their order are the same as with one thread, for one partition and for
//! many. No record is in flight between two batches: rebalances and stops see the same state as
//! with one thread.
//!
//! A record whose schema a thread does not know is left to the engine's thread, which asks the
//! registry. The same holds for large records, and for records that exceed the memory of a thread.

use super::decoded::Decoded;
use crate::app::error::AppError;
use crate::app::pool::Pool;
use crate::config::bounds::{DECODED_BYTES_MAX, SHARED_RECORD_BYTES_MAX};
use crate::decode::{Content, Needed, Raw, Rejection, SchemaText, SourceDecoder};
use crate::kafka::Record;
use parking_lot::Mutex;
use rayon::ThreadPool;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Records in a chunk: enough that claiming one costs nothing, few enough that the wait for the
/// last is short.
const CHUNK: usize = 32;
/// Smallest batch that is shared: with less to do, waking a thread costs more than it saves.
const SHARED_MIN: usize = 4 * CHUNK;

/// The decoders of one source, one for each thread. See the module.
pub struct DecodeThreads {
    pool: Arc<ThreadPool>,
    /// The first belongs to the engine's thread.
    lanes: Vec<Lane>,
    /// Buffers of earlier batches.
    spare: Vec<Decoded>,
}

/// What one thread decodes with.
struct Lane {
    decoder: SourceDecoder,
    /// Size of the rows that it has decoded of the current batch.
    bytes: usize,
}

/// A batch that threads share.
struct Batch<'a> {
    records: Vec<Bytes<'a>>,
    spare: Mutex<Vec<Decoded>>,
    /// Number of the next chunk that nobody has claimed.
    next: AtomicUsize,
    /// The decoded rows, by chunk.
    decoded: Vec<OnceLock<Decoded>>,
}

/// A chunk that a thread decodes. When this is dropped, even by a panic, the engine's thread may
/// read the chunk; it decodes what is missing itself.
struct Claim<'a> {
    decoded: Decoded,
    done: &'a OnceLock<Decoded>,
}

/// The rows of a record of a shared batch.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    chunk: &'a Decoded,
    record: usize,
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
    /// Decoders for threads of the pool, each made by `decoder`; `None` if the engine's thread
    /// decodes alone, as it does if records need headers.
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
                bytes: 0,
            })
        };
        let lanes = (0..=beside).map(lane);
        Ok(Some(DecodeThreads {
            pool: Arc::clone(pool),
            lanes: lanes.collect::<Result<_, AppError>>()?,
            spare: Vec::new(),
        }))
    }

    /// Calls `take` with each record of a batch, in order, and with its rows if threads share the
    /// batch. `learned` has schemas that the decoders do not know yet.
    pub fn each<'a>(
        &mut self,
        learned: &[(Needed, SchemaText)],
        batch: &[Record<'a>],
        mut take: impl FnMut(&Record<'a>, Option<Rows<'_>>),
    ) {
        for (needed, schema) in learned {
            for lane in &mut self.lanes {
                lane.decoder.learn(*needed, schema);
            }
        }
        if batch.len() < SHARED_MIN {
            return batch.iter().for_each(|record| take(record, None));
        }
        let shared = Batch {
            records: batch.iter().map(Bytes::of).collect(),
            spare: Mutex::new(std::mem::take(&mut self.spare)),
            next: AtomicUsize::new(0),
            decoded: batch.chunks(CHUNK).map(|_| OnceLock::new()).collect(),
        };
        if let Some((own, others)) = self.lanes.split_first_mut() {
            let shared = &shared;
            self.pool.in_place_scope(|scope| {
                for lane in others {
                    lane.bytes = 0;
                    scope.spawn(|_| while lane.decode_next(shared) {});
                }
                own.bytes = 0;
                for (records, done) in batch.chunks(CHUNK).zip(&shared.decoded) {
                    while done.get().is_none() && own.decode_next(shared) {}
                    let chunk = done.wait();
                    for (number, record) in records.iter().enumerate() {
                        let rows = Rows {
                            chunk,
                            record: number,
                        };
                        take(record, Some(rows));
                    }
                }
            });
        }
        self.keep(shared);
    }

    /// Keeps the buffers of a batch, empty, as far as they are no larger than
    /// [`DECODED_BYTES_MAX`] a thread.
    fn keep(&mut self, batch: Batch<'_>) {
        let used = batch.decoded.into_iter().filter_map(OnceLock::into_inner);
        let spare = batch.spare.into_inner();
        let (mut held, most) = (0, self.lanes.len() * DECODED_BYTES_MAX);
        self.spare = used
            .chain(spare)
            .filter_map(|mut buffer| {
                buffer.clear();
                held += buffer.held();
                (held <= most).then_some(buffer)
            })
            .collect();
    }
}

impl Lane {
    /// Claims the next chunk and decodes it; `false` where none is left.
    fn decode_next(&mut self, batch: &Batch<'_>) -> bool {
        let chunk = batch.next.fetch_add(1, Ordering::Relaxed);
        let records = batch.records.chunks(CHUNK).nth(chunk);
        let Some((records, done)) = records.zip(batch.decoded.get(chunk)) else {
            return false;
        };
        let spare = batch.spare.lock().pop();
        let mut claim = Claim {
            decoded: spare.unwrap_or_default(),
            done,
        };
        let decoded = &mut claim.decoded;
        for record in records {
            let topic = record.topic;
            let small = record.payload.len() <= SHARED_RECORD_BYTES_MAX
                && self.bytes + decoded.bytes() < DECODED_BYTES_MAX;
            if small && self.decoder.lacks(topic, record.payload).is_none() {
                decoded.keep(|take| {
                    let raw = record.raw();
                    self.decoder.decode(topic, &raw, |_, content| take(content));
                });
            } else {
                decoded.leave();
            }
        }
        self.bytes += decoded.bytes();
        true
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Nobody else has claimed the chunk, so nothing is there.
        let _ = self.done.set(std::mem::take(&mut self.decoded));
    }
}

impl Rows<'_> {
    /// Calls `each` with each row and returns their number; `None` if the caller must decode the
    /// record.
    pub(super) fn each(
        self,
        each: impl FnMut(usize, &mut Result<Content<'_>, Rejection>),
    ) -> Option<usize> {
        self.chunk.rows(self.record, each)
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

    /// Everything that was counted and found, after reading these records in batches on this many
    /// threads.
    fn read(records: &[(usize, u16, String)], threads: usize) -> (String, usize) {
        let config = kafka_config(CONFIG);
        let pool = Pool::start(threads).expect("threads");
        let mut engine = Engine::new(config.plan.clone());
        let mut shared = 0;
        let mut readers: Vec<_> = [0, 2]
            .into_iter()
            .zip(&config.sources)
            .map(|(base, source)| {
                let reader = RecordReader::new(source, base, None).expect("valid");
                let decoders = DecodeThreads::new(&pool, || decoder_of(source));
                (reader, decoders.expect("valid"))
            })
            .collect();
        for (number, batch) in records.chunks(1000).enumerate() {
            for (source, (reader, decoders)) in readers.iter_mut().enumerate() {
                let own = batch.iter().enumerate().filter(|(_, r)| r.0 == source);
                let own: Vec<Record<'_>> = own
                    .map(|(i, (_, topic, payload))| Record {
                        topic: *topic,
                        offset: (1000 * number + i) as i64,
                        payload: payload.as_bytes(),
                        ..Record::default()
                    })
                    .collect();
                let mut take = |record: &Record<'_>, rows: Option<Rows<'_>>| {
                    reader.read_at(&mut engine, record, rows);
                };
                match decoders {
                    Some(decoders) => decoders.each(&[], &own, take),
                    None => own.iter().for_each(|record| take(record, None)),
                }
                shared += own.len() * usize::from(own.len() >= SHARED_MIN && threads > 1);
            }
        }
        engine.finish();
        let reports: Vec<_> = engine.reports().collect();
        let rejections: Vec<_> = readers.iter().map(|(r, _)| &r.last_rejections).collect();
        let snapshot = engine.snapshot();
        (
            format!(
                "{:?} {rejections:?} {reports:?} {snapshot:?}",
                engine.counters()
            ),
            shared,
        )
    }

    #[test]
    fn buffers_that_are_kept_hold_no_more_than_a_batch_may() {
        let config = kafka_config(CONFIG);
        let pool = Pool::start(2).expect("threads");
        let decoder = || decoder_of(&config.sources[0]);
        let threads = DecodeThreads::new(&pool, decoder).expect("valid");
        let mut threads = threads.expect("two threads");
        let (id, country) = ("i".repeat(100), "c".repeat(60));
        let row = format!(r#"{{"id":"{id}","z":0.5,"y":1,"country":"{country}"}}"#);
        let rows = vec![row; 20].join(",");
        let payload = format!(r#"{{"model":"m","time_ms":1760000000000,"rows":[{rows}]}}"#);
        let record = Record {
            payload: payload.as_bytes(),
            ..Record::default()
        };
        let batch = vec![record; 32 * CHUNK];
        let held = |threads: &DecodeThreads| threads.spare.iter().map(Decoded::held).sum();
        // A thread fills some buffers, and other ones in the next batch.
        for _ in 0..8 {
            let (mut shared, mut left) = (0, 0);
            let count = |_: &Record<'_>, rows: Option<Rows<'_>>| match rows
                .and_then(|r| r.each(|_, _| {}))
            {
                Some(rows) => shared += rows,
                None => left += 1,
            };
            threads.each(&[], &batch, count);
            assert_eq!(shared / 20 + left, batch.len());
            assert!(shared > 0 && left > 0, "{shared} and {left}");
            let held: usize = held(&threads);
            assert!(held <= 2 * DECODED_BYTES_MAX, "{held}");
            assert!(threads.spare.iter().all(|buffer| buffer.bytes() == 0));
        }
        assert!(held(&threads) > DECODED_BYTES_MAX);
    }

    #[test]
    fn what_a_thread_that_panics_has_not_decoded_is_left_to_the_caller() {
        let done = OnceLock::new();
        let claimed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut claim = Claim {
                decoded: Decoded::default(),
                done: &done,
            };
            claim.decoded.keep(|_| {});
            panic!("in the middle of a chunk");
        }));
        assert!(claimed.is_err());
        let chunk = done.wait();
        let rows = |record| Rows { chunk, record }.each(|_, _| {});
        assert_eq!((rows(0), rows(1)), (Some(0), None));
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
