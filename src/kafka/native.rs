//! Functions of librdkafka that rdkafka does not offer: batches of borrowed messages, and adding
//! brokers to a client. The only `unsafe` of the crate.
//!
//! Why batches: `BaseConsumer::poll` creates an event, an `Arc` and a map look-up for each message
//! and costs about 200 ns. One call of `rd_kafka_consume_batch_queue` for a thousand messages costs
//! 50 ns per message; at that rate the fetch thread is the limit. It cannot be used on the
//! consumer's own queue, because it swallows the rebalance events that rdkafka expects there. So
//! the queue of each assigned partition is forwarded to a separate queue, which contains only
//! messages and partition errors.
//!
//! # Safety
//!
//! The code relies on these facts and ensures them as follows:
//!
//! 1. *Every handle outlives its use.* [`BatchQueue`] holds an `Arc` of the client, and destroys
//!    its queue in `drop`, before that `Arc` is released. Handles of partition queues live only
//!    within [`BatchQueue::forward_to`].
//! 2. *A message is valid from the call that returned it to its `rd_kafka_message_destroy`.*
//!    Messages belong to a [`Batch`], are reachable only by borrowing it, and are destroyed once,
//!    in its `drop`, which also runs when a handler panics. `Batch` borrows `BatchQueue` mutably,
//!    so the array of pointers is not written meanwhile.
//! 3. *Key, payload, headers and topic of a message live as long as the message* and are not
//!    written, as rdkafka.h documents for `rd_kafka_message_t`. Null pointers become `None` or an
//!    empty slice. A message of the consumer's own queue belongs to rdkafka's [`BorrowedMessage`],
//!    which keeps it until it is dropped; [`Message::of`] borrows that.
//! 4. *`err` is read as an integer*, not as the enum of the bindings. A broker may send a code that
//!    the bindings do not name, and such a value in an enum would be undefined behaviour.
//! 5. *Threads:* librdkafka's queue functions may be called from any thread; `BatchQueue` is
//!    `Send`, and not `Sync`, because taking a batch needs `&mut`.

#![allow(unsafe_code)]

use rdkafka::bindings as sys;
use rdkafka::client::{Client, ClientContext};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::message::BorrowedMessage;
use std::ffi::{CStr, CString};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

/// Most messages per call: enough to make the cost of the call negligible, few enough to stay in
/// cache (sizes from 64 to 16384 were within 15 % of each other).
pub(super) const BATCH: usize = 1024;

/// Adds brokers (`host:port`, comma separated) to a client. Brokers that it already knows stay
/// unchanged.
pub(super) fn add_brokers<C: ClientContext>(client: &Client<C>, brokers: &str) {
    if let Ok(brokers) = CString::new(brokers) {
        // SAFETY: the client is borrowed and so alive, any thread may call (point 5), and the text,
        // which ends in a nul, is copied before the call returns.
        unsafe { sys::rd_kafka_brokers_add(client.native_ptr(), brokers.as_ptr()) };
    }
}

/// A queue to which partitions are forwarded.
pub(super) struct BatchQueue<C: ConsumerContext + 'static> {
    queue: NonNull<sys::rd_kafka_queue_t>,
    messages: Box<[*mut sys::rd_kafka_message_t]>,
    client: Arc<BaseConsumer<C>>,
}

// SAFETY: point 5 of the module. The pointers in `messages` are dead between batches.
unsafe impl<C: ConsumerContext + 'static> Send for BatchQueue<C> {}

