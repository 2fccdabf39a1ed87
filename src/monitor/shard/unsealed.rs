//! What waits in open panes, for streams of which nothing was judged yet.

use super::Shard;
use crate::collect::{Key, Stream};
use crate::monitor::activity::Unjudged;

impl Shard {
    /// What waits in open panes of the streams that `of` names.
    pub fn unsealed(&self, of: impl Fn(&Key) -> bool) -> Vec<Unjudged> {
        let streams = self.collector.streams().iter().map(|(_, s)| s);
        let waits = |s: &Stream| {
            let ladder = &self.plan.models.get(s.model)?.ladder;
            Some(Unjudged {
                model: s.key.model().to_owned(),
                version: s.key.version().to_owned(),
                segment: s.key.segment().to_owned(),
                events: s.unsealed(),
                until_ms: s.oldest_ms()? + ladder.pane_ms + ladder.lateness_ms,
            })
        };
        streams.filter(|s| of(&s.key)).filter_map(waits).collect()
    }
}
