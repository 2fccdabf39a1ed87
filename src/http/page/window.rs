//! One window on the page of a stream, with links to its maps and to advice.

use std::fmt::Write;

use crate::http::path::encode;
use crate::judge::{Undecided, Verdict, WindowReport};
use crate::report::html::escape;
use crate::report::moment::clock;
use crate::report::recalibration;
use crate::report::window::{self as shown, Past};

/// One window; `path` is the encoded id of its stream, `due_ms` is when the oldest outcomes of the
/// stream are due.
pub(super) fn section(
    path: &str,
    window: &WindowReport,
    due_ms: Option<i64>,
    past: Past<'_>,
    body: &mut String,
) {
    let head = format!("window {}", escape(&window.window));
    let id = format!("window-{}", encode(&window.window));
    let mut more = String::new();
    if window.verdict == Verdict::Undecided(Undecided::Coverage) {
        more.push_str(
            "<p><a href=/runbooks/TruelineOutcomesMissing>What to do: the runbook</a></p>",
        );
    }
    recalibration_maps(path, window, &mut more);
    shown::section(&head, &id, window, due_ms, past, &more, body);
}

/// Recalibration maps for a miscalibrated window.
fn recalibration_maps(path: &str, window: &WindowReport, body: &mut String) {
    let Some(recalibration) = window.recalibration.as_deref() else {
        return;
    };
    let words = match &recalibration.judged {
        Some(j) => recalibration::words(&j.judgement, &j.fitted.fits),
        None => format!(
            "maps were fitted to the window that ends at {} UTC and will be tried on the first window after it that is not calibrated",
            clock(recalibration.fitted.end_ms)
        ),
    };
    let name = encode(&window.window);
    let _ = write!(
        body,
        "<p class=words>Recalibration: {}. <a href=\"/api/v1/streams/{path}/recalibration?window={name}\">maps</a>",
        escape(&words)
    );
    if recalibration.advised().is_some() {
        let _ = write!(
            body,
            ", <a href=\"/api/v1/streams/{path}/recalibration?window={name}&amp;format=csv\">table</a>; the dashed line in the diagram is the map"
        );
    }
    body.push_str("</p>");
}