impl<C: ConsumerContext + 'static> BatchQueue<C> {
    /// A queue of this client.
    pub fn new(client: Arc<BaseConsumer<C>>) -> Option<BatchQueue<C>> {
        // SAFETY: the client is alive.
        let queue = unsafe { sys::rd_kafka_queue_new(client.client().native_ptr()) };
        Some(BatchQueue {
            queue: NonNull::new(queue)?,
            messages: vec![ptr::null_mut(); BATCH].into(),
            client,
        })
    }

    /// Forwards the messages of the partition to this queue. Call it before the partition is
    /// assigned, so that librdkafka never puts a message of it on the consumer's queue.
    pub fn forward(&self, topic: &str, partition: i32) -> bool {
        self.forward_to(topic, partition, self.queue.as_ptr())
    }

    /// Undoes [`BatchQueue::forward`].
    pub fn unforward(&self, topic: &str, partition: i32) -> bool {
        self.forward_to(topic, partition, ptr::null_mut())
    }

    fn forward_to(&self, topic: &str, partition: i32, to: *mut sys::rd_kafka_queue_t) -> bool {
        let Ok(topic) = CString::new(topic) else {
            return false;
        };
        // SAFETY: the client is alive, the name ends in a nul, `to` is null or our live queue, and
        // the handle is destroyed exactly once, after its last use.
        unsafe {
            let from = sys::rd_kafka_queue_get_partition(
                self.client.client().native_ptr(),
                topic.as_ptr(),
                partition,
            );
            if from.is_null() {
                return false;
            }
            sys::rd_kafka_queue_forward(from, to);
            sys::rd_kafka_queue_destroy(from);
        }
        true
    }

    /// The offset after the newest record, as of the latest fetch response.
    pub fn end(&self, topic: &str, partition: i32) -> Option<i64> {
        let topic = CString::new(topic).ok()?;
        let (mut low, mut high) = (-1, -1);
        // SAFETY: the client is alive, the name ends in a nul, and both numbers outlive the call,
        // which reads a value that the client has stored and does not wait.
        unsafe {
            sys::rd_kafka_get_watermark_offsets(
                self.client.client().native_ptr(),
                topic.as_ptr(),
                partition,
                &mut low,
                &mut high,
            );
        }
        (high >= 0).then_some(high)
    }

    /// Fetches at most `max` (and at most [`BATCH`]) messages. librdkafka waits for `max` of them
    /// until the timeout, not for the first; to wait for something, ask for one.
    pub fn fetch(&mut self, max: usize, timeout: Duration) -> Batch<'_> {
        let max = max.min(self.messages.len());
        let ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: queue and client are alive; the array holds at least `max` pointers.
        let n = unsafe {
            sys::rd_kafka_consume_batch_queue(
                self.queue.as_ptr(),
                ms,
                self.messages.as_mut_ptr(),
                max,
            )
        };
        let n = usize::try_from(n).unwrap_or(0);
        Batch {
            messages: &self.messages[..n],
        }
    }
}

impl<C: ConsumerContext + 'static> Drop for BatchQueue<C> {
    fn drop(&mut self) {
        // SAFETY: created by `new`, destroyed only here, and the client is still alive.
        unsafe { sys::rd_kafka_queue_destroy(self.queue.as_ptr()) }
    }
}

/// Messages of one call. They are destroyed together.
pub(super) struct Batch<'q> {
    messages: &'q [*mut sys::rd_kafka_message_t],
}

impl Batch<'_> {
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = Message<'_>> {
        self.messages.iter().map(|&m| {
            // SAFETY: librdkafka returned `n` valid pointers, which live until our drop (point 2).
            Message(unsafe { &*m })
        })
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        for &m in self.messages {
            // SAFETY: each pointer comes from the one call that made this batch and is destroyed
            // once.
            unsafe { sys::rd_kafka_message_destroy(m) }
        }
    }
}

/// A message, or an error of a partition.
#[derive(Clone, Copy)]
pub(super) struct Message<'b>(&'b sys::rd_kafka_message_t);

