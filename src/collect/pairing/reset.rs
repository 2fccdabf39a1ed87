//! Drops rows when the watermark of a snapshot is moved back.

use super::PairingState;

impl PairingState {
    /// Takes out the open panes that begin after `watermark_ms`, and the waiting rows whose event
    /// time is not before it. Their rows end alone.
    pub fn reset(&mut self, watermark_ms: i64) {
        let alone = &mut self.counts.alone;
        self.open.retain(|(start_ms, _, rows)| {
            let stays = *start_ms <= watermark_ms;
            *alone += if stays { 0 } else { rows.len() as u64 };
            stays
        });
        for waiting in &mut self.waiting {
            waiting.retain(|row| {
                let stays = row.time_ms < watermark_ms;
                *alone += u64::from(!stays && !row.paired);
                stays
            });
        }
        for version in &mut self.versions {
            version.first_ms = version.first_ms.min(watermark_ms);
            version.last_ms = version.last_ms.min(watermark_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OpenRow, Version, WaitingRow};
    use super::*;

    #[test]
    fn rows_after_the_time_end_alone_and_the_others_stay() {
        let open = |ms: i64| {
            let row = OpenRow {
                key: [0, 0],
                slot: 0,
                offset_ms: 0,
                scored: 0,
            };
            (ms, 0, vec![row; 2])
        };
        let waiting = |time_ms: i64, paired: bool| WaitingRow {
            key: [0, 0],
            time_ms,
            scored: 0,
            version: 0,
            old: true,
            paired,
        };
        let mut state = PairingState {
            open: vec![open(20), open(30)],
            waiting: vec![vec![
                waiting(19, false),
                waiting(20, false),
                waiting(900, true),
            ]],
            versions: vec![Version {
                model: "m".to_owned(),
                name: "v".to_owned(),
                first_ms: 10,
                last_ms: 900,
            }],
            ..PairingState::default()
        };
        state.reset(20);
        assert_eq!(state.open, [open(20)]);
        assert_eq!(state.waiting, [[waiting(19, false)]]);
        assert_eq!(state.counts.alone, 3);
        assert_eq!(
            (state.versions[0].first_ms, state.versions[0].last_ms),
            (10, 20)
        );
    }
}