impl<'b> Message<'b> {
    /// A message of the consumer's own queue. rdkafka itself panics at a header whose name is not
    /// UTF-8.
    pub fn of(message: &'b BorrowedMessage<'_>) -> Message<'b> {
        // SAFETY: points 2 and 3; the pointer is not null, and the borrow is the lifetime of the
        // answer.
        Message(unsafe { &*message.ptr() })
    }

    /// 0 for a message, otherwise the error code of librdkafka.
    #[inline]
    pub fn error(self) -> i32 {
        // SAFETY: point 4; the field is a C enum, which the bindings lay out as a 32-bit integer.
        unsafe { ptr::from_ref(&self.0.err).cast::<i32>().read() }
    }

    /// Identifies the topic within one batch.
    #[inline]
    pub fn topic_id(self) -> usize {
        self.0.rkt as usize
    }

    /// Name of the topic.
    pub fn topic(self) -> &'b str {
        if self.0.rkt.is_null() {
            return "";
        }
        // SAFETY: point 3; the name ends in a nul.
        let name = unsafe { CStr::from_ptr(sys::rd_kafka_topic_name(self.0.rkt)) };
        name.to_str().unwrap_or("")
    }

    #[inline]
    pub fn partition(self) -> i32 {
        self.0.partition
    }

    #[inline]
    pub fn offset(self) -> i64 {
        self.0.offset
    }

    /// The timestamp in ms since 1970, if the message has one.
    #[inline]
    pub fn timestamp_ms(self) -> Option<i64> {
        // SAFETY: the message is valid (point 2); a null pointer for the type is allowed.
        let t = unsafe { sys::rd_kafka_message_timestamp(self.0, ptr::null_mut()) };
        (t >= 0).then_some(t)
    }

    #[inline]
    pub fn key(self) -> Option<&'b [u8]> {
        bytes(self.0.key.cast(), self.0.key_len)
    }

    #[inline]
    pub fn payload(self) -> &'b [u8] {
        bytes(self.0.payload.cast(), self.0.len).unwrap_or_default()
    }

    /// Whether the value is null, which is a tombstone, and not only empty.
    pub fn is_tombstone(self) -> bool {
        self.0.payload.is_null()
    }

    /// Name and value of the header at `index`; `None` after the last one. A value may be null. A
    /// name that is not UTF-8 is empty. The first call parses the headers, so a message whose
    /// headers are not read does not pay for them.
    pub fn header(self, index: usize) -> Option<(&'b str, Option<&'b [u8]>)> {
        const OK: i32 = 0;
        let mut headers = ptr::null_mut();
        let (mut name, mut value, mut len) = (ptr::null(), ptr::null(), 0);
        // SAFETY: the message is valid (point 2) and read by this thread alone (point 5). The list
        // belongs to the message and lives as long as it. So do the names, which end in a nul, and
        // the values (point 3). The codes are compared as integers (point 4: these two calls return
        // only codes of their own).
        unsafe {
            if sys::rd_kafka_message_headers(self.0, &mut headers) as i32 != OK
                || sys::rd_kafka_header_get_all(headers, index, &mut name, &mut value, &mut len)
                    as i32
                    != OK
            {
                return None;
            }
            let name = CStr::from_ptr(name).to_str().unwrap_or("");
            Some((name, bytes(value.cast(), len)))
        }
    }

    /// The text of librdkafka for a message with [`Message::error`].
    pub fn error_text(self) -> String {
        String::from_utf8_lossy(self.payload()).into_owned()
    }
}

#[inline]
fn bytes<'b>(start: *const u8, len: usize) -> Option<&'b [u8]> {
    if start.is_null() {
        return None;
    }
    // SAFETY: point 3; only called with the pointer and length of one field of a live message,
    // whose borrow is the lifetime of the answer.
    Some(unsafe { std::slice::from_raw_parts(start, len) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::mock::{broker, reader};
    use rdkafka::message::{Header, OwnedHeaders};
    use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_header_whose_name_is_no_text_is_read_without_a_name() {
        let (_mock, options) = broker("t");
        let producer: BaseProducer = options.client_config().create().expect("a producer");
        // SAFETY: rdkafka passes the bytes on and does not treat them as text.
        let name = unsafe { String::from_utf8_unchecked(vec![b'n', 0xff]) };
        let header = |key| Header {
            key,
            value: Some("v"),
        };
        let headers = OwnedHeaders::new().insert(header(name.as_str()));
        let headers = headers.insert(header("sound"));
        let record: BaseRecord<'_, (), str> = BaseRecord::to("t").payload("p").headers(headers);
        producer.send(record).map_err(|(e, _)| e).expect("queued");
        producer.flush(PATIENCE).expect("delivered");
        let consumer = reader(&options, "t");
        // The consumer's own queue: nothing is forwarded.
        let message = consumer.poll(PATIENCE).expect("a record").expect("sound");
        let message = Message::of(&message);
        let headers = (0..).map_while(|i| message.header(i));
        let headers: Vec<(&str, Option<&[u8]>)> = headers.collect();
        let value: Option<&[u8]> = Some(b"v");
        assert_eq!(headers, [("", value), ("sound", value)]);
    }
}
